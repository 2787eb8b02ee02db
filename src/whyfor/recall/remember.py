"""Make what is remembered of sessions, for those that have grown since it was last made."""

from __future__ import annotations

from whyfor.store.protocol import Store

VERSION = 1  # of the rules: with another number everything is derived again
BATCH = 200  # sessions in one transaction


def remember_waiting(store: Store) -> int:
    """Derive the memory of every session that has something new; return of how many. Under the
    ingest lock."""
    waiting = store.memory.waiting(VERSION)
    for start in range(0, len(waiting), BATCH):
        with store.transaction():
            _remember(store, waiting[start : start + BATCH])
    return len(waiting)


def _remember(store: Store, numbers: list[int]) -> None:
    from whyfor.recall.session_memory import derive_memory  # an ingest without news does without

    lengths = store.sessions.last_seqs(numbers)
    for number, name in store.sessions.names(numbers).items():
        events = store.conversation.events(number)
        memory = derive_memory(f"{name.agent}:{name.session_id}", name.agent, events)
        store.memory.save(number, memory, last_seq=lengths[number], version=VERSION)
