"""Content as evidence: lines a session wrote or took away that a commit changes in the same
file.

A writing counts for the first commit that holds it: what an ancestor has committed since is used
up. Who wrote a line last before the commit gets the credit, unless it was taken away again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

import msgspec

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


class Write(msgspec.Struct, frozen=True):
    session: int
    foreign: bool
    act: WrittenEdit


LineWrites = dict[int, list[Write]]  # by line


class _Lines(NamedTuple):
    """What a commit does to lines of a file, told by their keys."""

    sign: str  # + | - | moved
    keys: Sequence[int]
    minor: bool = False  # hardly telling


class ContentOverlap(msgspec.Struct):
    """What one session has of a commit."""

    lines: int = 0
    telling: int = 0  # lines that are not anybody's
    owns: bool = False  # most of what changes in one of the files
    seq: int = 0
    at: int = 0  # its last credited write

    def credit(self, write: Write, lines: int, telling: int) -> None:
        self.lines += lines
        self.telling += telling
        self.seq = max(self.seq, write.act.seq)
        self.at = max(self.at, write.act.at)


class _Credit(msgspec.Struct):
    """What one writing has of a file's change."""

    write: Write
    lines: int = 0
    telling: int = 0


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

    def held(self, at: int, paths: Iterable[str]) -> list[str]:
        """Return those of the paths that have a span which a commit of that time is in."""
        found = []
        for path in paths:
            spans = (self._by_path.get(path), self._by_name.get(last_part(path)))
            if any(span and span[0] <= at <= span[1] for span in spans):
                found.append(path)
        return found

    @cached_property
    def _whole(self) -> tuple[int, int]:
        spans = [*self._by_path.values(), *self._by_name.values()]
        firsts = [first for first, _ in spans]
        lasts = [last for _, last in spans]
        return min(firsts, default=0), max(lasts, default=-1)


def _widen(spans: dict[str, tuple[int, int]], name: str, first: int, last: int) -> None:
    known = spans.get(name, (first, last))
    spans[name] = min(known[0], first), max(known[1], last + DAY)  # clocks may disagree


