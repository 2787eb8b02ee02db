"""Content as evidence: lines a session wrote or took away that a commit changes in the same
file.

A writing counts for the first commit that holds it: what an ancestor has committed since is used
up. Who wrote a line last before the commit gets the credit, unless it was taken away again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache

import msgspec

from whyfor.model.ids import fold
from whyfor.model.times import DAY
from whyfor.story.links.activity import SessionActivity, WrittenEdit
from whyfor.story.links.ancestry import Ancestry
from whyfor.story.links.commits import SMALL, CommitFacts, FileFacts
from whyfor.story.links.line_keys import each
from whyfor.story.links.paths import Places

LOOK_BACK = 30 * DAY  # how old a line may be when it is committed
COMMON = 15  # a line in more files than this is nobody's
SLACK = 5000  # ms between a write and the commit that holds it, clocks and rounding
_MASK = (1 << 64) - 1


class Write(msgspec.Struct, frozen=True):
    session: int
    foreign: bool
    act: WrittenEdit


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
        self._added: dict[int, list[Write]] = {}
        self._removed: dict[int, list[Write]] = {}
        self._gone: dict[str, list[Write]] = {}
        self._moved: dict[str, list[Write]] = {}
        self._touched: dict[str, list[Write]] = {}
        self._used: dict[int, list[CommitFacts]] = {}  # by line and path
        self._paths: dict[str, set[str]] = {}  # of commits, by name
        wanted, names = _wanted(judged)
        self._common = _common(judged, sessions)
        owner = owners(sessions)
        for number, acts in sessions.items():
            for act in _with_moves(acts.written):
                if act.call is None or owner[act.call] == number:  # else a fork's copy
                    self._index(Write(number, number in foreign, act), wanted, names)

    def _index(self, write: Write, wanted: set[int], names: set[str]) -> None:
        name = _name(write.act.path)
        if write.act.kind in ("gone", "moved"):
            self._gone.setdefault(_name(write.act.old or write.act.path), []).append(write)
        if name not in names:
            return
        self._touched.setdefault(name, []).append(write)
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
        lines = [line for file in commit.files for line in self._lines(file)]
        if sum(not minor for _, _, _, minor in lines) >= SMALL:
            lines = [line for line in lines if not line[3]]
        moved = {
            (key, file.path)
            for file in commit.files
            for key in set(each(file.added)) & set(each(file.removed))
        }
        removers = {
            f.path: self._remover(commit, f, ancestry) for f in commit.files if f.status == "D"
        }
        gone = {
            f.path: max((w.act.at for w in self._gone_before(commit, f)), default=0)
            for f in commit.files
        }
        shares: dict[int, ContentOverlap] = {}
        by_file: Counter[tuple[str, int | None]] = Counter()
        for file, sign, key, minor in lines:
            if sign == "moved":
                write = self._mover(commit, file, ancestry)
            else:
                again = (key, file.path) in moved
                write = removers.get(file.path) or self._writer(
                    commit, file, sign, key, again, ancestry
                )
                if write is not None and sign == "+" and gone[file.path] > write.act.at:
                    write = None  # the file was removed since, and made anew
            by_file[file.path, None] += 1
            if write is not None:
                shares.setdefault(write.session, ContentOverlap()).credit(write, minor=minor)
                by_file[file.path, write.session] += not minor
        for (path, session), count in by_file.items():
            if session is not None and count >= 2 and count * 2 >= by_file[path, None]:
                shares[session].owns = True
        return shares, len(lines)

    def _lines(self, file: FileFacts) -> Iterator[tuple[FileFacts, str, int, bool]]:
        """What a commit does to a file, piece by piece: sign, key, and whether it is hardly
        telling."""
        if file.status == "R":
            yield file, "moved", 0, False
        for sign, packed, minor in (
            ("+", file.added, file.minor_added),
            ("-", file.removed, file.minor_removed),
        ):
            yield from ((file, sign, key, key in self._common) for key in each(packed))
            yield from ((file, sign, key, True) for key in each(minor))

    def _writer(
        self,
        commit: CommitFacts,
        file: FileFacts,
        sign: str,
        key: int,
        moved: bool,
        ancestry: Ancestry,
    ) -> Write | None:
        wrote, took = (self._added, self._removed) if sign == "+" else (self._removed, self._added)
        last: Write | None = None
        for path in _paths(file):
            salted = key ^ _salt(_name(path))
            for write in self._valid(wrote[salted], commit, path) if salted in wrote else ():
                # A whole file holds old lines too: one that the commit only moves may be such.
                if (last is None or write.act.at > last.act.at) and not (
                    moved and write.act.kind == "whole"
                ):
                    last = write
            if last is not None and salted in took:
                at = last.act.at
                if any(write.act.at > at for write in self._valid(took[salted], commit, path)):
                    return None
        if last is None or self._is_used(key, sign, last, commit, file, ancestry):
            return None
        return last

    def _remover(self, commit: CommitFacts, file: FileFacts, ancestry: Ancestry) -> Write | None:
        """Who removed the file, itself or a folder it was in."""
        last = max(self._gone_before(commit, file), key=lambda write: write.act.at, default=None)
        used = last is None or self._is_used(0, "gone", last, commit, file, ancestry)
        return None if used else last

    def _gone_before(self, commit: CommitFacts, file: FileFacts) -> Iterator[Write]:
        """Removals of the file, or of a folder it is in."""
        for path in _folders(file.path) if self._gone else ():
            for write in self._gone.get(_name(path), ()):
                where = write.act.old or write.act.path
                if _in_time(write, commit) and self._places.same(
                    where, path, foreign=write.foreign
                ):
                    yield write

    def _mover(self, commit: CommitFacts, file: FileFacts, ancestry: Ancestry) -> Write | None:
        found = [
            write
            for write in self._valid(self._moved.get(_name(file.path), ()), commit, file.path)
            if self._places.same(write.act.old or "", file.old_path or "", foreign=write.foreign)
        ]
        last = max(found, key=lambda write: write.act.at, default=None)
        used = last is None or self._is_used(0, "moved", last, commit, file, ancestry)
        return None if used else last

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
            self._paths.setdefault(_name(file.path), set()).add(file.path)
            salt = _salt(_name(file.path))
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
        self,
        key: int,
        sign: str,
        write: Write,
        commit: CommitFacts,
        file: FileFacts,
        ancestry: Ancestry,
    ) -> bool:
        paths = {*_paths(file)}
        if write.act.old and write.act.kind != "moved":  # it was written there, then moved
            known = self._paths.get(_name(write.act.old), ())
            paths |= {
                path
                for path in known
                if self._places.same(write.act.old, path, foreign=write.foreign)
            }
        # Of a whole file, a line that was taken out later was there before: not new in that
        # writing.
        signs = ("+", "-") if write.act.kind == "whole" else (sign,)
        return any(
            other.committed_at >= write.act.at and ancestry.descends(commit.sha, other.sha)
            for path in paths
            for one in signs
            for other in reversed(self._used.get(key ^ _salt(one + path), ()))
        )

    # -- the rest --------------------------------------------------------------------------------

    def touches(self, commit: CommitFacts) -> Iterator[tuple[str, Write]]:
        """Writes to the commit's files before it, whether or not it holds them."""
        for file in commit.files:
            for write in self._valid(self._touched.get(_name(file.path), ()), commit, file.path):
                yield file.path, write

    def oldest(self, commits: Iterable[CommitFacts]) -> int | None:
        """The time of the oldest write that may be in one of the commits."""
        return min(
            (write.act.at for commit in commits for write in self._candidates(commit)), default=None
        )

    def _candidates(self, commit: CommitFacts) -> Iterator[Write]:
        for file in commit.files:
            if file.status == "D":
                yield from self._gone_before(commit, file)
            if file.status == "R":
                yield from self._valid(self._moved.get(_name(file.path), ()), commit, file.path)
            for path in _paths(file):
                salt = _salt(_name(path))
                for key in set(each(_all(file))):
                    for found in (self._added, self._removed):
                        yield from self._valid(found.get(key ^ salt, ()), commit, path)


