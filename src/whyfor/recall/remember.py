"""Make what is remembered of sessions, for those that have changed since it was last made."""

from __future__ import annotations

from whyfor.model.memory import WaitingSession
from whyfor.store.protocol import Store

RULES_VERSION = 1  # with another number everything is derived again
BATCH = 200  # sessions in one transaction


def remember_waiting(store: Store) -> int:
    """Derive the memory of every session that has something new; return of how many. Under the
    ingest lock."""
    waiting = store.memory.waiting(RULES_VERSION)
    for start in range(0, len(waiting), BATCH):
        with store.transaction():
            for session in waiting[start : start + BATCH]:
                _remember(store, session)
    return len(waiting)


def _remember(store: Store, session: WaitingSession) -> None:
    from whyfor.recall.session_memory import derive_memory  # an ingest without news does without

    events = store.conversation.events(session.number, session.first_seq)
    name = f"{session.agent}:{session.session_id}"
    memory = derive_memory(name, session.agent, events, by_person=not session.subagent)
    store.memory.save(session, memory, RULES_VERSION)
