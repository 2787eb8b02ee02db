"""Forgetting everywhere: what is deleted here is deleted on the server too, and stays so."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable

from whyfor.config import Settings
from whyfor.model.sync import FORGET, SENT, WAITS
from whyfor.store.open import reading_local
from whyfor.store.protocol import OutboxStore
from whyfor.sync.worker import change_outbox

COPIES = ("remote", "stories")  # folders in Whyfor's directory


def forget_everywhere(settings: Settings, sessions: Iterable[str], commits: Iterable[str]) -> int:
    """Have sessions (agent:id) and stories of commits deleted by every server that something is
    shared with; return how many deletions wait. They outlive what they delete."""
    names = [*sessions, *(f"commit:{sha}" for sha in commits)]
    now = int(time.time() * 1000)
    with reading_local(settings) as store:
        projects = list(store.outbox.shares())

    def change(outbox: OutboxStore) -> None:
        for project in projects:
            for name in names:
                outbox.put(project, FORGET, name, WAITS, now)

    if projects and names:
        change_outbox(settings, change)
    return len(projects) * len(names)


def drop_copies(settings: Settings) -> None:
    """Delete this machine's copies of what was shared, by it and by others. What is still shared is
    fetched again when somebody reads it."""
    for name in COPIES:
        shutil.rmtree(settings.home / name, ignore_errors=True)


def send_again(settings: Settings) -> None:
    """Have everything that was sent compared with what there is now: what changed is replaced."""
    with reading_local(settings) as store:
        sent = [item.id for item in store.outbox.items(states=[SENT])]
    if sent:
        change_outbox(settings, lambda outbox: outbox.set_states(sent, WAITS))
