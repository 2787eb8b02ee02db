"""The page that shows what leaves this machine: the outbox, a preview, and the last tries."""

from __future__ import annotations

import time

import msgspec

from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.model.sync import (
    COMMIT,
    HELD,
    LOCAL,
    REFUSED,
    SENT,
    SESSION,
    WAITS,
    OutboxItem,
    Remote,
    SyncTry,
)
from whyfor.store.open import LocalStore, reading_local
from whyfor.sync.preview import StoryPreview, item_title, preview_items
from whyfor.sync.remotes import load_key, load_remotes

ROWS = 50
_DAY = 86_400_000


class OutboxRow(msgspec.Struct, frozen=True):
    """A story in the outbox, as the page shows it."""

    item: OutboxItem
    title: str
    project: str


class RemoteLine(msgspec.Struct, frozen=True):
    """A shared project, in the page's head."""

    remote: Remote
    project: str
    who: str


class TryLine(msgspec.Struct, frozen=True):
    """A try to send, and the name of its project."""

    tried: SyncTry
    project: str


class SyncPage(msgspec.Struct, frozen=True):
    remotes: list[RemoteLine]
    rows: list[OutboxRow]  # oldest first, without what was sent
    sent_rows: list[OutboxRow]  # newest first
    tries: list[TryLine]  # newest first
    waiting: int
    waiting_bytes: int | None  # None: not known yet of all
    sent_today: int
    last_sent: int | None
    refused: int
    local: int  # sessions without a commit that was pushed
    fault: OutboxItem | None  # what went wrong with what waits
    unconfirmed: bool
    chosen: StoryPreview | None
    facts: dict[str, str] = {}  # of the chosen story, as they are sent


def sync_page(settings: Settings, chosen: str = "") -> SyncPage:
    """Return what the page shows; `chosen` names the story whose words are shown."""
    decided = load_remotes(settings)
    now = int(time.time() * 1000)
    with reading_local(settings) as store:
        projects = store.projects.known()
        names = {number: project.name for number, project in projects}
        known = {project.identity: project.name for _, project in projects}
        lines = [_line(settings, store, remote) for remote in decided.remotes]
        items = [item for item in store.outbox.items() if item.kind in (COMMIT, SESSION)]
        picked = _picked(items, chosen)
        sent = _newest_sent(items)
        tries = [TryLine(one, known.get(one.project, "")) for one in store.outbox.tries(10)]
        rows = [_row(store, item, names) for item in _open(items)[:ROWS]]
        facts = _facts(store, picked)
        sent_rows = [_row(store, item, names) for item in sent[:ROWS]]
    waiting = [item for item in items if item.state == WAITS]
    sizes = [item.size for item in waiting if item.size is not None]
    return SyncPage(
        remotes=lines,
        rows=rows,
        sent_rows=sent_rows,
        tries=tries,
        waiting=len(waiting),
        waiting_bytes=sum(sizes) if len(sizes) == len(waiting) else None,
        sent_today=sum((item.sent_at or 0) > now - _DAY for item in sent),
        last_sent=sent[0].sent_at if sent else None,
        refused=sum(item.state == REFUSED for item in items),
        local=sum(item.state in (LOCAL, HELD) for item in items),
        fault=next((item for item in waiting if item.error), None),
        unconfirmed=any(each.confirmed_at is None for each in decided.remotes),
        chosen=_preview(settings, picked) if picked else None,
        facts=facts,
    )


def _open(items: list[OutboxItem]) -> list[OutboxItem]:
    """Return what is not sent, and the last few that stay here."""
    kept = [item for item in items if item.state == LOCAL]
    return [item for item in items if item.state not in (SENT, LOCAL)] + kept[-5:]


def _newest_sent(items: list[OutboxItem]) -> list[OutboxItem]:
    """Return what was sent, newest first."""
    sent = [item for item in items if item.state == SENT]
    return sorted(sent, key=lambda item: -(item.sent_at or 0))


def _picked(items: list[OutboxItem], chosen: str) -> OutboxItem | None:
    """Return the story whose words are shown: the one that was chosen, else the first that
    waits."""
    named = [item for item in items if item.name == chosen]
    return next(iter(named or [item for item in items if item.state == WAITS]), None)


def _facts(store: LocalStore, item: OutboxItem | None) -> dict[str, str]:
    """Return what is told of a commit beside its conversation."""
    if item is None or item.kind != COMMIT:
        return {}
    told = store.checkpoints.of_commits([item.name]).get(item.name)
    if told is None:
        return {}
    facts = {"commit": told.commit[:10]}
    if told.annotation is not None:
        facts["tag"] = told.annotation.tag.lower()
    facts["evidence"] = ", ".join(filter(None, (told.evidence, told.confidence)))
    facts["files"] = str(len(told.files))
    return facts


def _preview(settings: Settings, item: OutboxItem) -> StoryPreview | None:
    decided = load_remotes(settings)
    with reading_local(settings) as store:
        known = dict(store.projects.known())
    project = known.get(item.project)
    for remote in decided.remotes:
        if project is not None and remote.project == project.identity:
            found = preview_items(settings, decided, remote, [item], lines=True)
            return found[0] if found else None
    return None


def _line(settings: Settings, store: LocalStore, remote: Remote) -> RemoteLine:
    found = store.projects.find(remote.project)
    key = load_key(settings, remote.url)
    return RemoteLine(remote, found[1].name if found else remote.project, key.who if key else "")


def _row(store: LocalStore, item: OutboxItem, names: dict[int, str]) -> OutboxRow:
    return OutboxRow(item, item_title(store, item), names.get(item.project, ""))


def require_item(settings: Settings, number: int) -> OutboxItem:
    """Return an item of the outbox by its number."""
    with reading_local(settings) as store:
        for item in store.outbox.items():
            if item.id == number:
                return item
    raise NotFound("this story is not in the outbox any more", "Load the page again.")
