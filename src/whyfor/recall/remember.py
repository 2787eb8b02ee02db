"""Make what is remembered of sessions, for those that have changed since it was last made."""

from __future__ import annotations

import msgspec

from whyfor.model.checkpoints import Checkpoint
from whyfor.model.memory import WaitingSession
from whyfor.recall.command_notes import note_changed_commands
from whyfor.store.protocol import SharedStore

RULES_VERSION = 4  # with another number everything is derived again
BATCH = 200  # sessions in one transaction


def remember_waiting(store: SharedStore) -> list[int]:
    """Derive the memory of every session that has something new; return their numbers. Under the
    ingest lock."""
    waiting = store.memory.waiting(RULES_VERSION)
    for start in range(0, len(waiting), BATCH):
        with store.transaction():
            batch = waiting[start : start + BATCH]
            commits = _commits_of(store, batch)
            for session in batch:
                _remember(store, session, commits.get(_name(session), []))
            note_changed_commands(store)
    if not waiting and store.memory.changed_commands():  # sessions are gone, or of another project
        with store.transaction():
            note_changed_commands(store)
    return [session.number for session in waiting]


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


def _remember(store: SharedStore, session: WaitingSession, commits: list[Checkpoint]) -> None:
    # an ingest without news does without
    from whyfor.recall.cards import CardBuilder
    from whyfor.recall.session_memory import derive_memory

    cards = CardBuilder()
    events = cards.watch(store.conversation.events(session.number, session.first_seq))
    memory = derive_memory(
        _name(session), session.agent, events, by_person=not session.subagent, commits=commits
    )
    named = cards.title()
    if named is not None:
        store.memory.name_session(session.number, named)
    card = cards.card(memory.summary)
    store.memory.save(session, msgspec.structs.replace(memory, card=card), RULES_VERSION)
