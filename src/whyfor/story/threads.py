"""Threads: a session with its copies, which began with its records: restored, forked, or resumed
in a file of their own. Lists show one row for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from whyfor.model.sessions import SessionCopy
from whyfor.store.protocol import Store

_TIMES = {1: "once", 2: "twice"}


class SessionThread(msgspec.Struct, frozen=True):
    """A session and all that began with its records, oldest first."""

    original: str  # agent:id
    copies: list[SessionCopy] = []

    @property
    def names(self) -> list[str]:
        return [self.original, *(copy.name for copy in self.copies)]

    @property
    def counts(self) -> dict[str, int]:
        """How often it was resumed, forked and restored; only what happened."""
        found = Counter(copy.kind for copy in self.copies)
        return {kind: found[kind] for kind in ("resumed", "forked", "restored") if found[kind]}

    @property
    def words(self) -> str:
        """The same for people: `resumed twice, forked once`; empty if it has no copies."""
        return ", ".join(
            f"{kind} {_TIMES.get(number, f'{number} times')}"
            for kind, number in self.counts.items()
        )


class SessionThreads:
    """All threads of a store that have more than one session, as they are now."""

    def __init__(self, store: Store) -> None:
        self._originals: dict[str, str] = {}
        self._threads: dict[str, SessionThread] = {}
        for copy in store.sessions.copies():
            self._originals[copy.name] = copy.original
            thread = self._threads.setdefault(copy.original, SessionThread(copy.original, []))
            thread.copies.append(copy)

    def original(self, name: str) -> str:
        """The first session of the thread that a session (agent:id) belongs to: itself, if it is
        no copy."""
        return self._originals.get(name, name)

    def thread_of(self, name: str) -> SessionThread:
        """The thread of a session (agent:id); alone in it, if it has no copies and is none."""
        original = self.original(name)
        return self._threads.get(original) or SessionThread(original)

    def fold(self, names: Iterable[str]) -> dict[str, list[str]]:
        """These sessions by thread, in the order in which the first of each is given."""
        found: dict[str, list[str]] = {}
        for name in names:
            found.setdefault(self.original(name), []).append(name)
        return found


def thread_of(store: Store, name: str) -> SessionThread:
    """The thread of one session; for many, make `SessionThreads` once."""
    return SessionThreads(store).thread_of(name)
