"""Content as evidence: lines a session wrote or took away that a commit changes in the same
file.

A writing counts for the first commit that holds it: what an ancestor has committed since is used
up. Who wrote a line last before the commit gets the credit, unless it was taken away again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache
from typing import NamedTuple

import msgspec

from whyfor.model.ids import fold
from whyfor.model.times import DAY
from whyfor.story.links.activity import SessionActivity, WrittenEdit
from whyfor.story.links.ancestry import Ancestry
from whyfor.story.links.commits import SMALL, CommitFacts, FileFacts
from whyfor.story.links.line_keys import each
from whyfor.story.links.moves import with_moves
from whyfor.story.links.paths import Places, last_part

LOOK_BACK = 30 * DAY  # how old a line may be when it is committed
COMMON = 15  # a line in more files than this is nobody's
SLACK = 5000  # ms between a write and the commit that holds it, clocks and rounding
_MASK = (1 << 64) - 1


class Write(msgspec.Struct, frozen=True):
    session: int
    foreign: bool
    act: WrittenEdit


class _Line(NamedTuple):
    sign: str  # + | - | moved | gone
    key: int
    minor: bool  # hardly telling


_GONE = _Line("gone", 0, False)


class ContentOverlap(msgspec.Struct):
    """What one session has of a commit."""

    lines: int = 0
    telling: int = 0  # lines that are not anybody's
    owns: bool = False  # most of what changes in one of the files
    seq: int = 0
    at: int = 0  # its last credited write

    def credit(self, write: Write, *, minor: bool) -> None:
        self.lines += 1
        self.telling += not minor
        self.seq = max(self.seq, write.act.seq)
        self.at = max(self.at, write.act.at)


class PathSpans:
    """By path, from the first writing to the last commit that may hold it: a commit in between
    may have used it up."""

    def __init__(self) -> None:
        self._by_path: dict[str, tuple[int, int]] = {}
        self._by_name: dict[str, tuple[int, int]] = {}  # of files that were moved since

    def add(self, path: str, first: int, last: int) -> None:
        _widen(self._by_path, path, first, last)

    def add_name(self, name: str, first: int, last: int) -> None:
        _widen(self._by_name, name, first, last)

    def cover(self, at: int) -> bool:
        """Return whether a commit of that time is in one of the spans."""
        return self._whole[0] <= at <= self._whole[1]

    def hold(self, at: int, paths: Iterable[str]) -> bool:
        """Return whether a commit of that time and with these paths is in one of the spans."""
        for path in paths:
            spans = (self._by_path.get(path), self._by_name.get(last_part(path)))
            if any(span and span[0] <= at <= span[1] for span in spans):
                return True
        return False

    @cached_property
    def _whole(self) -> tuple[int, int]:
        spans = [*self._by_path.values(), *self._by_name.values()]
        firsts = [first for first, _ in spans]
        lasts = [last for _, last in spans]
        return min(firsts, default=0), max(lasts, default=-1)


def _widen(spans: dict[str, tuple[int, int]], name: str, first: int, last: int) -> None:
    known = spans.get(name, (first, last))
    spans[name] = min(known[0], first), max(known[1], last + DAY)  # clocks may disagree


class Content:
    """Built for the commits to judge: lines none of them changes need not be kept."""

    def __init__(
        self,
        sessions: Mapping[int, SessionActivity],
        foreign: Set[int],
        places: Places,
        judged: Sequence[CommitFacts],
    ) -> None:
        self._places = places
        self._added: dict[int, list[Write]] = {}  # newest first, like those removed
        self._removed: dict[int, list[Write]] = {}
        self._gone: dict[str, list[Write]] = {}
        self._moved: dict[str, list[Write]] = {}
        self._touched: dict[str, list[Write]] = {}
        self._earlier_names: dict[str, set[str]] = {}  # by name, what a file was called before
        self._used: dict[int, list[CommitFacts]] = {}  # by line and path
        self._paths: dict[str, set[str]] = {}  # of commits, by name
        wanted, names = _wanted(judged)
        self._common = _common(judged, sessions)
        owner = owners(sessions)
        for number, acts in sessions.items():
            for act in with_moves(acts.written):
                if act.call is None or owner[act.call] == number:  # else a fork's copy
                    self._index(Write(number, number in foreign, act), wanted, names)
        for index in (self._added, self._removed):
            for writes in index.values():
                if len(writes) > 1:
                    writes.sort(key=_written_at, reverse=True)

    def _index(self, write: Write, wanted: set[int], names: set[str]) -> None:
        name = last_part(write.act.path)
        if write.act.kind in ("gone", "moved"):
            self._gone.setdefault(last_part(write.act.old or write.act.path), []).append(write)
        if name not in names:
            return
        self._touched.setdefault(name, []).append(write)
        if write.act.old and write.act.kind != "moved":
            self._earlier_names.setdefault(name, set()).add(last_part(write.act.old))
        if write.act.kind == "moved":
            self._moved.setdefault(name, []).append(write)
        salt = _salt(name)
        for packed, into in ((write.act.added, self._added), (write.act.removed, self._removed)):
            for key in each(packed):
                if (salted := key ^ salt) in wanted:
                    into.setdefault(salted, []).append(write)

    # -- who wrote what a commit holds -----------------------------------------------------------

    def shares(
        self, commit: CommitFacts, ancestry: Ancestry
    ) -> tuple[dict[int, ContentOverlap], int]:
        """By session what it wrote of the commit, and of how many lines in all."""
        changed = [(file, self._lines(file)) for file in commit.files]
        telling = sum(not line.minor for _, lines in changed for line in lines)
        shares: dict[int, ContentOverlap] = {}
        total = 0
        for file, lines in changed:
            counted = [line for line in lines if telling < SMALL or not line.minor]
            total += len(counted)
            own: Counter[int] = Counter()
            for line, write in self._written(commit, file, counted, ancestry):
                shares.setdefault(write.session, ContentOverlap()).credit(write, minor=line.minor)
                own[write.session] += not line.minor
            for session, count in own.items():
                if count >= 2 and count * 2 >= len(counted):
                    shares[session].owns = True
        return shares, total

    def _lines(self, file: FileFacts) -> list[_Line]:
        """What a commit does to a file, piece by piece."""
        found = [_Line("moved", 0, False)] if file.status == "R" else []
        for sign, packed, minor in (
            ("+", file.added, file.minor_added),
            ("-", file.removed, file.minor_removed),
        ):
            found += [_Line(sign, key, key in self._common) for key in each(packed)]
            found += [_Line(sign, key, True) for key in each(minor)]
        return found

    def _written(
        self, commit: CommitFacts, file: FileFacts, lines: list[_Line], ancestry: Ancestry
    ) -> Iterator[tuple[_Line, Write]]:
        """Those of a file's lines that a session wrote."""
        remover = self._remover(commit, file, ancestry) if file.status == "D" else None
        gone_at = max((write.act.at for write in self._gone_before(commit, file)), default=0)
        again = set(each(file.added)).intersection(each(file.removed))
        salted = [(path, _salt(last_part(path))) for path in _paths(file)]
        for line in lines:
            if line.sign == "moved":
                write = self._mover(commit, file)
            else:
                write = remover or self._writer(commit, salted, line, moved=line.key in again)
            if write is None:
                continue
            if line.sign == "+" and gone_at > write.act.at:
                continue  # the file was removed since, and made anew
            if write is remover or not self._is_used(line, write, commit, file, ancestry):
                yield line, write

    def _writer(
        self, commit: CommitFacts, salted: list[tuple[str, int]], line: _Line, *, moved: bool
    ) -> Write | None:
        wrote, took = self._added, self._removed
        if line.sign == "-":
            wrote, took = took, wrote
        last: Write | None = None
        for path, salt in salted:
            key = line.key ^ salt
            if key in wrote:
                # A whole file holds old lines too: one that the commit only moves may be such.
                write = self._latest(wrote[key], commit, path, whole=not moved)
                if write is not None and (last is None or write.act.at > last.act.at):
                    last = write
            if last is not None and key in took:
                taken = self._latest(took[key], commit, path)
                if taken is not None and taken.act.at > last.act.at:
                    return None
        return last

    def _latest(
        self, writes: Iterable[Write], commit: CommitFacts, path: str, *, whole: bool = True
    ) -> Write | None:
        """The last of these that may be in the commit; they are in order, newest first."""
        first, last = commit.authored_at - LOOK_BACK, commit.committed_at + SLACK
        for write in writes:
            act = write.act
            if act.at < first:
                break
            if act.at > last or (act.kind == "whole" and not whole):
                continue
            if self._places.same(act.path, path, foreign=write.foreign):
                return write
        return None

    def _remover(self, commit: CommitFacts, file: FileFacts, ancestry: Ancestry) -> Write | None:
        """Who removed the file, itself or a folder it was in."""
        last = max(self._gone_before(commit, file), key=_written_at, default=None)
        used = last is None or self._is_used(_GONE, last, commit, file, ancestry)
        return None if used else last

    def _gone_before(self, commit: CommitFacts, file: FileFacts) -> Iterator[Write]:
        """Removals of the file, or of a folder it is in."""
        for path in _folders(file.path) if self._gone else ():
            for write in self._gone.get(last_part(path), ()):
                where = write.act.old or write.act.path
                if _in_time(write, commit) and self._places.same(
                    where, path, foreign=write.foreign
                ):
                    yield write

    def _mover(self, commit: CommitFacts, file: FileFacts) -> Write | None:
        found = [
            write
            for write in self._valid(self._moved.get(last_part(file.path), ()), commit, file.path)
            if self._places.same(write.act.old or "", file.old_path or "", foreign=write.foreign)
        ]
        return max(found, key=_written_at, default=None)

    def _valid(self, writes: Iterable[Write], commit: CommitFacts, path: str) -> Iterator[Write]:
        for write in writes:
            if _in_time(write, commit) and self._places.same(
                write.act.path, path, foreign=write.foreign
            ):
                yield write

    # -- what ancestors have committed already ---------------------------------------------------

    def use_up(self, commit: CommitFacts) -> None:
        for file in commit.files:
            if file.status in ("D", "R"):
                self._use(
                    0, "gone", file.path if file.status == "D" else file.old_path or "", commit
                )
            if file.status == "R":
                self._use(0, "moved", file.path, commit)
            self._paths.setdefault(last_part(file.path), set()).add(file.path)
            salt = _salt(last_part(file.path))
            for sign, packed in (
                ("+", file.added + file.minor_added),
                ("-", file.removed + file.minor_removed),
            ):
                for key in set(each(packed)):
                    if (key ^ salt) in self._added or (key ^ salt) in self._removed:
                        self._use(key, sign, file.path, commit)

    def _use(self, key: int, sign: str, path: str, commit: CommitFacts) -> None:
        self._used.setdefault(key ^ _salt(sign + path), []).append(commit)

    def _is_used(
        self, line: _Line, write: Write, commit: CommitFacts, file: FileFacts, ancestry: Ancestry
    ) -> bool:
        paths = {*_paths(file)}
        if write.act.old and write.act.kind != "moved":  # it was written there, then moved
            for path in self._paths.get(last_part(write.act.old), ()):
                if self._places.same(write.act.old, path, foreign=write.foreign):
                    paths.add(path)
        # Of a whole file, a line that was taken out later was there before: not new in that
        # writing.
        signs = ("+", "-") if write.act.kind == "whole" else (line.sign,)
        for path in paths:
            for sign in signs:
                for other in reversed(self._used.get(line.key ^ _salt(sign + path), ())):
                    later = other.committed_at >= write.act.at
                    if later and ancestry.descends(commit.sha, other.sha):
                        return True
        return False

    # -- the rest --------------------------------------------------------------------------------

    def touches(self, commit: CommitFacts) -> Iterator[tuple[str, Write]]:
        """Writes to the commit's files before it, whether or not it holds them."""
        for file in commit.files:
            for write in self._valid(
                self._touched.get(last_part(file.path), ()), commit, file.path
            ):
                yield file.path, write

    def spans(self, commits: Iterable[CommitFacts]) -> PathSpans:
        """Where and when other commits may have used up what sessions wrote of these."""
        found = PathSpans()
        times = {name: sorted(w.act.at for w in all_) for name, all_ in self._touched.items()}
        for commit in commits:
            first, last = commit.authored_at - LOOK_BACK, commit.committed_at
            for file in commit.files:
                if file.status == "D" and self._gone:
                    found.add(file.path, first, last)
                for path in _paths(file):
                    name = last_part(path)
                    known = times.get(name, ())
                    at = bisect_left(known, first)
                    if at < len(known) and known[at] <= last + SLACK:
                        found.add(path, known[at], last)
                        for moved in self._earlier_names.get(name, ()):
                            found.add_name(moved, known[at], last)
        return found


