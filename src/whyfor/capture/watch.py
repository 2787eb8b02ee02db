"""Find which of the agents' files changed, by polling: often for files being written, less and less
for others.

Nothing here opens a file, and the number of files looked at per second is limited.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

from whyfor.agents.base import Agent
from whyfor.capture import tail
from whyfor.capture.discover import FoundFile

# seconds since it changed, seconds between two looks
STEPS = ((15.0, 0.1), (60.0, 0.5), (600.0, 2.0))
SOON = STEPS[0][1]
# between two looks at a file that changes at every look: the more there are, the longer
STEADY = (0.2, 0.5)
MANY = 50  # files being written
ROUND = 2.0  # seconds between two looks at folders, and at files at rest
AT_REST = 200  # of each, that are looked at in one round
YOUNG = 3600.0  # seconds for which a file that could not be understood yet is offered again
_TICK = 50_000_000  # ns: a folder that changed this recently may change again without showing it


class _File:
    __slots__ = ("agent", "changed", "gap", "next", "stat", "unread")

    def __init__(self, agent: Agent, stat: tail.Stat | None, changed: float) -> None:
        self.agent = agent
        self.stat = stat
        self.changed = changed  # when it was last seen to have changed, by our clock
        self.gap = SOON
        self.next = 0.0
        self.unread = False  # was offered, and is not understood yet


class _Folder:
    __slots__ = ("agent", "mtime", "root")

    def __init__(self, agent: Agent, root: Path) -> None:
        self.agent = agent
        self.root = root
        self.mtime: int | None = None


class Watch:
    """Polls files and directories below the agents' roots. `look` returns those to read, each at
    least once."""

    def __init__(
        self,
        roots: Iterable[tuple[Agent, Path]],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self.looks = 0  # at files and folders, since the beginning
        self._clock = clock
        self._wall = wall
        self._roots = list(roots)
        self._files: dict[str, _File] = {}
        self._lively: dict[str, _File] = {}
        self._rest: OrderedDict[str, None] = OrderedDict()
        self._folders: OrderedDict[str, _Folder] = OrderedDict()
        self._round = 0.0

    def __len__(self) -> int:
        return len(self._files)

    def due(self) -> float:
        """Return the seconds until there is something to look at."""
        first = min((file.next for file in self._lively.values()), default=self._round)
        return max(0.0, min(first, self._round) - self._clock())

    def look(self, at_once: bool = False) -> list[FoundFile]:
        """Return the files that changed or are new. With `at_once`, files just written are looked
        at even if they are not due."""
        now = self._clock()
        lately = now - STEPS[0][0] if at_once else now
        found: list[FoundFile] = []
        if now >= self._round:
            self._round = now + ROUND
            found += self._new()
            found += self._at_rest(now)
        for key, file in list(self._lively.items()):
            if (now >= file.next or file.changed > lately) and self._changed(key, file, now):
                found.append(FoundFile(file.agent, Path(key)))
        return found

    def is_lively(self, path: Path) -> bool:
        return str(path) in self._lively

    def expect(self, agent: Agent, path: Path) -> None:
        """Look at this file soon, as if it had just changed: something was reported that will be
        written there."""
        now, key = self._clock(), str(path)
        file = self._files.get(key)
        if file is None:
            # A hook can name any file; only files in an agent's own folders are read.
            if ".." in path.parts or not any(path.is_relative_to(root) for _, root in self._roots):
                return
            if not os.path.isfile(path):  # noqa: PTH113 - never raises, whatever the path is
                return  # its folder will show it
            file = self._files[key] = _File(agent, None, now)
        file.changed, file.gap, file.next = now, SOON, now
        self._wake(key, file)

    def unread(self, items: Iterable[FoundFile]) -> None:
        """Offer these files again while they are young; they could not be understood yet."""
        for item in items:
            file = self._files.get(str(item.path))
            if file is not None and file.stat is not None and self._age(file.stat) < YOUNG:
                file.unread = True
                file.next = self._clock() + ROUND
                self._wake(str(item.path), file)

    # -- files -----------------------------------------------------------------------------------

    def _changed(self, key: str, file: _File, now: float) -> bool:
        """Return whether to read it; set when to look again."""
        before = file.stat
        after = self._look_at(key)
        if after is None:
            return False
        file.stat = after
        if after != before:
            steady = now - file.changed < 2 * file.gap
            file.gap = min(self._steady(), file.gap * 2) if steady else SOON
            file.changed, file.next, file.unread = now, now + file.gap, False
            return True
        if file.unread and self._age(after) >= YOUNG:
            file.unread = False
        step = next((gap for limit, gap in STEPS if now - file.changed < limit), None)
        if file.unread:
            step = ROUND
        elif step is None:
            del self._lively[key]
            self._rest[key] = None
        file.next = now + (step or ROUND)
        return file.unread

    def _steady(self) -> float:
        few, many = STEADY
        return few + (many - few) * min(1.0, len(self._lively) / MANY)

    def _at_rest(self, now: float) -> list[FoundFile]:
        """Return as many of the idle files as the limit allows, in turn."""
        found = []
        for _ in range(min(AT_REST, len(self._rest))):
            key = next(iter(self._rest))
            self._rest.move_to_end(key)
            file = self._files[key]
            if (after := self._look_at(key)) is None or after == file.stat:
                continue
            file.stat, file.changed, file.gap, file.next = after, now, SOON, now + SOON
            self._wake(key, file)
            found.append(FoundFile(file.agent, Path(key)))
        return found

    def _look_at(self, key: str) -> tail.Stat | None:
        """Return the file's state; None if it is gone. If it comes back, its directory shows it."""
        self.looks += 1
        try:
            return _stat(key)
        except OSError:
            del self._files[key]
            self._lively.pop(key, None)
            self._rest.pop(key, None)
            if (folder := self._folders.get(os.path.dirname(key))) is not None:  # noqa: PTH120 - thousands of these
                folder.mtime = None
            return None

    def _wake(self, key: str, file: _File) -> None:
        self._rest.pop(key, None)
        self._lively[key] = file

    def _age(self, stat: tail.Stat) -> float:
        return max(0.0, (self._wall() - stat.mtime) / 1e9)

    # -- folders ---------------------------------------------------------------------------------

    def _new(self) -> list[FoundFile]:
        """Return files that were not there before, in the order their agent wants them read."""
        found: list[FoundFile] = []
        for agent, root in self._roots:
            if str(root) not in self._folders and str(root) not in self._files:
                is_file = os.path.isfile(root)  # noqa: PTH113 - never raises, whoever may look there
                found += self._met(agent, [root]) if is_file else self._below(agent, root, root)
        for _ in range(min(AT_REST, len(self._folders))):
            key = next(iter(self._folders))
            self._folders.move_to_end(key)
            folder = self._folders[key]
            self.looks += 1
            mtime = _mtime(key)
            if mtime is None:
                del self._folders[key]
            elif mtime != folder.mtime:
                found += self._below(folder.agent, folder.root, Path(key))
        return found

    def _below(self, agent: Agent, root: Path, folder: Path) -> list[FoundFile]:
        """Return the files below a folder that are new, and remember the folders in it."""
        todo = [str(folder)]
        while todo:
            base = todo.pop()
            known = self._folders.get(base) or _Folder(agent, root)
            # Taken before it is listed: what comes in between shows at the next look.
            mtime = _mtime(base)
            if mtime is None:
                continue
            known.mtime = mtime if abs(self._wall() - mtime) > _TICK else None
            inner = _folders_in(base)
            if inner is None:
                continue  # not ours to list; ingest says so
            self._folders[base] = known
            todo += [path for path in inner if path not in self._folders]
        below = folder if agent.local else root
        try:
            return self._met(agent, agent.find(below, lambda _error: None))
        except Exception:  # noqa: BLE001 - the next plain ingest says why, and reads what it can
            return []

    def _met(self, agent: Agent, paths: Iterable[Path]) -> list[FoundFile]:
        found: list[FoundFile] = []
        now = self._clock()
        for path in paths:
            key = str(path)
            if key in self._files:
                continue
            try:
                stat = _stat(key)
            except OSError:
                continue
            age = self._age(stat)
            file = self._files[key] = _File(agent, stat, now - age)
            if age < STEPS[-1][0]:
                self._lively[key] = file
            else:
                self._rest[key] = None
            found.append(FoundFile(agent, path))
        return found


def _stat(key: str) -> tail.Stat:
    if key.endswith(".db"):
        return tail.stat(Path(key))
    found = os.stat(key)  # noqa: PTH116 - a Path would cost as much again
    return tail.Stat(found.st_ino, found.st_size, found.st_mtime_ns)


def _mtime(folder: str) -> int | None:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - as above
    except OSError:
        return None


def _folders_in(folder: str) -> list[str] | None:
    """Return the folders in a folder; None if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return None
