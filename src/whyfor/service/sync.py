"""sync: send what was pushed to the team, and show what would be sent."""

from __future__ import annotations

import time

from msgspec.structs import replace

from whyfor.capture.faults import log_error
from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.model.sync import REFUSED, WAITS, Remote
from whyfor.store.open import reading_local
from whyfor.sync.preview import StoryPreview, preview_items, waiting_items
from whyfor.sync.pushes import await_push, begun_pushes
from whyfor.sync.remotes import load_remotes, save_remote
from whyfor.sync.worker import (
    SyncReport,
    change_outbox,
    refresh_outbox,
    run_sync,
)

__all__ = [
    "StoryPreview",
    "SyncReport",
    "agree",
    "preview_sync",
    "remotes_to_confirm",
    "sync_after_hooks",
    "sync_now",
]

_WAIT = 120.0  # seconds for another process that sends
_FRESH = 10 * 60_000  # ms for which a push that began is waited for


def sync_now(settings: Settings, why: str = "whyfor sync") -> SyncReport:
    """Send everything that waits, whenever it was to be tried again, also what was refused."""
    if not load_remotes(settings).remotes:
        raise NotFound("nothing is shared from here", "Share a repository: whyfor remote add URL")
    with reading_local(settings) as store:
        refused = [item.id for item in store.outbox.items(states=[REFUSED])]
    change_outbox(settings, lambda outbox: outbox.set_states(refused, WAITS))
    change_outbox(settings, lambda outbox: outbox.try_now())
    return run_sync(settings, why)


def preview_sync(
    settings: Settings, *, lines: bool = False
) -> list[tuple[Remote, list[StoryPreview]]]:
    """Return what would leave now, for each remote."""
    refresh_outbox(settings)
    decided = load_remotes(settings)
    found = []
    for remote in decided.remotes:
        with reading_local(settings) as store:
            known = store.projects.find(remote.project)
            items = waiting_items(store, known[0]) if known else []
        found.append((remote, preview_items(settings, decided, remote, items, lines=lines)))
    return found


def remotes_to_confirm(settings: Settings) -> list[Remote]:
    """Return the remotes that nobody has agreed to yet."""
    return [each for each in load_remotes(settings).remotes if each.confirmed_at is None]


def agree(settings: Settings, remote: Remote) -> None:
    """Keep that a person saw what would leave to a remote, and agreed."""
    save_remote(settings, replace(remote, confirmed_at=int(time.time() * 1000)))


def sync_after_hooks(settings: Settings) -> None:
    """Send what git's hooks told of, after their ingest. Nobody is there to be told of an error: it
    is kept in the outbox, or goes to a file."""
    if not settings.shares_anything:
        return
    try:
        _await_pushes(settings)
        # whoever is at it may have looked before this push arrived
        run_sync(settings, "git push", wait=_WAIT)
    except Exception as error:  # noqa: BLE001 - written down: a hook's process has nobody to tell
        log_error(settings, error)


def _await_pushes(settings: Settings) -> None:
    """Wait for the pushes that began just now: their hook runs before anything is sent."""
    now = int(time.time() * 1000)
    with reading_local(settings) as store:
        for remote in load_remotes(settings).remotes:
            found = store.projects.find(remote.project)
            if found is None:
                continue
            for push in begun_pushes(store, found[0], now - _FRESH):
                await_push(store, found[0], push)