Uses = list[dict[int, list[CommitFacts]]]  # by line, the commits that hold it


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
        # by the name of the file; writes newest first
        self.added: dict[str, LineWrites] = {}
        self.removed: dict[str, LineWrites] = {}
        self._gone: dict[str, list[Write]] = {}
        self._moved: dict[str, list[Write]] = {}
        self._touched: dict[str, list[Write]] = {}  # oldest first
        self._earlier_names: dict[str, set[str]] = {}  # by name, what a file was called before
        self.used: dict[str, dict[int, list[CommitFacts]]] = {}  # by sign and path, then by line
        self._paths: dict[str, set[str]] = {}  # of commits, by name
        wanted = _wanted(judged)
        self._common = _common(judged, sessions.values())
        owner = owners(sessions)
        for number, acts in sessions.items():
            for act in with_moves(acts.written):
                if act.call is None or owner[act.call] == number:  # else a fork's copy
                    self._index(Write(number, number in foreign, act), wanted)
        for lines in (*self.added.values(), *self.removed.values()):
            for writes in lines.values():
                if len(writes) > 1:
                    writes.sort(key=_written_at, reverse=True)
        for writes in self._touched.values():
            writes.sort(key=_written_at)

    def _index(self, write: Write, wanted: dict[str, set[int]]) -> None:
        name = last_part(write.act.path)
        if write.act.kind in ("gone", "moved"):
            self._gone.setdefault(last_part(write.act.old or write.act.path), []).append(write)
        if name not in wanted:
            return
        self._touched.setdefault(name, []).append(write)
        if write.act.old and write.act.kind != "moved":
            self._earlier_names.setdefault(name, set()).add(last_part(write.act.old))
        if write.act.kind == "moved":
            self._moved.setdefault(name, []).append(write)
        for packed, into in ((write.act.added, self.added), (write.act.removed, self.removed)):
            lines = into.setdefault(name, {})
            for key in wanted[name].intersection(each(packed)):
                known = lines.get(key)
                if known is None:
                    lines[key] = [write]
                else:
                    known.append(write)

    # -- who wrote what a commit holds -----------------------------------------------------------

    def shares(
        self, commit: CommitFacts, ancestry: Ancestry
    ) -> tuple[dict[int, ContentOverlap], int]:
        """By session what it wrote of the commit, and of how many lines in all."""
        changed = [(file, self._lines(file)) for file in commit.files]
        telling = sum(_count(lines, telling=True) for _, lines in changed)
        shares: dict[int, ContentOverlap] = {}
        total = 0
        for file, lines in changed:
            counted = lines
            if telling >= SMALL:
                counted = [some for some in lines if not some.minor]
            size = _count(counted)
            total += size
            own: Counter[int] = Counter()
            for one in self._written(commit, file, counted, ancestry):
                session = one.write.session
                share = shares.setdefault(session, ContentOverlap())
                share.credit(one.write, one.lines, one.telling)
                own[session] += one.telling
            for session, count in own.items():
                if count >= 2 and count * 2 >= size:
                    shares[session].owns = True
        return shares, total

    def _lines(self, file: FileFacts) -> list[_Lines]:
        """What a commit does to a file."""
        found = [_Lines("moved", [0])] if file.status == "R" else []
        for sign, packed, minor in (
            ("+", file.added, file.minor_added),
            ("-", file.removed, file.minor_removed),
        ):
            keys = each(packed)
            if self._common.isdisjoint(keys):
                found.append(_Lines(sign, keys))
            else:
                found.append(_Lines(sign, [key for key in keys if key not in self._common]))
                found.append(_Lines(sign, [key for key in keys if key in self._common], True))
            if minor:
                found.append(_Lines(sign, each(minor), True))
        return found

    def _written(
        self, commit: CommitFacts, file: FileFacts, lines: Sequence[_Lines], ancestry: Ancestry
    ) -> Iterable[_Credit]:
        """Whose writings are in a file's change, and how many of its lines each has."""
        remover = self._remover(commit, file, ancestry) if file.status == "D" else None
        if remover is not None:
            return [_Credit(remover, _count(lines), _count(lines, telling=True))]
        view = _FileView(self, commit, file, ancestry)
        found: dict[int, _Credit] = {}
        for some in lines:
            for write in view.writers(some):
                credit = found.get(id(write))
                if credit is None:
                    credit = found[id(write)] = _Credit(write)
                credit.lines += 1
                credit.telling += not some.minor
        return found.values()

    def _remover(self, commit: CommitFacts, file: FileFacts, ancestry: Ancestry) -> Write | None:
        """Who removed the file, itself or a folder it was in."""
        last = max(self.gone_before(commit, file), key=_written_at, default=None)
        if last is None or _FileView(self, commit, file, ancestry).is_used("gone", 0, last):
            return None
        return last

    def gone_before(self, commit: CommitFacts, file: FileFacts) -> Iterator[Write]:
        """Removals of the file, or of a folder it is in."""
        for path in _folders(file.path) if self._gone else ():
            for write in self._gone.get(last_part(path), ()):
                where = write.act.old or write.act.path
                if _in_time(write, commit) and self._places.same(
                    where, path, foreign=write.foreign
                ):
                    yield write

    def mover(self, commit: CommitFacts, file: FileFacts) -> Write | None:
        """Return who moved the file last."""
        found = [
            write
            for write in self._valid(self._moved.get(last_part(file.path), ()), commit, file.path)
            if self._places.same(write.act.old or "", file.old_path or "", foreign=write.foreign)
        ]
        return max(found, key=_written_at, default=None)

    def _valid(self, writes: Iterable[Write], commit: CommitFacts, path: str) -> Iterator[Write]:
        for write in writes:
            if _in_time(write, commit) and self.is_of(write, path):
                yield write

    def is_of(self, write: Write, path: str) -> bool:
        """Return whether a writing is of the file that has this path in the repository."""
        return self._places.same(write.act.path, path, foreign=write.foreign)

    def places_before(self, write: Write) -> Iterator[str]:
        """Yield the paths in commits of a file that was written there, then moved."""
        old = write.act.old
        if not old or write.act.kind == "moved":
            return
        for path in self._paths.get(last_part(old), ()):
            if self._places.same(old, path, foreign=write.foreign):
                yield path

    # -- what ancestors have committed already ---------------------------------------------------

    def use_up(self, commit: CommitFacts) -> None:
        for file in commit.files:
            if file.status in ("D", "R"):
                gone = file.path if file.status == "D" else file.old_path or ""
                self._use("gone", gone, {0}, commit)
            if file.status == "R":
                self._use("moved", file.path, {0}, commit)
            name = last_part(file.path)
            self._paths.setdefault(name, set()).add(file.path)
            added, removed = self.added.get(name, {}), self.removed.get(name, {})
            if not added and not removed:
                continue
            for sign, packed in (
                ("+", file.added + file.minor_added),
                ("-", file.removed + file.minor_removed),
            ):
                keys = set(each(packed))
                known = (added.keys() & keys) | (removed.keys() & keys)
                self._use(sign, file.path, known, commit)

    def _use(self, sign: str, path: str, keys: Iterable[int], commit: CommitFacts) -> None:
        lines = self.used.setdefault(sign + path, {})
        for key in keys:
            known = lines.get(key)
            if known is None:
                lines[key] = [commit]
            else:
                known.append(commit)

    # -- the rest --------------------------------------------------------------------------------

    def touches(self, commit: CommitFacts, since: int) -> Iterator[tuple[str, Write]]:
        """Writes to the commit's files between a time and the commit, whether or not it holds
        them."""
        for file in commit.files:
            writes = self._touched.get(last_part(file.path), [])
            recent = islice(writes, bisect_left(writes, since, key=_written_at), None)
            for write in self._valid(recent, commit, file.path):
                yield file.path, write

    def spans(self, commits: Iterable[CommitFacts]) -> PathSpans:
        """Where and when other commits may have used up what sessions wrote of these."""
        found = PathSpans()
        times = {name: [w.act.at for w in all_] for name, all_ in self._touched.items()}
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