def _wanted(commits: Iterable[CommitFacts]) -> tuple[set[int], set[str]]:
    """Salted keys of all lines these commits change, and the names of their files."""
    wanted: set[int] = set()
    names: set[str] = set()
    for commit in commits:
        for file in commit.files:
            for path in _paths(file):
                name = _name(path)
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


def _with_moves(written: list[WrittenEdit]) -> Iterator[WrittenEdit]:
    """What was written before a file moved counts for its new place too."""
    if all(act.kind != "moved" for act in written):
        yield from written
        return
    before: list[WrittenEdit] = []
    for act in written:
        if act.kind == "moved" and act.old:
            before += [
                msgspec.structs.replace(
                    known, path=act.path + known.path[len(act.old) :], old=known.old or known.path
                )
                for known in before
                if known.path == act.old or known.path.startswith(act.old + "/")
            ]
        before.append(act)
    yield from before


def _in_time(write: Write, commit: CommitFacts) -> bool:
    return commit.authored_at - LOOK_BACK <= write.act.at <= commit.committed_at + SLACK


def _paths(file: FileFacts) -> tuple[str, ...]:
    return (file.path, file.old_path) if file.old_path else (file.path,)


def _folders(path: str) -> Iterator[str]:
    yield path
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


@lru_cache(maxsize=1 << 16)
def _salt(name: str) -> int:
    """Lines are looked up by the name of their file too; mixed into the key, that costs nothing."""
    return fold(name) & _MASK
