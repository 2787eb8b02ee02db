"""Content as evidence: lines a session wrote or took away that a commit changes in the same file.

A writing counts for the first commit that holds it: what an ancestor has committed since is used up. Who wrote a line
last before the commit gets the credit, unless it was taken away again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache

import msgspec

from backstory.model.ids import fold
from backstory.story.acts import Acts, Written
from backstory.story.ancestry import Ancestry
from backstory.story.commits import CommitFacts, FileFacts
from backstory.story.lines import each
from backstory.story.places import Places

DAY = 86_400_000
LOOK_BACK = 30 * DAY  # how old a line may be when it is committed
SLACK = 5000  # ms between a write and the commit that holds it, clocks and rounding
_MASK = (1 << 64) - 1


class Write(msgspec.Struct, frozen=True):
    session: int
    foreign: bool
    act: Written


class Share(msgspec.Struct):
    """What one session has of a commit."""

    lines: int = 0
    seq: int = 0
    at: int = 0  # its last credited write

    def credit(self, write: Write, lines: int = 1) -> None:
        self.lines += lines
        self.seq = max(self.seq, write.act.seq)
        self.at = max(self.at, write.act.at)


class Content:
    """Built for the commits to judge: lines none of them changes need not be kept."""

    def __init__(
        self, sessions: Mapping[int, Acts], foreign: Set[int], places: Places, judged: Iterable[CommitFacts]
    ) -> None:
        self._places = places
        self._added: dict[int, list[Write]] = {}
        self._removed: dict[int, list[Write]] = {}
        self._gone: dict[str, list[Write]] = {}
        self._moved: dict[str, list[Write]] = {}
        self._touched: dict[str, list[Write]] = {}
        self._used: dict[tuple[int, str], list[tuple[int, str, str]]] = {}
        wanted, names = _wanted(judged)
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

    def shares(self, commit: CommitFacts, ancestry: Ancestry) -> tuple[dict[int, Share], int]:
        """By session what it wrote of the commit, and of how many lines in all."""
        shares: dict[int, Share] = {}
        total = 0
        for file in commit.files:
            if file.status == "R":
                total += 1
                self._credit(shares, self._mover(commit, file, ancestry))
            remover = self._remover(commit, file, ancestry) if file.status == "D" else None
            both = set(each(file.added)).intersection(each(file.removed))
            for sign, packed in (("+", file.added), ("-", file.removed)):
                for key in each(packed):
                    total += 1
                    self._credit(shares, remover or self._writer(commit, file, sign, key, key in both, ancestry))
        return shares, total

    def _credit(self, shares: dict[int, Share], write: Write | None) -> None:
        if write is not None:
            shares.setdefault(write.session, Share()).credit(write)

    def _writer(
        self, commit: CommitFacts, file: FileFacts, sign: str, key: int, moved: bool, ancestry: Ancestry
    ) -> Write | None:
        last: Write | None = None
        for path in _paths(file):
            salted = key ^ _salt(_name(path))
            wrote, took = (self._added, self._removed) if sign == "+" else (self._removed, self._added)
            for write in self._valid(wrote.get(salted, ()), commit, path):
                # A whole file holds old lines too: one that the commit only moves may be such.
                if (last is None or write.act.at > last.act.at) and not (moved and write.act.kind == "whole"):
                    last = write
            if last is not None:
                after = (write for write in self._valid(took.get(salted, ()), commit, path))
                if any(write.act.at > last.act.at for write in after):
                    return None
        if last is None or self._is_used(key, sign, last, commit, file, ancestry):
            return None
        if sign == "+" and self._removed_since(commit, file.path, last):
            return None
        return last

    def _remover(self, commit: CommitFacts, file: FileFacts, ancestry: Ancestry) -> Write | None:
        """Who removed the file, itself or a folder it was in."""
        found = [write for path in _folders(file.path) for write in self._valid_gone(commit, path)]
        last = max(found, key=lambda write: write.act.at, default=None)
        used = last is None or self._is_used(0, "gone", last, commit, file, ancestry)
        return None if used else last

    def _removed_since(self, commit: CommitFacts, path: str, write: Write) -> bool:
        return any(gone.act.at > write.act.at for part in _folders(path) for gone in self._valid_gone(commit, part))

    def _valid_gone(self, commit: CommitFacts, path: str) -> Iterator[Write]:
        for write in self._gone.get(_name(path), ()):
            where = write.act.old or write.act.path
            if _in_time(write, commit) and self._places.same(where, path, foreign=write.foreign):
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
            if _in_time(write, commit) and self._places.same(write.act.path, path, foreign=write.foreign):
                yield write

    # -- what ancestors have committed already ---------------------------------------------------

    def use_up(self, commit: CommitFacts) -> None:
        for file in commit.files:
            if file.status in ("D", "R"):
                self._use(0, "gone", commit, file.path if file.status == "D" else file.old_path or "")
            if file.status == "R":
                self._use(0, "moved", commit, file.path)
            salt = _salt(_name(file.path))
            for sign, packed in (("+", file.added), ("-", file.removed)):
                for key in set(each(packed)):
                    if (key ^ salt) in self._added or (key ^ salt) in self._removed:
                        self._use(key, sign, commit, file.path)

    def _use(self, key: int, sign: str, commit: CommitFacts, path: str) -> None:
        self._used.setdefault((key, sign), []).append((commit.committed_at, commit.sha, path))

    def _is_used(
        self, key: int, sign: str, write: Write, commit: CommitFacts, file: FileFacts, ancestry: Ancestry
    ) -> bool:
        paths = _paths(file)
        before = write.act.old if write.act.kind != "moved" else None  # it was written there, then moved
        return any(
            when >= write.act.at
            and (path in paths or (before and self._places.same(before, path, foreign=write.foreign)))
            and ancestry.descends(commit.sha, sha)
            for when, sha, path in reversed(self._used.get((key, sign), ()))
        )

    # -- the rest --------------------------------------------------------------------------------

    def touches(self, commit: CommitFacts) -> Iterator[tuple[str, Write]]:
        """Writes to the commit's files before it, whether or not it holds them."""
        for file in commit.files:
            for write in self._valid(self._touched.get(_name(file.path), ()), commit, file.path):
                yield file.path, write

    def oldest(self, commits: Iterable[CommitFacts]) -> int | None:
        """The time of the oldest write that may be in one of the commits."""
        return min((write.act.at for commit in commits for write in self._candidates(commit)), default=None)

    def _candidates(self, commit: CommitFacts) -> Iterator[Write]:
        for file in commit.files:
            if file.status == "D":
                yield from (write for path in _folders(file.path) for write in self._valid_gone(commit, path))
            if file.status == "R":
                yield from self._valid(self._moved.get(_name(file.path), ()), commit, file.path)
            for path in _paths(file):
                salt = _salt(_name(path))
                for key in {*each(file.added), *each(file.removed)}:
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
                wanted.update(key ^ salt for packed in (file.added, file.removed) for key in each(packed))
    return wanted, names


def owners(sessions: Mapping[int, Acts]) -> dict[str, int]:
    """Of a call that stands in several sessions (forks copy them), the session that ended first."""
    owner: dict[str, int] = {}
    for number, acts in sorted(sessions.items(), key=lambda item: (item[1].last_at or 0, item[0])):
        calls = [*(act.call for act in acts.written), *(act.call for act in acts.made)]
        for call in calls:
            if call is not None:
                owner.setdefault(call, number)
    return owner


def _with_moves(written: list[Written]) -> Iterator[Written]:
    """What was written before a file moved counts for its new place too."""
    if all(act.kind != "moved" for act in written):
        yield from written
        return
    before: list[Written] = []
    for act in written:
        if act.kind == "moved" and act.old:
            before += [
                msgspec.structs.replace(known, path=act.path + known.path[len(act.old) :], old=known.old or known.path)
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
