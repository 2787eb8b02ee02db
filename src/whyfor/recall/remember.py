"""Make what is remembered of sessions, for those that have changed since it was last made."""

from __future__ import annotations

import msgspec

from whyfor.model.checkpoints import Checkpoint
from whyfor.model.memory import SessionMemory, WaitingSession
from whyfor.model.titles import ProposedTitle
from whyfor.recall.command_notes import note_changed_commands
from whyfor.store.protocol import SharedStore

RULES_VERSION = 5  # with another number everything is derived again
BATCH = 200  # sessions in one transaction


def remember_waiting(store: SharedStore, limit: int | None = None) -> list[int]:
    """Derive the memory of every session that has something new, or of the newest `limit` of them;
    return their numbers. Under the ingest lock."""
    waiting = store.memory.waiting(RULES_VERSION)
    if limit is not None:
        waiting = waiting[-limit:]
    for start in range(0, len(waiting), BATCH):
        with store.transaction():
            _remember(store, waiting[start : start + BATCH])
            note_changed_commands(store)
    if not waiting and store.memory.changed_commands():  # sessions are gone, or of another project
        with store.transaction():
            note_changed_commands(store)
    return [session.number for session in waiting]


def _remember(store: SharedStore, batch: list[WaitingSession]) -> None:
    """Names come before all cards: a card has its session's title, and to write names between
    cards would write the index of cards to disk each time."""
    commits = _commits_of(store, batch)
    derived = [_derive(store, each, commits.get(_name(each), [])) for each in batch]
    for session, (_, title) in zip(batch, derived, strict=True):
        if title is not None:
            store.memory.name_session(session.number, title)
    for session, (memory, _) in zip(batch, derived, strict=True):
        store.memory.save(session, memory, RULES_VERSION)


def _name(session: WaitingSession) -> str:
    return f"{session.agent}:{session.session_id}"


def _commits_of(store: SharedStore, batch: list[WaitingSession]) -> dict[str, list[Checkpoint]]:
    """Return the linked commits of sessions, by their names, oldest first."""
    found: dict[str, list[Checkpoint]] = {}
    linked = store.checkpoints.of_sessions([session.number for session in batch])
    for commit in linked.values():
        for name in dict.fromkeys(part.name for part in commit.parts):
            found.setdefault(name, []).append(commit)
    return found


def _derive(
    store: SharedStore, session: WaitingSession, commits: list[Checkpoint]
) -> tuple[SessionMemory, ProposedTitle | None]:
    """Return what is remembered of a session, and what to call it if its prompts do not say."""
    # an ingest without news does without
    from whyfor.recall.cards import CardBuilder
    from whyfor.recall.session_memory import derive_memory

    cards = CardBuilder()
    events = cards.watch(store.memory.events(session))
    memory = derive_memory(
        _name(session), session.agent, events, by_person=not session.subagent, commits=commits
    )
    card = cards.card(memory.summary)
    return msgspec.structs.replace(memory, card=card), cards.title()