class _FileView:
    """What sessions wrote of one file of one commit. What can be told of a writing is found out
    once, not for each of its lines: a commit may hold thousands of them."""

    def __init__(
        self, content: Content, commit: CommitFacts, file: FileFacts, ancestry: Ancestry
    ) -> None:
        self._content = content
        self._commit = commit
        self._file = file
        self._ancestry = ancestry
        self._first = commit.authored_at - LOOK_BACK
        self._last = commit.committed_at + SLACK
        self._same: dict[tuple[int, str], bool] = {}  # by writing and path
        self._uses: dict[tuple[int, str], Uses] = {}  # by writing and sign
        self._lines = {"+": self._indexed("+"), "-": self._indexed("-")}

    def _indexed(self, sign: str) -> list[tuple[str, LineWrites, LineWrites]]:
        """By path, who wrote lines of that sign, and who took them away."""
        wrote, took = self._content.added, self._content.removed
        if sign == "-":
            wrote, took = took, wrote
        found = []
        for path in _paths(self._file):
            name = last_part(path)
            if name in wrote:
                found.append((path, wrote[name], took.get(name, {})))
        return found

    def writers(self, lines: _Lines) -> Iterator[Write]:
        """Yield the writing of each of the lines that the commit has from a session."""
        sign = lines.sign
        if sign == "moved":
            mover = self._content.mover(self._commit, self._file)
            if mover is not None and not self.is_used(sign, 0, mover):
                yield mover
            return
        for key in self._known(lines):
            write = self._writer(sign, key)
            if write is None or self.is_used(sign, key, write):
                continue
            # else the file was removed since, and made anew
            if sign == "-" or self.gone_at <= write.act.at:
                yield write

    def _known(self, lines: _Lines) -> Iterable[int]:
        """Those of the lines that a session wrote."""
        indexed = self._lines[lines.sign]
        if len(indexed) == 1:
            return filter(indexed[0][1].__contains__, lines.keys)
        return [key for key in lines.keys if any(key in wrote for _, wrote, _ in indexed)]

    @cached_property
    def gone_at(self) -> int:
        """When a session last removed the file, or a folder it was in."""
        removals = self._content.gone_before(self._commit, self._file)
        return max((write.act.at for write in removals), default=0)

    @cached_property
    def _again(self) -> set[int]:
        """Lines that the commit only moves."""
        return set(each(self._file.added)).intersection(each(self._file.removed))

    def _writer(self, sign: str, key: int) -> Write | None:
        """Who wrote a line last; None if it was taken away again."""
        last: Write | None = None
        for path, wrote, took in self._lines[sign]:
            writes = wrote.get(key)
            if writes is not None:
                # A whole file holds old lines too: one that the commit only moves may be such.
                write = self._latest(writes, path, whole=key not in self._again)
                if write is not None and (last is None or write.act.at > last.act.at):
                    last = write
            if last is not None and key in took:
                taken = self._latest(took[key], path)
                if taken is not None and taken.act.at > last.act.at:
                    return None
        return last

    def _latest(self, writes: Iterable[Write], path: str, *, whole: bool = True) -> Write | None:
        """The last of these that may be in the commit; they are in order, newest first."""
        for write in writes:
            act = write.act
            if act.at < self._first:
                break
            if act.at > self._last or (not whole and act.kind == "whole"):
                continue
            asked = (id(write), path)
            same = self._same.get(asked)
            if same is None:
                same = self._same[asked] = self._content.is_of(write, path)
            if same:
                return write
        return None

    def is_used(self, sign: str, key: int, write: Write) -> bool:
        """Return whether an ancestor of the commit has committed that line since it was written."""
        asked = (id(write), sign)
        uses = self._uses.get(asked)
        if uses is None:
            uses = self._uses[asked] = self._uses_of(write, sign)
        for lines in uses:
            for other in reversed(lines.get(key, ())):
                if other is self._commit or other.committed_at < write.act.at:
                    continue
                if self._ancestry.descends(self._commit.sha, other.sha):
                    return True
        return False

    def _uses_of(self, write: Write, sign: str) -> Uses:
        """Where commits are found that used up lines of the writing."""
        # Of a whole file, a line that was taken out later was there before: not new in that
        # writing.
        signs = ("+", "-") if write.act.kind == "whole" else (sign,)
        used = self._content.used
        found = []
        for path in {*_paths(self._file), *self._content.places_before(write)}:
            found += [used[sign + path] for sign in signs if sign + path in used]
        return found


