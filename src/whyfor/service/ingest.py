"""ingest and rebuild: the verbs that write."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from whyfor.capture import spool, tail
from whyfor.capture.checkout_list import publish_stories
from whyfor.capture.discover import at_home, at_paths, chosen
from whyfor.capture.exclusions import excluded, tell_hooks
from whyfor.capture.filters.paused import PauseFilter
from whyfor.capture.filters.pauses import Pauses
from whyfor.capture.ingest import Ingest, IngestCounts, wall_clock
from whyfor.capture.permissions import tighten
from whyfor.capture.recover import (
    REBUILD_HINT,
    first_line,
    is_damaged,
    rebuild_database,
    recover,
    sound,
)
from whyfor.capture.unreadable import Unreadable
from whyfor.config import Settings
from whyfor.locks import ingest_lock
from whyfor.model.errors import CorruptStore, Disagreement, NotFound, StoreError
from whyfor.model.paths import to_text
from whyfor.model.progress import Announce
from whyfor.service.pause import settle
from whyfor.store.blobs import FolderBlobs
from whyfor.store.open import journal, open_store
from whyfor.store.protocol import Store
from whyfor.store.tombstones import require_salt
from whyfor.story.links.save import link_waiting

if TYPE_CHECKING:  # an ingest that finds nothing new never pays for it
    from whyfor.agents.base import Agent
    from whyfor.capture.rebuild import MissingBytes

LOCK_WAIT = 120.0
# as long as a hook takes a started ingest's word that it will read the spool
BACKGROUND_WAIT = 600.0
LAG = 0.3  # seconds an agent may write its last lines after its hook has run
LOG_BYTES = 256 << 10


class IngestReport(msgspec.Struct):
    files: int
    sessions: int
    subagents: int
    records: int
    events: int
    bytes: int
    new_records: int
    unparsed: int
    unknown_types: int
    unrecognised: int
    withheld: int  # records of this run that were written in a pause
    excluded: int  # sessions of excluded projects and agents: not stored
    unplaced: int  # sessions that may be such: their folder is not known yet
    forgotten: int  # sessions that [retention] says are too old
    unreadable: list[Unreadable]
    seconds: float
    repairs: list[str] = []  # what was damaged or lost in the store, and what was done about it


class RebuildReport(msgspec.Struct):
    sessions: int
    records: int
    events: int
    bytes: int
    gaps: list[MissingBytes]
    seconds: float
    repairs: list[str] = []


def ingest(  # noqa: PLR0913 - two bars, and three ways to be started
    settings: Settings,
    paths: Iterable[Path] = (),
    agent: str | None = None,
    announce: Announce | None = None,
    linking: Announce | None = None,
    *,
    background: bool = False,
    wait: float = LOCK_WAIT,
) -> IngestReport:
    """Read everything new (with paths only those), then find the stories of commits it may
    belong to.

    A database that turns out to be damaged on the way is rebuilt, and what was left to do is
    done. In the background: on behalf of hooks, the last of which just ran.
    """
    begun = time.monotonic()
    agents = chosen(agent)
    given = list(paths)
    with writable(settings), ingest_lock(settings.home, BACKGROUND_WAIT if background else wait):
        if background:
            # Hooks from now on start another: of those before it, the agents have written by the
            # end of the pause.
            (settings.home / "hook" / "pending").unlink(missing_ok=True)
            time.sleep(LAG)
        tighten(settings.home)
        repairs = recover(settings, announce)
        run = partial(_ingest, settings, given, agents, announce, linking, every=agent is None)
        try:
            report = run()
        except CorruptStore:
            repairs += recover(settings, announce, damaged=True)
            report = run()
    report.repairs = repairs
    report.seconds = round(time.monotonic() - begun, 3)
    return report


def _ingest(
    settings: Settings,
    given: list[Path],
    agents: list[Agent],
    announce: Announce | None,
    linking: Announce | None,
    *,
    every: bool,
) -> IngestReport:
    """One run under the lock; CorruptStore if the database turns out to be damaged."""
    unreadable: list[Unreadable] = []
    with sound(settings):
        found = list(
            at_paths(given, agents, unreadable) if given else at_home(agents, settings, unreadable)
        )
        progress = announce(sum(tail.size(item.path) for item in found)) if announce else None
        with closing(open_store(settings.database)) as store:
            out = load_filters(settings, store)
            stones = require_salt(store.forget.tombstones(settings.home))
            run = Ingest(
                store, FolderBlobs(settings.segments), journal(settings), wall_clock, stones, out
            )
            counts = run.run(
                found, unreadable, progress, [] if given else spool.files(settings.home)
            )
            if counts.database_errors and is_damaged(settings):
                raise CorruptStore("the database is damaged", REBUILD_HINT)
            if not given and every:
                _count(store, counts)
            if link_waiting(store, journal(settings), linking):
                publish_stories(settings, store)
            expired = _retain(settings, store)
            totals = store.stats.totals()
    return IngestReport(
        files=counts.files,
        new_records=counts.new_records,
        unrecognised=counts.unrecognised,
        withheld=out.records + run.gate.records,
        excluded=len(counts.excluded),
        unplaced=len(counts.unplaced),
        forgotten=expired,
        unreadable=counts.unreadable,
        seconds=0.0,
        repairs=[],
        **msgspec.structs.asdict(totals),
    )


def load_filters(settings: Settings, store: Store) -> PauseFilter:
    """Pauses and exclusions as they are now; hooks are told the same."""
    settle(settings, store, journal(settings))
    found = excluded(settings, store)
    tell_hooks(settings, found, store)
    return PauseFilter(Pauses(settings.home, store.capture.pauses()), found)


def _retain(settings: Settings, store: Store) -> int:
    """How many sessions were too old."""
    if not settings.retention.limits:
        return 0
    from whyfor.service.forget import retain  # here: few people have a limit

    try:
        report = retain(settings, store)
    except Disagreement as error:  # what is too old can wait; what is new cannot
        log_error(settings, error)
        return 0
    return len(report.sessions) if report else 0


def _count(store: Store, counts: IngestCounts) -> None:
    """So that other verbs can say it: nothing is left out silently."""
    marks = {"excluded": len(counts.excluded), "unplaced": len(counts.unplaced)}
    if any(store.mark(name) != number for name, number in marks.items()):
        with store.transaction():
            for name, number in marks.items():
                store.set_mark(name, number)


def ingest_for_hooks(settings: Settings) -> None:
    """Nobody is there to be told of an error: it goes to a file of bounded size."""
    try:
        ingest(settings, background=True)
    except Exception as error:  # noqa: BLE001 - written down: a hook's ingest has nobody to tell
        log_error(settings, error)


def log_error(settings: Settings, error: Exception) -> None:
    log = settings.home / "hook" / "errors.log"
    with suppress(OSError):
        big = log.exists() and log.stat().st_size > LOG_BYTES
        with log.open("w" if big else "a", encoding="utf-8") as file:
            file.write(
                f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {type(error).__name__}: "
                f"{first_line(error)}\n"
            )


def rebuild(settings: Settings, announce: Announce | None = None) -> RebuildReport:
    """Make the database again from journal and segments; the old one serves readers until the
    new one is whole.

    First the journal is completed from the database, where it was damaged.
    """
    begun = time.monotonic()
    if not settings.journal.exists() and not settings.database.exists():
        raise NotFound(
            "there is no journal to rebuild from", "Read what your agents wrote: whyfor ingest"
        )
    with writable(settings), ingest_lock(settings.home, LOCK_WAIT):
        repairs = recover(settings, thorough=True)
        if not settings.journal.exists():
            raise NotFound(
                "there is nothing to rebuild", "Read what your agents wrote: whyfor ingest"
            )
        gaps, totals = rebuild_database(settings, announce)
    return RebuildReport(
        sessions=totals.sessions,
        records=totals.records,
        events=totals.events,
        bytes=totals.bytes,
        gaps=gaps,
        seconds=round(time.monotonic() - begun, 3),
        repairs=repairs,
    )


@contextmanager
def writable(settings: Settings) -> Iterator[None]:
    """The system's errors while writing to our own home, as ours."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and not type(error).__module__.startswith("obstore"):
            raise
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            raise  # it is not about our home
        raise StoreError(
            f"cannot write to {to_text(settings.home)}: {first_line(error)}",
            "Nothing was lost. Free some space or check permissions, then: whyfor ingest",
        ) from error
