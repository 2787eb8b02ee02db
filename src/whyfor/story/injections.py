"""What a session was told of earlier ones, and whether it made use of it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.memory import Injection, ToldSession
from whyfor.model.sessions import Session
from whyfor.store.protocol import SharedStore

_ID = 8  # characters by which an id is known


def session_injections(store: SharedStore, session: Session) -> list[Injection]:
    """Return what a session was told, oldest first, with what it then used of it."""
    told = store.signals.injections(session.agent, session.session_id)
    if not told:
        return []
    touched = store.memory.touched(session.id)
    questions = store.memory.questions(session.id)
    return [
        msgspec.structs.replace(
            each,
            files_used=tuple(_used(each.files, touched)),
            fetched=tuple(source for source in each.sources if _is_asked(source, questions)),
        )
        for each in told
    ]


def note_listeners(store: SharedStore, key: str) -> list[ToldSession]:
    """Return the sessions that were told a note, newest first."""
    told = store.signals.told_to(key)
    names = [(agent, session_id) for agent, session_id, _ in told]
    numbers = store.sessions.numbers(names)
    known = store.sessions.by_number(list(numbers.values()))
    titles = {name: known[number].title for name, number in numbers.items()}
    return [
        ToldSession(at, agent, session_id, titles.get((agent, session_id)))
        for agent, session_id, at in told
    ]


def _used(named: Iterable[str], touched: Iterable[str]) -> list[str]:
    """Return the files among those named that were touched; agents name them by absolute paths or
    below their folder."""
    ends = {f"/{path}" for path in touched}
    return [path for path in named if any(end.endswith(f"/{path}") for end in ends)]


def _is_asked(source: str, questions: Iterable[str]) -> bool:
    """Return whether a call names a note, a session, or another source of a line."""
    kind, _, ident = source.rpartition(":")
    words = source if kind in ("run", "file") else ident[:_ID]
    return any(words in text for text in questions)
