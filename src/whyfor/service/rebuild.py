"""rebuild: make the database again from the journal and the segments."""

from __future__ import annotations

import time
from contextlib import closing

import msgspec

from whyfor.capture.faults import writable
from whyfor.capture.rebuild import MissingBytes
from whyfor.capture.recover import rebuild_database, recover
from whyfor.config import Settings
from whyfor.locks import LOCK_WAIT, ingest_lock
from whyfor.model.errors import NotFound
from whyfor.model.progress import Announce
from whyfor.recall.block_files import publish_blocks
from whyfor.recall.remember import remember_waiting
from whyfor.store.open import open_store
from whyfor.story.approval_log import renew_approvals
from whyfor.story.tasks.scan import scan_tasks


class RebuildReport(msgspec.Struct):
    sessions: int
    records: int
    events: int
    bytes: int
    gaps: list[MissingBytes]
    seconds: float
    repairs: list[str] = []


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
        with closing(open_store(settings.database)) as store:
            remember_waiting(store)
            scan_tasks(store, settings.tasks.keys)
            renew_approvals(store)
            publish_blocks(settings, store)
    return RebuildReport(
        sessions=totals.sessions,
        records=totals.records,
        events=totals.events,
        bytes=totals.bytes,
        gaps=gaps,
        seconds=round(time.monotonic() - begun, 3),
        repairs=repairs,
    )
