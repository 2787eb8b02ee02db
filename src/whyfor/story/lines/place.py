"""Where in a text an edit belongs: at the line it names, else where its lines stand, else where
most of them do."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from whyfor.story.lines.text_edits import EditPiece
from whyfor.story.lines.words import line_words, word_places
from whyfor.story.links.line_keys import telling

_WINDOW = 40  # lines around the named place in which half of the old lines are looked for
_WORDS_MIN = 8  # characters of words that are told apart by them alone
_WORDS_MAX = 8000  # lines of a text in which words are looked for
_TRIES = 200  # places of a common line that are looked at


class WordPlace(NamedTuple):
    """Lines that have the words of a block, and what else is in the first and last of them."""

    span: range
    before: str
    after: str


class PlacedText:
    """A text in which blocks of lines are looked for; white space counts for nothing at second
    sight."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        # without white space, and how often each of them stands there; made when first asked for
        self._norm: list[str] | None = None
        self._counts: Counter[str] | None = None

    def splice(self, span: range, new: Sequence[str]) -> None:
        """Put lines in the place of others."""
        self.lines[span.start : span.stop] = new
        if self._norm is None:
            return
        old, fresh = self._norm[span.start : span.stop], _without_spaces(new)
        self._norm[span.start : span.stop] = fresh
        if self._counts is not None:
            self._counts.subtract(old)
            self._counts.update(fresh)

    def find(self, block: Sequence[str], near: int | None) -> int | None:
        """Return where a block stands, the place nearest to `near` if there are several; None if
        it stands nowhere."""
        if not block:
            return None if near is None else min(near, len(self.lines))
        if near is not None and self._stands(block, near):
            return near
        wanted = _without_spaces(block)
        found = [at for at in self._candidates(wanted) if self._is_at(wanted, at)]
        if not found:
            return None
        exact = [at for at in found if self._stands(block, at)]
        return min(exact or found, key=lambda at: abs(at - (near or 0)))

    def all_of(self, block: Sequence[str]) -> list[int]:
        """Return every place of a block, from the first on; none overlap."""
        wanted = _without_spaces(block)
        found: list[int] = []
        for at in self._candidates(wanted):
            if self._is_at(wanted, at) and (not found or at >= found[-1] + len(block)):
                found.append(at)
        return found

    def about(self, block: Sequence[str], near: int | None) -> range | None:
        """Return the lines in whose place a block may have stood that is not there as it was told:
        those that at least half of its telling lines are among; None if there are none."""
        wanted = _without_spaces(block)
        first, last = 0, len(self.lines)
        if near is not None:
            first = max(0, near - _WINDOW)
            last = min(last, near + len(block) + _WINDOW)
        if last - first > 20 * _WINDOW or not wanted:
            return None
        here = self._normed[first:last]
        blocks = SequenceMatcher(None, wanted, here, autojunk=False).get_matching_blocks()
        same = [block for block in blocks if block.size]
        told = sum(telling(line) for line in wanted)
        held = 0
        for block_ in same:
            held += sum(telling(line) for line in wanted[block_.a : block_.a + block_.size])
        if not held or held * 2 < told:
            return None
        start = same[0].b - (same[0].a if same[0].b >= same[0].a else 0)
        end = same[-1].b + same[-1].size
        rest = len(wanted) - same[-1].a - same[-1].size
        return range(first + max(0, start), first + min(len(here), end + rest))

    def by_words(self, block: Sequence[str], near: int | None) -> WordPlace | None:
        """Return where the words of a block stand side by side, wherever lines end: a formatter
        set them anew. None if they stand nowhere."""
        wanted = [word for line in block for word in line_words(line)]
        if sum(map(len, wanted)) < _WORDS_MIN or len(self.lines) > _WORDS_MAX:
            return None
        words: list[str] = []
        firsts: list[int] = []  # the number of the first word of each line
        for line in self.lines:
            firsts.append(len(words))
            words += line_words(line)
        found = _runs(words, wanted)
        if not found:
            return None
        lines = [bisect_right(firsts, at) - 1 for at in found]
        best = min(range(len(found)), key=lambda n: abs(lines[n] - (near or 0)))
        last = bisect_right(firsts, found[best] + len(wanted) - 1) - 1
        start = found[best] - firsts[lines[best]]
        stop = found[best] + len(wanted) - 1 - firsts[last]
        before = self.lines[lines[best]][: word_places(self.lines[lines[best]])[start][0]]
        after = self.lines[last][word_places(self.lines[last])[stop][1] :]
        return WordPlace(range(lines[best], last + 1), before, after)

    @property
    def _normed(self) -> list[str]:
        if self._norm is None:
            self._norm = _without_spaces(self.lines)
        return self._norm

    def _candidates(self, wanted: Sequence[str]) -> Iterator[int]:
        """Places where the rarest line of a block puts its first one."""
        norm = self._normed
        if self._counts is None:
            self._counts = Counter(norm)
        known = [self._counts[line] for line in wanted]
        if not known or not all(known):
            return
        rarest = known.index(min(known))
        at = -1
        for _ in range(min(known[rarest], _TRIES)):
            at = norm.index(wanted[rarest], at + 1)
            yield at - rarest

    def _is_at(self, wanted: Sequence[str], at: int) -> bool:
        return at >= 0 and self._normed[at : at + len(wanted)] == list(wanted)

    def _stands(self, block: Sequence[str], at: int) -> bool:
        return at >= 0 and self.lines[at : at + len(block)] == list(block)


def _without_spaces(lines: Sequence[str]) -> list[str]:
    return ["".join(line.split()) for line in lines]


def inline_change(lines: Sequence[str], piece: EditPiece) -> list[tuple[range, list[str]]]:
    """Where a text that begins and ends anywhere in a line stands, and the lines that take the
    place of those it stands in; empty if it does not stand there."""
    text = "\n".join(lines)
    old, new = "\n".join(piece.old), "\n".join(piece.new)
    at = text.find(old) if old else -1
    if at < 0 and old.endswith("\n") and text.endswith(old[:-1]):
        # the last line of the file has no end of its own here
        old, new = old[:-1], new.removesuffix("\n")
        at = text.find(old)
    if at < 0:
        return []
    if piece.every:
        return [(range(len(lines)), text.replace(old, new).split("\n"))]
    start = text.rfind("\n", 0, at) + 1
    stop = text.find("\n", at + len(old))
    stop = len(text) if stop < 0 else stop
    line = text.count("\n", 0, at)
    span = range(line, line + text.count("\n", start, stop) + 1)
    replaced = text[start:at] + new + text[at + len(old) : stop]
    gone = start == at and at + len(old) == stop and not new
    return [(span, [] if gone else replaced.split("\n"))]


def _runs(words: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where a run of words stands among others."""
    found: list[int] = []
    at = -1
    size = len(wanted)
    while len(found) < _TRIES:
        try:
            at = words.index(wanted[0], at + 1)
        except ValueError:
            break
        if words[at : at + size] == wanted:
            found.append(at)
    return found
