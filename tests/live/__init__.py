"""The live loop as `whyfor serve` runs it: one thread that reads, one hub, somebody who listens."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from whyfor.config import Settings
from whyfor.live.feed import Cursor, FeedItem
from whyfor.live.hub import Hub, StreamFilter
from whyfor.live.notify import Notifier
from whyfor.service.ingest import watch_agents

SECONDS = 30.0  # until something that should have happened is given up


class Live:
    """with Live(settings) as live: live.until(lambda: live.texts("user.prompt") == ["Hello"])"""

    def __init__(self, settings: Settings, *, poll: float = 60.0, notify: bool = False) -> None:
        self.settings = settings
        # so seldom that nothing is heard but by the loop's word
        self.hub = Hub(settings, poll=poll)
        self.heard: list[tuple[float, FeedItem]] = []
        self.complaints: list[str] = []
        self.notifier = (
            Notifier(settings, self.hub, self.complaints.append, set) if notify else None
        )
        self._read = 0
        self._events: list[dict[str, Any]] = []
        self._of: dict[str, list[dict[str, Any]]] = {}
        self.stop = threading.Event()
        self._ready = threading.Event()
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = [
            threading.Thread(target=lambda: asyncio.run(self._listen()), name="listener"),
            threading.Thread(
                target=lambda: watch_agents(settings, self.notifier or self.hub, self.stop),
                name="watcher",
            ),
        ]

    def __enter__(self) -> Live:
        self._threads[0].start()
        assert self._ready.wait(SECONDS)
        self._threads[1].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        self._threads[1].join(SECONDS)
        if self.notifier:
            self.notifier.close()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._ended.set)
        self._threads[0].join(SECONDS)
        assert not any(thread.is_alive() for thread in self._threads)

    async def _listen(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with self.hub.running():
            task = asyncio.create_task(self._hear())
            self._ready.set()
            await self._ended.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _hear(self) -> None:
        async for item in self.hub.subscribe(StreamFilter()):
            if not isinstance(item, Cursor):
                self.heard.append((time.monotonic(), item))

    # -- what was heard ---------------------------------------------------------------------------

    def events(self, session_id: str | None = None) -> list[dict[str, Any]]:
        while self._read < len(self.heard):
            item = self.heard[self._read][1]
            self._read += 1
            if item.type == "event":
                event = json.loads(item.data)
                self._events.append(event)
                self._of.setdefault(event["session_id"], []).append(event)
        return self._events if session_id is None else self._of.get(session_id, [])

    def texts(self, kind: str, session_id: str | None = None) -> list[str]:
        return [event["text"] for event in self.events(session_id) if event["kind"] == kind]

    def commits(self) -> list[dict[str, Any]]:
        """Those whose story was told, each as often as it was."""
        return [json.loads(item.data) for _, item in list(self.heard) if item.type == "commit"]

    def phases(self, session_id: str) -> list[str]:
        """Each once, in order, as long as it lasted."""
        found: list[str] = []
        for _, item in list(self.heard):
            if item.type == "status" and item.session.endswith(f":{session_id}"):
                phase = json.loads(item.data)["phase"]
                found += [phase] if found[-1:] != [phase] else []
        return found

    def until(self, condition: Callable[[], bool], seconds: float = SECONDS) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, (self.hub.trouble, self.events()[-5:])
            time.sleep(0.01)
