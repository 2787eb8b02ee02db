"""The pauses in effect, and how they get into the journal."""

from __future__ import annotations

import time

import msgspec

from whyfor.capture.filters import pauses
from whyfor.config import Settings
from whyfor.model.reports import Paused
from whyfor.store.journal import Journal, PauseEntry
from whyfor.store.protocol import Store


def active_pauses(settings: Settings) -> list[PauseEntry]:
    now = now_ms()
    return [
        found
        for found in pauses.pending_pauses(settings.home)
        if found.until is None or now < found.until
    ]


def describe_pause(found: PauseEntry) -> Paused:
    if found.session_id:
        return Paused(
            "session", found.since, found.until, session=f"{found.agent}:{found.session_id}"
        )
    if found.repository:
        tree = found.folders[0] if found.folders else found.repository
        return Paused("repository", found.since, found.until, repository=tree)
    return Paused("everything", found.since, found.until)


def settle_pauses(settings: Settings, store: Store, record: Journal) -> None:
    """Write pauses that began or ended into the journal, and delete the files of those that are
    over. Needs the ingest lock."""
    fresh = pauses.pending_pauses(settings.home)
    if not fresh:
        return
    before = {found.id: found for found in store.capture.pauses()}
    now = now_ms()
    with store.transaction(record):
        for found in pauses.merge_pauses(before.values(), fresh):
            if found.until is None or now < found.until:
                found = msgspec.structs.replace(found, folders=_with_new_trees(found))
            if before.get(found.id) != found:
                record.add(found)
                store.capture.save_pause(found)
    for found in fresh:
        if found.until is not None and found.until <= now:
            (settings.home / pauses.FOLDER / found.id).unlink(missing_ok=True)


def _with_new_trees(found: PauseEntry) -> list[str]:
    """Add work trees created since the pause began, so that they count even if they are deleted
    before the next ingest."""
    if not found.repository:
        return found.folders
    return list(dict.fromkeys([*found.folders, *pauses.work_trees(found.repository)]))


def now_ms() -> int:
    return time.time_ns() // 1_000_000