def _count(lines: Iterable[_Lines], *, telling: bool = False) -> int:
    """How many lines there are, or how many that tell something."""
    return sum(len(some.keys) for some in lines if not (telling and some.minor))


def _wanted(commits: Iterable[CommitFacts]) -> dict[str, set[int]]:
    """By the name of the file, the lines that these commits change."""
    found: dict[str, set[int]] = {}
    for commit in commits:
        for file in commit.files:
            for path in _paths(file):
                found.setdefault(last_part(path), set()).update(each(_all(file)))
    return found


def _all(file: FileFacts) -> bytes:
    return file.added + file.removed + file.minor_added + file.minor_removed


def _common(commits: Iterable[CommitFacts], sessions: Iterable[SessionActivity]) -> set[int]:
    """Lines that stand in so many files that they are nobody's: counted first, looked at only if
    there are many."""
    files = [(file.path, file.added) for commit in commits for file in commit.files]
    files += [(_short(act.path), act.added) for acts in sessions for act in acts.written]
    seen = Counter(chain.from_iterable(set(each(packed)) for _, packed in files))
    many = {key for key, count in seen.items() if count > COMMON}
    paths: dict[int, set[str]] = {key: set() for key in many}
    for path, packed in files if many else ():
        for key in many.intersection(each(packed)):
            paths[key].add(_short(path))
    return {key for key, own in paths.items() if len(own) > COMMON}


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
