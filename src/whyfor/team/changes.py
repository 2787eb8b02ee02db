"""What changes in projects, for those who listen: each process hears it from the database, and
tells it to members.

The database says which project changed, to every process. What changed is read as one of those who
listen, so that row-level security decides about it; that somebody is still a member, and the token
still good, is asked again before anything is sent, at most a few seconds after it was last known.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from whyfor.model.errors import WhyforError
from whyfor.model.sync import SharedChange
from whyfor.store.shared import TeamDatabase

CHECK = 4.0  # seconds after which rights are asked for again
BATCH = 500
_ALIVE = 15.0  # seconds between signs of life
_READS = 256  # that are kept for others who are at the same place


class ChangeReader(Protocol):
    """One member's access to one project, as far as its changes."""

    id: int
    visibility: str

    @property
    def person(self) -> int: ...

    def changes(self, after: int, limit: int) -> list[SharedChange]: ...


class _Waiter:
    """Somebody who waits for news of a project, in some event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()

    def wake(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.news.set)


class ChangeHub:
    def __init__(self, database: TeamDatabase) -> None:
        self._waiting: dict[int, set[_Waiter]] = {}
        self._rounds: dict[int, int] = {}  # by project: how often it changed
        self._reads: dict[tuple[int, ...], asyncio.Task[list[SharedChange]]] = {}
        self._lock = threading.Lock()
        self._listener = database.change_listener(self.heard, self.wake_all)

    def start(self) -> None:
        self._listener.start()

    def close(self) -> None:
        self._listener.stop()

    # -- hearing -----------------------------------------------------------------------------------

    def heard(self, payload: str) -> None:
        """Take a notice: a project and the number of a change; from any thread."""
        project = payload.partition(" ")[0]
        if project.isdigit():
            self._wake([int(project)])

    def wake_all(self) -> None:
        """Let everybody look: something may have been missed, or somebody's rights have ended."""
        self._wake(list(self._waiting))

    def _wake(self, projects: list[int]) -> None:
        with self._lock:
            waiting = [waiter for each in projects for waiter in self._waiting.get(each, ())]
            for each in projects:
                self._rounds[each] = self._rounds.get(each, 0) + 1
        for waiter in waiting:
            waiter.wake()

    # -- listening ---------------------------------------------------------------------------------

    @property
    def listeners(self) -> int:
        return sum(len(waiting) for waiting in self._waiting.values())

    async def changes(
        self, access: ChangeReader, after: int, ask_again: Callable[[], ChangeReader]
    ) -> AsyncIterator[list[SharedChange]]:
        """Yield what changes after a number, as it happens; an empty list every now and then. Ends
        when `ask_again` raises: the token is gone, or the person is not a member any more."""
        waiter = _Waiter()
        with self._lock:
            self._waiting.setdefault(access.id, set()).add(waiter)
        checked = said = time.monotonic()
        try:
            while True:
                waiter.news.clear()
                found = await self._read(access, after)
                if time.monotonic() - checked > CHECK:
                    access = await asyncio.to_thread(ask_again)
                    checked = time.monotonic()
                if found:
                    after = found[-1].id
                if found or time.monotonic() - said > _ALIVE:
                    said = time.monotonic()
                    yield found
                if not found and await _waits_in_vain(waiter, CHECK):
                    continue
                if not found:
                    checked -= CHECK * 0.5  # news may be that rights have ended
        except WhyforError:
            return
        finally:
            with self._lock:
                self._waiting[access.id].discard(waiter)

    async def _read(self, access: ChangeReader, after: int) -> list[SharedChange]:
        """Return what changed after a number. Members at the same place, who may read the same,
        ask once together."""
        person = 0 if access.visibility == "stories" else access.person
        loop = id(asyncio.get_running_loop())
        key = (access.id, person, after, self._rounds.get(access.id, 0), loop)
        task = self._reads.get(key)
        if task is None:
            if len(self._reads) >= _READS:
                self._reads.clear()
            task = asyncio.create_task(asyncio.to_thread(access.changes, after, BATCH))
            self._reads[key] = task
        return await asyncio.shield(task)


async def _waits_in_vain(waiter: _Waiter, seconds: float) -> bool:
    try:
        await asyncio.wait_for(waiter.news.wait(), seconds)
    except TimeoutError:
        return True
    return False