def _wanted(commits: Iterable[CommitFacts]) -> tuple[set[int], set[str]]:
    """Salted keys of all lines these commits change, and the names of their files."""
    wanted: set[int] = set()
    names: set[str] = set()
    for commit in commits:
        for file in commit.files:
            for path in _paths(file):
                name = last_part(path)
                names.add(name)
                salt = _salt(name)
                wanted.update(key ^ salt for key in each(_all(file)))
    return wanted, names


def _all(file: FileFacts) -> bytes:
    return file.added + file.removed + file.minor_added + file.minor_removed


def _common(commits: Sequence[CommitFacts], sessions: Mapping[int, SessionActivity]) -> set[int]:
    """Lines that stand in so many files that they are nobody's: counted first, looked at only if
    there are many."""
    committed = [(file.path, file.added) for commit in commits for file in commit.files]
    seen = Counter(key for _, packed in committed for key in set(each(packed)))
    written = [(_short(act.path), act.added) for acts in sessions.values() for act in acts.written]
    for _, packed in written:
        seen.update(key for key in set(each(packed)) if key in seen)
    files: dict[int, set[str]] = {key: set() for key, count in seen.items() if count > COMMON}
    for path, packed in (*committed, *written) if files else ():
        for key in files.keys() & set(each(packed)):
            files[key].add(_short(path))
    return {key for key, paths in files.items() if len(paths) > COMMON}


def _short(path: str) -> str:
    """The same in every worktree."""
    return "/".join(path.rsplit("/", 2)[-2:])


def owners(sessions: Mapping[int, SessionActivity]) -> dict[str, int]:
    """Of a call that stands in several sessions, the one that is no fork, else the one that
    ended first."""
    owner: dict[str, int] = {}
    for number, acts in sorted(
        sessions.items(), key=lambda item: (item[1].copied, item[1].last_at or 0, item[0])
    ):
        calls = [*(act.call for act in acts.written), *(act.call for act in acts.made)]
        for call in calls:
            if call is not None:
                owner.setdefault(call, number)
    return owner


def _written_at(write: Write) -> int:
    return write.act.at


def _in_time(write: Write, commit: CommitFacts) -> bool:
    return commit.authored_at - LOOK_BACK <= write.act.at <= commit.committed_at + SLACK


def _paths(file: FileFacts) -> tuple[str, ...]:
    return (file.path, file.old_path) if file.old_path else (file.path,)


def _folders(path: str) -> Iterator[str]:
    yield path
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


@lru_cache(maxsize=1 << 16)
def _salt(name: str) -> int:
    """Lines are looked up by the name of their file too; mixed into the key, that costs nothing."""
    return fold(name) & _MASK
