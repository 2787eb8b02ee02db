"""share and keep-local: what leaves though nobody pushed it, and what never leaves."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from whyfor.agents import RECORDED
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.sync import COMMIT, HELD, LOCAL, RETRACT, SENT, SESSION, WAITS, OutboxItem
from whyfor.store.open import LocalStore, reading_local
from whyfor.store.protocol import OutboxStore
from whyfor.story.commit_lookup import is_commit, require_commit
from whyfor.story.session_lookup import find_session
from whyfor.sync.remotes import RemoteFile, change_remotes
from whyfor.sync.worker import change_outbox

_SHARE_FIRST = "Share a repository: whyfor remote add URL"


class SharedThing(msgspec.Struct, frozen=True):
    """A commit or a session that a person decided about."""

    kind: str  # commit | session
    name: str  # sha, or agent:id
    was_sent: bool  # the team has something of it


class _Place(msgspec.Struct, frozen=True):
    """What the outbox has to do with a thing."""

    thing: SharedThing
    project: int | None  # None: its project is not shared
    stories: list[OutboxItem]  # sent stories with the same sessions
    held: list[OutboxItem] = []  # stories of a session that stay here


def share(settings: Settings, reference: str, cwd: Path) -> SharedThing:
    """Share a commit's story or a whole session, pushed or not. Raises NotFound if its project is
    not shared."""
    place = _find(settings, reference, cwd)
    if place.project is None:
        raise NotFound("its project is not shared", _SHARE_FIRST)
    name = place.thing.name
    if name.partition(":")[0] in RECORDED:
        raise BadInput("a recorded terminal stays on this machine", "Share words: whyfor export ID")

    def decide(before: RemoteFile) -> RemoteFile:
        kept = tuple(each for each in before.keep_local if each != name)
        return replace(before, keep_local=kept, shared=_with(before.shared, name))

    decided = change_remotes(settings, decide)
    project, now = place.project, int(time.time() * 1000)
    freed = [item.id for item in place.held if item.name not in decided.keep_local]

    def change(outbox: OutboxStore) -> None:
        outbox.set_states(freed, LOCAL)  # until it is looked at whether they were pushed
        outbox.put(project, place.thing.kind, name, WAITS, now)

    change_outbox(settings, change)
    return place.thing


def keep_local(settings: Settings, reference: str, cwd: Path) -> SharedThing:
    """Keep a commit's story or a session here. What the team has of it is taken back."""
    place = _find(settings, reference, cwd)
    name = place.thing.name

    def decide(before: RemoteFile) -> RemoteFile:
        shared = tuple(each for each in before.shared if each != name)
        return replace(before, keep_local=_with(before.keep_local, name), shared=shared)

    change_remotes(settings, decide)
    if place.project is not None:
        _hold(settings, place, place.project)
    return place.thing


def _hold(settings: Settings, place: _Place, project: int) -> None:
    now = int(time.time() * 1000)
    thing = place.thing

    def change(outbox: OutboxStore) -> None:
        if thing.kind == COMMIT:
            outbox.put(project, COMMIT, thing.name, HELD, now)
        if thing.was_sent:
            gone = f"commit:{thing.name}" if thing.kind == COMMIT else thing.name
            outbox.put(project, RETRACT, gone, WAITS, now)
        for item in place.stories:  # they are told again, without it
            outbox.put(item.project, item.kind, item.name, WAITS, now + 1)

    change_outbox(settings, change)


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*names, name]))


def _find(settings: Settings, reference: str, cwd: Path) -> _Place:
    commit = is_commit(settings, reference, cwd)
    with reading_local(settings) as store:
        shares = store.outbox.shares()
        if commit:
            name = require_commit(store, reference, name_place(cwd))
            project = store.checkpoints.project_of(name)
            stories = [item for item in _beside(store, name) if item.name != name]
            held: list[OutboxItem] = []
        else:
            session = find_session(store, reference)
            name = session.name
            known = store.projects.find(session.project) if session.project else None
            project = known[0] if known else None
            stories = _stories(store, [session.id])
            held = _stories(store, [session.id], HELD)
        items = [item for item in store.outbox.items() if item.name == name]
        was_sent = any(item.sent_at is not None for item in items)
        was_sent = was_sent or (bool(stories) and not commit)
    thing = SharedThing(COMMIT if commit else SESSION, name, was_sent)
    return _Place(thing, project if project in shares else None, stories, held)


def _beside(store: LocalStore, sha: str) -> list[OutboxItem]:
    """Return the sent stories that have a session in common with a commit."""
    found = store.checkpoints.of_commits([sha]).get(sha)
    names = [(part.agent, part.session_id) for part in found.parts] if found else []
    return _stories(store, store.sessions.numbers(names).values())


def _stories(store: LocalStore, sessions: Iterable[int], state: str = SENT) -> list[OutboxItem]:
    told = store.checkpoints.of_sessions(list(sessions))
    return [item for item in store.outbox.items(states=[state]) if item.name in told]
