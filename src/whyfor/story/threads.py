"""Threads: a session with its copies, which began with its records: restored, forked, or resumed
in a file of their own. Lists show one row for them."""

from __future__ import annotations

import msgspec

from whyfor.model.listing import fold_words
from whyfor.model.sessions import SessionCopy
from whyfor.store.protocol import SharedStore


class SessionThread(msgspec.Struct, frozen=True):
    """A session and all that began with its records, oldest first."""

    original: str  # agent:id
    copies: list[SessionCopy] = []

    @property
    def names(self) -> list[str]:
        return [self.original, *(copy.name for copy in self.copies)]

    @property
    def words(self) -> str:
        """How often it was resumed, forked and restored; empty if it has no copies."""
        return fold_words(copy.kind for copy in self.copies)


class SessionThreads:
    """All threads of a store that have more than one session, as they are now."""

    def __init__(self, store: SharedStore) -> None:
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
