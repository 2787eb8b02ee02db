"""Carry the owners of lines from one text to the next: lines that stayed, that were only set
anew, that were moved, that were changed a little."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

import msgspec

from whyfor.story.lines.compare import Block, same_blocks
from whyfor.story.lines.words import line_words

BASE = -1  # stood there before any edit
UNKNOWN = -2  # came from nobody we know of
EXACT, REFORMATTED, MOVED, BLOCK, SHELL, MODIFIED = (
    "exact",
    "reformatted",
    "moved",
    "block",
    "shell",
    "modified",
)
EVIDENCE = (EXACT, REFORMATTED, MOVED, BLOCK, SHELL, MODIFIED)
LIKE = 0.6  # how much of a line must be left to call it modified
MOVED_LINES = 3  # lines side by side that count as moved, however short
MOVED_CHARACTERS = 20  # of one line that does so alone
_TOKENS = 4000  # of a gap, above which its lines are not compared by words


class CarriedLine(msgspec.Struct, frozen=True):
    """Who owns a line: BASE, UNKNOWN, or the number of an edit; and how that is known."""

    owner: int = UNKNOWN
    evidence: str = ""


_NOBODY = CarriedLine()


@lru_cache(maxsize=1 << 10)
def carried_line(owner: int, evidence: str) -> CarriedLine:
    """Return the same object for every line of the same owner and evidence: files have many."""
    return CarriedLine(owner, evidence)


def carry(old: Sequence[str], owners: Sequence[int], new: Sequence[str]) -> list[CarriedLine]:
    """Return the owner of each line of the new text, from the owners of the lines of the old."""
    step = _Step(old, owners, new)
    spaces = step.keep(same_blocks(old, new))
    if not any(step.left):
        return step.found
    for was, now in spaces:
        step.reformat_spacing(was, now)
    step.move()
    for was, now in spaces:
        step.compare_words(was, now)
    return step.found


class _Step:
    def __init__(self, old: Sequence[str], owners: Sequence[int], new: Sequence[str]) -> None:
        self.old = old
        self.owners = owners
        self.new = new
        self.found = [_NOBODY] * len(new)
        self.origin: list[int | None] = [None] * len(new)
        self.left = [True] * len(old)  # lines of the old text that nothing became of yet

    def take(self, to: int, at: int, evidence: str) -> None:
        self.found[to] = carried_line(self.owners[at], evidence)
        self.origin[to] = at
        self.left[at] = False

    def keep(self, blocks: Sequence[Block]) -> list[tuple[range, range]]:
        """Take lines that stayed as they are; return what is between them, in both texts."""
        gaps: list[tuple[range, range]] = []
        here = there = 0
        for at, to, size in [*blocks, Block(len(self.old), len(self.new), 0)]:
            if at > here or to > there:
                gaps.append((range(here, at), range(there, to)))
            here, there = at + size, to + size
            owners = self.owners[at:here]
            self.found[to:there] = [carried_line(owner, EXACT) for owner in owners]
            self.origin[to:there] = range(at, here)
            self.left[at:here] = [False] * size
        return gaps

    def reformat_spacing(self, was: range, now: range) -> None:
        """Lines of a gap that differ by white space alone."""
        if not was or not now:
            return
        old = [_bare(self.old[at]) for at in was]
        new = [_bare(self.new[to]) for to in now]
        for at, to, size in same_blocks(old, new):
            for offset in range(size):
                if new[to + offset]:
                    self.take(now[to + offset], was[at + offset], REFORMATTED)

    # -- moves -----------------------------------------------------------------------------------

    def move(self) -> None:
        """Lines that went in one place and came in another, several together or a long one."""
        places: dict[str, list[int]] = {}
        for at, free in enumerate(self.left):
            if free and (text := _bare(self.old[at])):
                places.setdefault(text, []).append(at)
        if not places:
            return
        to = 0
        while to < len(self.new):
            run = self._longest_run(to, places)
            for offset in range(run[1]):
                self.take(to + offset, run[0] + offset, MOVED)
            to += max(1, run[1])

    def _longest_run(self, to: int, places: dict[str, list[int]]) -> tuple[int, int]:
        """Where a run of lines from here on came from, and how long it is; 0 if it is too short
        to say so."""
        best = (0, 0)
        if self.origin[to] is not None:
            return best
        text = _bare(self.new[to])
        for at in places.get(text, ())[:50]:
            size = 0
            while self._same(at + size, to + size):
                size += 1
            while size and not _bare(self.new[to + size - 1]):
                size -= 1  # a blank line at the end is nobody's
            if size > best[1]:
                best = (at, size)
        long = best[1] and len(text) >= MOVED_CHARACTERS
        return best if best[1] >= MOVED_LINES or long else (0, 0)

    def _same(self, at: int, to: int) -> bool:
        if at >= len(self.old) or to >= len(self.new):
            return False
        free = self.left[at] and self.origin[to] is None
        return free and _bare(self.old[at]) == _bare(self.new[to])

    # -- words -----------------------------------------------------------------------------------

    def compare_words(self, was: range, now: range) -> None:
        """Lines of a gap that a formatter broke or joined, and those that were changed a
        little."""
        old = [at for at in was if self.left[at]]
        new = [to for to in now if self.origin[to] is None]
        if not old or not new:
            return
        words = _WordMatch([self.old[at] for at in old], [self.new[to] for to in new])
        if not words.comparable:
            return
        last = _NOBODY
        for place, to in enumerate(new):
            carried = self._by_words(words, place, old) or self._soft(words, place, to, last)
            if carried is not None:
                self.found[to] = carried
            last = self.found[to]

    def _by_words(self, words: _WordMatch, place: int, old: Sequence[int]) -> CarriedLine | None:
        held = words.shares(place)
        if not held:
            return None
        owners: dict[int, int] = {}
        for line, weight in held.items():
            owner = self.owners[old[line]]
            owners[owner] = owners.get(owner, 0) + weight
        owner = max(owners, key=lambda one: owners[one])
        if words.is_whole(place):
            return carried_line(owner, REFORMATTED)
        best = max(held, key=lambda line: held[line])
        if words.likeness(place, best) >= LIKE:
            mine = self.owners[old[best]]
            return CarriedLine(mine, MODIFIED) if mine >= 0 else CarriedLine(UNKNOWN)
        return None

    def _soft(
        self, words: _WordMatch, place: int, to: int, last: CarriedLine
    ) -> CarriedLine | None:
        """A bracket that a formatter set on a line of its own goes with the line before."""
        follows = to > 0 and last.evidence == REFORMATTED
        return last if follows and words.is_soft(place) else None


class _WordMatch:
    """The words of some old and some new lines, set against each other without regard to where
    lines end."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old = [line_words(line) for line in old]
        self._new = [line_words(line) for line in new]
        before = [(line, word) for line, words in enumerate(self._old) for word in words]
        after = [(line, word) for line, words in enumerate(self._new) for word in words]
        self.comparable = len(before) <= _TOKENS and len(after) <= _TOKENS
        self._shares: list[dict[int, int]] = [{} for _ in new]
        self._kept = [0] * len(old)  # weight of each old line's words that are still there
        self._got = [0] * len(new)
        if self.comparable:
            self._match(before, after)

    def _match(self, before: list[tuple[int, str]], after: list[tuple[int, str]]) -> None:
        one, other = [word for _, word in before], [word for _, word in after]
        blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
        for block in blocks:
            for step in range(block.size):
                line, word = before[block.a + step]
                to = after[block.b + step][0]
                shares = self._shares[to]
                shares[line] = shares.get(line, 0) + len(word)
                self._kept[line] += len(word)
                self._got[to] += len(word)

    def shares(self, place: int) -> dict[int, int]:
        """How much of a new line comes from which old lines."""
        return self._shares[place]

    def is_soft(self, place: int) -> bool:
        """Whether a new line has nothing but brackets and the like."""
        return not self._new[place]

    def is_whole(self, place: int) -> bool:
        """Whether all words of a new line are old, and no word is missing of the lines they come
        from."""
        whole = self._got[place] == _weight(self._new[place])
        return whole and all(
            self._kept[line] == _weight(self._old[line]) for line in self._shares[place]
        )

    def likeness(self, place: int, line: int) -> float:
        shared = self._shares[place].get(line, 0)
        return 2 * shared / max(1, _weight(self._new[place]) + _weight(self._old[line]))


def _weight(words: Sequence[str]) -> int:
    return sum(map(len, words))


@lru_cache(maxsize=1 << 14)
def _bare(line: str) -> str:
    """A line without its white space."""
    return "".join(line.split())
