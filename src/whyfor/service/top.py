"""Following what agents do from a terminal: whoever looks first also reads, unless a server
does.

A server reads better than we could beside it: while one runs, only the store is looked at. Of
several who look and no server, one reads; when it leaves, the next does.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager

from whyfor.config import Settings
from whyfor.live.loop import LOOK
from whyfor.live.monitor import Monitor
from whyfor.live.notify import Notifier, Terminal
from whyfor.live.serve_lock import serves
from whyfor.live.tracker import StatusTracker
from whyfor.locks import hold_lock
from whyfor.model.errors import NotFound, WhyforError
from whyfor.model.status import LiveStatus
from whyfor.service.ingest import watch_agents
from whyfor.story.status.standing import StatusSink

ASK = 2.0  # seconds between two questions who reads


def standings(settings: Settings) -> list[LiveStatus]:
    """Where all sessions stand, from the store as it is; nothing is read or written for it."""
    attending = StatusTracker(settings)
    try:
        attending.look()
        attending.judge()
        return attending.standings()
    except NotFound:
        return []
    finally:
        attending.close()


def follow(
    settings: Settings,
    hub: StatusSink,
    stop: threading.Event,
    say: Callable[[str], None],
    looked_at: Callable[[], Collection[str]] = tuple,
    ring: Callable[[str], None] | None = None,
) -> None:
    """Until somebody stops it; never raises. What it has to say beside the standings is
    `trouble` and `say`; `ring` writes to the terminal."""
    while not stop.is_set():
        with ExitStack() as stack:
            reads = not serves(settings) and stack.enter_context(_first(settings))
            terminal = Terminal(ring, alone=not reads)
            audience = Notifier(settings, hub, say, looked_at, terminal)
            stack.callback(audience.close)
            if reads:
                watch_agents(settings, audience, _Until(stop, lambda: serves(settings)))
            else:
                _look_on(
                    settings,
                    audience,
                    _Until(stop, lambda: not serves(settings) and _free(settings)),
                )


class _Until(threading.Event):
    """Set when another is, or when something has come about; that is asked now and then only."""

    def __init__(self, stop: threading.Event, came: Callable[[], bool]) -> None:
        super().__init__()
        self._stop, self._came = stop, came
        self._due = time.monotonic() + ASK

    def is_set(self) -> bool:
        if not self._stop.is_set() and time.monotonic() >= self._due:
            self._due = time.monotonic() + ASK
            if self._came():
                self.set()
        return self._stop.is_set() or super().is_set()

    def pause(self, seconds: float) -> None:
        self._stop.wait(seconds)


def _look_on(settings: Settings, hub: StatusSink, stop: _Until) -> None:
    """What another reads is told as soon as it is in the store. Whoever reads also writes down
    what needs a person; here it is only looked at."""
    monitor = Monitor(settings, record=False)
    attending = StatusTracker(settings, monitor=monitor)
    try:
        while not stop.is_set():
            try:
                learnt = attending.learnt
                attending.look()
                if attending.learnt != learnt:
                    hub.publish()
                if attending.judge():
                    hub.stand(attending.standings())
                told = attending.watch()
                if told is not None:
                    hub.attend(monitor.firings, told)
                hub.trouble = None
            except NotFound:
                hub.trouble = None  # nothing is kept yet
            except WhyforError as error:
                hub.trouble = error.message
                attending.close()
            except OSError as error:
                hub.trouble = f"cannot read the store: {error}"
                attending.close()
            stop.pause(min(LOOK, max(0.05, attending.due())))
    finally:
        attending.close()


@contextmanager
def _first(settings: Settings) -> Iterator[bool]:
    """Whether nobody else who looks reads; while it lasts nobody will. A home one cannot write
    to is only looked at."""
    try:
        lock = hold_lock(settings.home / "top.lock")
    except WhyforError:
        yield False
        return
    with closing(lock):
        yield True


def _free(settings: Settings) -> bool:
    with _first(settings) as first:
        return first and os.access(settings.home, os.W_OK)
