"""Lines for agents, and the ids in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from whyfor.model.agent_answers import MemoryLine
from whyfor.model.memory import StoredObservation
from whyfor.model.sessions import Session
from whyfor.store.protocol import SharedStore

NOTE, COMMIT = "note:", "commit:"
_SHORT = 8  # characters of an id, at least
_CHANGED = 3  # files that are named


def note_line(stored: StoredObservation) -> MemoryLine:
    note = stored.observation
    title = note.narrative or note.title
    return MemoryLine(note_id(note.key), note.at, note.type, title, ", ".join(standing(stored)))


def standing(stored: StoredObservation) -> Iterator[str]:
    """Yield how far a note can be relied on now."""
    yield stored.observation.state
    if stored.standing.gone:
        yield stored.standing.gone
    if stored.standing.elsewhere:
        yield f"from branch {stored.branch}, which is not part of this one"
    elif stored.branch:
        yield f"on {stored.branch}"
    for path in stored.standing.changed[:_CHANGED]:
        yield f"{path} changed since"


def session_ids(store: SharedStore, sessions: Iterable[Session]) -> dict[str, str]:
    """Map the name of each session to the id that agents are given for it."""
    names = [(session.agent, session.session_id) for session in sessions]
    short = store.sessions.short_ids(names, _SHORT)
    found = {}
    for agent, ident in names:
        name = f"{agent}:{ident}"
        found[name] = f"{agent}:{short[name].removeprefix(f'{agent}:')}"
    return found


def note_id(key: str) -> str:
    return NOTE + key[:_SHORT]


def commit_id(sha: str) -> str:
    return COMMIT + sha[:10]
