"""Watching: while somebody serves, what agents write is read as they write it. One thread, one
loop.

It does what `whyfor ingest` does, under the same lock, a few files at a time; whoever reads or
ingests beside it goes on as before. Nothing waits here that could be lost: what was not read yet
is in the agents' files and the spool.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from whyfor import config
from whyfor.agents import AGENTS
from whyfor.capture import tail
from whyfor.capture.discover import FoundFile, roots
from whyfor.capture.doorbell import Doorbell, is_asked
from whyfor.capture.faults import log_error
from whyfor.capture.watch import Watch
from whyfor.config import Settings
from whyfor.live.ingester import IncrementalIngest, RenewMemory, file_stamp
from whyfor.live.monitor import Monitor
from whyfor.live.tracker import StatusTracker
from whyfor.model.errors import Busy, NotFound, StoreError, WhyforError
from whyfor.story.status.standing import StatusSink

LOOK = 0.5  # seconds between looks at the spool and at what others wrote to the store
BUSY = 0.2  # until a lock that somebody holds is tried again
WAIT = 0.05  # for the lock: a loop that waits for longer does nothing else
STUCK = 120.0  # after which it is said that somebody holds it
BACKOFF = (1.0, 2.0, 5.0, 10.0)
SLICE_FILES = 128
SLICE_BYTES = 4 << 20
LAG = 0.3  # seconds an agent may write its last lines after its hook has run
PATIENCE = 5.0  # for which what is written goes before stories that hooks wait for
REMEMBER = 3.0  # seconds between two looks for what is worth remembering
REMEMBERED = 20  # sessions at a time: what is written meanwhile waits
REST = 50  # times as long as that took, so that it takes little of the time there is
LINK = 60.0  # seconds between two looks for stories, if no hook asks for one
# between two plain ingests of everything: they also see to what is too old to be kept
SWEEP = 600.0
FIRST_SWEEP = 30.0
UNREAD = 50


class LiveLoop:
    """The loop. `ingest` is a whole `whyfor ingest`, given the settings and how many seconds it may
    wait for the lock; `remember` renews the memory of sessions, without it only `ingest` does;
    `monitor` says what a person should know."""

    def __init__(
        self,
        settings: Settings,
        hub: StatusSink,
        ingest: Callable[[Settings, float], object],
        clock: Callable[[], float] = time.monotonic,
        remember: RenewMemory | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        self.settings = settings
        self.hub = hub
        self._ingest = ingest
        self._renew = remember
        self._clock = clock
        self._bell = Doorbell(settings.home)
        self._watch = _watch(settings)
        self._taking = IncrementalIngest(settings)
        self._monitor = monitor
        self._attending = StatusTracker(settings, monitor=monitor)
        self._fresh: dict[str, FoundFile] = {}  # to read now
        # to read when there is time: what lay there before we began
        self._backlog: dict[str, FoundFile] = {}
        self._begun = False
        self._spool: list[tuple[str, int]] = []
        self._drain = True
        self._one_by_one = 0
        self._failures = 0
        self._kept_out: float | None = None  # since when somebody else has the lock
        self._retry = self._look_due = self._hang_due = 0.0
        self._read = True  # something was read since stories were last looked for
        self._news = False  # something was read or linked since memory was last renewed
        self._remember_due = 0.0
        self._link_due = self._sweep_due = self._tidy_due = self._asked_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; it is checked at least twice a second."""
        rung = False
        while not stop.is_set():
            rung = self._bell.wait(self.turn(rung))
        self.close(rung)

    def close(self, rung: bool = False) -> None:
        """Remove the doorbell, and read what hooks left to us, unless another process is reading
        it."""
        self._bell.take_down()
        if rung or is_asked(self.settings.home) or self._fresh:
            self._guarded(lambda: self._take(WAIT))
        self._taking.close()
        self._attending.close()
        self._bell.close()

    def turn(self, rung: bool = False) -> float:
        """Do everything that is due; return the seconds until something is due again."""
        now = self._clock()
        if now >= self._hang_due:
            self._bell.hang()
            self._hang_due = now + 10 * LOOK
        self._guarded(lambda: self._gather(rung, now))
        if now >= self._retry:
            failures = self._failures
            if self._fresh or self._backlog or self._drain:
                self._guarded(lambda: self._take(WAIT))
            self._guarded(self._attend)
            if now >= self._tidy_due and (not self._fresh or self._asked_for() > PATIENCE):
                self._tidy()
            if self._failures == failures:
                self._failures, self.hub.trouble = 0, self._stuck()
        elif not self._failures:
            # somebody has the lock: what it brings is told all the same
            self._guarded(self._attend)
        return self._until()

    def _until(self) -> float:
        now = self._clock()
        times = [self._watch.due(), LOOK]
        if self._fresh or self._backlog or self._drain:
            times.append(self._retry - now)
        if self._taking.asked:
            times.append(max(self._retry - now, self._tidy_due - now, LAG - self._asked_for()))
        if not self._failures:
            times += [self._look_due - now, self._attending.due()]
        return max(0.0, min(times))

    def _asked_for(self) -> float:
        """Seconds for which a hook has been waiting for its story."""
        return self._clock() - self._asked_at if self._taking.asked else 0.0

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run a step; the loop continues whatever happens. An error is kept to be shown, and the
        step is repeated later."""
        try:
            work()
        except Busy:
            self._retry = self._clock() + BUSY
        except WhyforError as error:
            self._failed(error)
        except OSError as error:
            self._failed(
                StoreError(f"cannot use {self.settings.home}: {error}", "See: whyfor doctor")
            )
        except Exception as error:  # noqa: BLE001 - a fault of ours: written down, and capture goes on
            log_error(self.settings, error)
            self._failed(
                StoreError(
                    f"{type(error).__name__}: {error}", "Please report it; see: whyfor doctor"
                )
            )

    def _stuck(self) -> str | None:
        """Whoever has the lock for so long reads very much, or hangs; both are worth knowing."""
        seconds = self._clock() - self._kept_out if self._kept_out else 0.0
        return (
            f"another process has been reading for {seconds / 60:.0f} min"
            if seconds >= STUCK
            else None
        )

    def _failed(self, error: WhyforError) -> None:
        self.hub.trouble = error.message
        self._taking.close()
        self._attending.close()
        self._retry = self._clock() + BACKOFF[min(self._failures, len(BACKOFF) - 1)]
        self._failures += 1

    # -- what there is to read --------------------------------------------------------------------

    def _gather(self, rung: bool, now: float) -> None:
        found = self._watch.look(at_once=rung)  # what a hook tells of is written by now, or soon
        if self._begun:
            self._fresh.update({str(item.path): item for item in found})
        else:
            for item in found:
                place = self._fresh if self._watch.is_lively(item.path) else self._backlog
                place[str(item.path)] = item
            self._begun = True
        self._drain = self._drain or rung
        if rung or now >= self._look_due:
            spool = _spooled(self.settings.home)
            self._drain = self._drain or spool != self._spool or is_asked(self.settings.home)
            self._spool = spool

    def _take(self, wait: float) -> None:
        """Read the next few files, those being written first, and the spool."""
        self._reload()
        batch = self._slice()
        try:
            unread = self._taking.take(batch, wait)
        except Busy:
            self._kept_out = self._kept_out or self._clock()
            raise
        except (WhyforError, OSError):
            raise
        except Exception:
            # One of these files is more than we can read. Alone it is passed over until it changes.
            if len(batch) == 1:
                self._passed(batch)
            self._one_by_one = len(batch)
            raise
        self._kept_out = None
        for item in self._taking.unreadable:
            log_error(self.settings, StoreError(f"cannot read {item.path}: {item.reason}"))
        self._passed(batch)
        self._one_by_one = max(0, self._one_by_one - 1)
        self._drain = False
        self._read = self._news = True
        if self._taking.asked and not self._asked_at:
            self._asked_at = self._clock()
        self._watch.unread(unread[:UNREAD])
        self._look_due = 0.0  # to be told at once

    def _slice(self) -> list[FoundFile]:
        batch: list[FoundFile] = []
        size = 0
        for item in [*self._fresh.values()] or [*self._backlog.values()]:
            size += tail.file_size(item.path)
            if batch and (self._one_by_one or size > SLICE_BYTES or len(batch) >= SLICE_FILES):
                break
            batch.append(item)
        return batch

    def _passed(self, batch: list[FoundFile]) -> None:
        for item in batch:
            self._fresh.pop(str(item.path), None)
            self._backlog.pop(str(item.path), None)

    def _reload(self) -> None:
        """Reload config.toml if it changed; exclusions apply from the next read on."""
        if file_stamp(self.settings.home / "config.toml") == self._taking.configured:
            return
        fresh = IncrementalIngest(self.settings)
        # raises while it is not right
        fresh.settings = self.settings = config.load(self.settings.env)
        self._taking.close()
        fresh.asked, self._taking = self._taking.asked, fresh
        self._watch = _watch(self.settings)
        self._begun = False

    # -- what follows -----------------------------------------------------------------------------

    def _attend(self) -> None:
        now = self._clock()
        if now >= self._look_due:
            self._look_due = now + LOOK
            self._learn()
        if self._attending.judge():
            self.hub.stand(self._attending.standings())
        told = self._attending.watch()
        if told is not None and self._monitor is not None:
            self.hub.attend(self._monitor.firings, told)

    def _learn(self) -> None:
        """Read what is new in the store, whichever process wrote it."""
        learnt = self._attending.learnt
        try:
            named = self._attending.look()
        except NotFound:
            return  # nothing is kept yet
        for agent, path in named:
            if agent in AGENTS:
                self._watch.expect(AGENTS[agent], path)
        if self._attending.learnt != learnt:
            self.hub.publish()

    def _tidy(self) -> None:
        """Link commits, or run a full ingest now and then, when nothing waits to be read. A failure
        is logged and stops no reading."""
        try:
            if self._asked_for() >= LAG or (
                self._read and self._clock() >= self._link_due and not self._backlog
            ):
                self._link()
            elif self._renew and self._news and not self._backlog and self._rested():
                self._remember(self._renew)
            elif not self._backlog and self._clock() >= self._sweep_due:
                self._sweep()
        except Busy:
            self._tidy_due = self._clock() + BUSY
        except Exception as error:  # noqa: BLE001 - written down, and capture goes on
            log_error(self.settings, error)
            self._taking.close()
            self._linked()

    def _link(self) -> None:
        """Link one project at a time, so that new data need not wait for all of them."""
        self._reload()
        if self._taking.link(WAIT):
            self._taking.asked, self._asked_at = True, self._clock() - LAG
        else:
            self._linked()
        self._look_due = 0.0  # to be told at once

    def _linked(self) -> None:
        self._taking.asked, self._asked_at = False, 0.0
        self._news, self._remember_due = True, 0.0  # commits make notes
        self._read, self._link_due = False, self._clock() + LINK

    def _rested(self) -> bool:
        return self._clock() >= self._remember_due

    def _remember(self, renew: RenewMemory) -> None:
        """Make notes, cards and titles of what was read, so that pages need not wait for the next
        full ingest."""
        begun = self._clock()
        self._news = False
        try:
            self._news = self._taking.remember(renew, REMEMBERED, WAIT)
        except Busy:
            self._news = True
            raise
        finally:
            now = self._clock()
            self._remember_due = now + max(REMEMBER, REST * (now - begun))
        self._look_due = 0.0  # to be told at once

    def _sweep(self) -> None:
        first = not self._sweep_due
        self._sweep_due = self._clock() + (FIRST_SWEEP if first else SWEEP)
        if not first:
            self._reload()
            self._ingest(self.settings, WAIT)


def _watch(settings: Settings) -> Watch:
    return Watch((agent, root) for agent in AGENTS.values() for root in roots(agent, settings))


def _spooled(home: Path) -> list[tuple[str, int]]:
    try:
        with os.scandir(home / "spool") as entries:
            return sorted((entry.name, entry.stat().st_size) for entry in entries)
    except OSError:
        return []
