"""ingest and rebuild: the verbs that write."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from whyfor.capture import spool, tail
from whyfor.capture.checkout_list import publish_stories
from whyfor.capture.discover import at_paths, chosen, files_at_home
from whyfor.capture.faults import log_error, writable
from whyfor.capture.filters.load import load_filters
from whyfor.capture.ingest import Ingest, IngestCounts
from whyfor.capture.permissions import tighten
from whyfor.capture.recover import (
    REBUILD_HINT,
    is_damaged,
    recover,
    renew_database,
    sound,
)
from whyfor.capture.unreadable import Unreadable
from whyfor.config import Settings
from whyfor.hook.rule_form import PREPARED
from whyfor.live.serve_lock import serves
from whyfor.locks import LOCK_WAIT, ingest_lock
from whyfor.model.errors import Busy, CorruptStore, Disagreement, StoreError, WhyforError
from whyfor.model.progress import Announce
from whyfor.model.times import wall_clock
from whyfor.recall.block_files import renew_memory
from whyfor.store.blobs import FolderBlobs
from whyfor.store.open import journal, open_store
from whyfor.store.price_table import load_prices
from whyfor.store.protocol import Store
from whyfor.store.tombstones import require_salt
from whyfor.story.approval_log import renew_approvals
from whyfor.story.links.save import link_waiting
from whyfor.story.status.standing import StatusSink
from whyfor.story.telemetry_cost import renew_telemetry

if TYPE_CHECKING:  # an ingest that finds nothing new never pays for it
    from whyfor.agents.base import Agent

# as long as a hook takes a started ingest's word that it will read the spool
BACKGROUND_WAIT = 600.0
ASK_EVERY = 60.0  # seconds
JOIN_WAIT = 3.0  # seconds for what runs beside the loop to end; a model may be answering
_PRICES = "prices"  # a mark: which ones everything was priced with
LAG = 0.3  # seconds an agent may write its last lines after its hook has run


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
    given = list(paths)
    agents = chosen(agent, None if given else settings)
    with writable(settings), ingest_lock(settings.home, BACKGROUND_WAIT if background else wait):
        if background:
            # Hooks from now on start another: of those before it, the agents have written by the
            # end of the pause.
            (settings.home / "hook" / "pending").unlink(missing_ok=True)
            time.sleep(LAG)
        tighten(settings.home)
        repairs = recover(settings, announce)
        renew_database(settings, announce)
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
            at_paths(given, agents, unreadable)
            if given
            else files_at_home(agents, settings, unreadable)
        )
        if not given:
            _read_telemetry(settings)
        progress = announce(sum(tail.file_size(item.path) for item in found)) if announce else None
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
            _price(settings, store)
            if link_waiting(store, journal(settings), linking):
                publish_stories(settings, store)
            _prepare_rules(settings, store)
            renew_approvals(store)
            renew_telemetry(store, wall_clock())
            expired = _retain(settings, store)
            renew_derived(settings, store)
            _prune_snapshots(settings.home)
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


def renew_derived(settings: Settings, store: Store, limit: int | None = None) -> int:
    """Make what is remembered of sessions that have something new, or of the newest `limit` of
    them, and which tasks they worked on; return how many sessions. Under the ingest lock."""
    from whyfor.story.tasks.renew import TaskReader  # here: as little as possible at the start

    tombstones = partial(store.forget.tombstones, settings.home)
    keys = settings.tasks.keys
    TaskReader(store, journal(settings), keys, wall_clock(), tombstones).renew()
    return renew_memory(settings, store, limit)


def _read_telemetry(settings: Settings) -> None:
    """Take over what agents wrote to telemetry files, into the spool that is read next."""
    if (settings.home / "telemetry").is_dir():
        from whyfor.service.telemetry import read_written_telemetry  # here: few people have any

        try:
            read_written_telemetry(settings, wall_clock())
        except OSError as error:
            log_error(settings, StoreError(f"cannot keep telemetry: {error}"))


def _price(settings: Settings, store: Store) -> None:
    """Price everything again if the prices are others than last time."""
    stamp = load_prices(settings.home).stamp
    if store.mark(_PRICES) != stamp:
        with store.transaction():
            store.capture.price_again()
            store.set_mark(_PRICES, stamp)


def _prepare_rules(settings: Settings, store: Store) -> None:
    """Prepare the rules for hooks, if there are any or were any."""
    places = (settings.home / "rules.toml", settings.home / "hook" / PREPARED)
    if any(place.exists() for place in places):
        from whyfor.story.rules.prepare import prepare_rules  # here: most people have no rules

        prepare_rules(settings, store)


def _prune_snapshots(home: Path) -> None:
    if (home / "snapshots").is_dir():
        from whyfor.capture.shell_edits import prune_snapshots  # here: few people take any

        prune_snapshots(home)


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


def watch_agents(settings: Settings, hub: StatusSink, stop: threading.Event) -> None:
    """Read what agents write as they write it, until `stop` is set; never raises."""
    from whyfor.live.loop import LiveLoop  # a plain ingest does without them
    from whyfor.live.monitor import Monitor

    work = [_index_now_and_then, _sync_now_and_then]
    if settings.memory.model:
        work.append(_ask_now_and_then)
    threads = [threading.Thread(target=one, args=(settings, stop), daemon=True) for one in work]
    for thread in threads:
        thread.start()
    monitor = Monitor(settings)
    LiveLoop(settings, hub, sweep, remember=renew_derived, monitor=monitor).run(stop)
    for thread in threads:
        thread.join(JOIN_WAIT)


def _ask_now_and_then(settings: Settings, stop: threading.Event) -> None:
    from whyfor.recall.model_round import ask_quietly  # most people have no model

    while not stop.wait(ASK_EVERY):
        ask_quietly(settings)


def _sync_now_and_then(settings: Settings, stop: threading.Event) -> None:
    """Send what waits to the team, as soon as somebody shares something."""
    from whyfor.sync.loop import sync_continuously  # a plain ingest does without it

    sync_continuously(settings, stop)


def _index_now_and_then(settings: Settings, stop: threading.Event) -> None:
    """Make vectors in the background, if search by meaning is installed."""
    # here: most people have no such model
    from whyfor.recall.embeddings.index import index_in_background, wants_background

    if wants_background(settings):
        index_in_background(settings, stop)


def sweep(settings: Settings, wait: float) -> None:
    """Run a whole ingest, also for what is too old to be kept; Busy if others write for long."""
    ingest(settings, wait=wait)


def read_new(settings: Settings) -> None:
    """Read what agents wrote since the last ingest, for a command that tells of this moment. What
    a server reads anyway, what others read now, and what cannot be written, is left; a home into
    which nothing was read yet is left empty."""
    if not settings.database.exists() or serves(settings):
        return
    try:
        ingest(settings, wait=0.0)
    except Busy:
        return
    except (WhyforError, OSError) as error:
        log_error(settings, error)


def is_sharing(settings: Settings) -> bool:
    """Return whether something is shared from here with a team."""
    return (settings.home / "remotes.json").exists()


def ingest_for_hooks(settings: Settings) -> None:
    """Nobody is there to be told of an error: it goes to a file of bounded size."""
    try:
        ingest(settings, background=True)
        if settings.memory.model:
            from whyfor.recall.model_round import ask_quietly  # most people have no model

            ask_quietly(settings)
        if (settings.home / "semantic.lock").exists():  # somebody has made vectors here
            from whyfor.recall.embeddings.index import index_after_ingest

            index_after_ingest(settings)
    except Exception as error:  # noqa: BLE001 - written down: a hook's ingest has nobody to tell
        log_error(settings, error)
