"""memory: what is remembered of past sessions."""

from __future__ import annotations

from typing import get_args

import msgspec

from whyfor.config import Settings
from whyfor.model.errors import BadInput
from whyfor.model.memory import (
    MemoryFilter,
    ObservationState,
    ObservationType,
    SessionSummary,
    StoredObservation,
)
from whyfor.model.query import SessionFilter
from whyfor.store.open import reading
from whyfor.story.session_lookup import parse_filters

TYPES: tuple[str, ...] = get_args(ObservationType)
STATES: tuple[str, ...] = get_args(ObservationState)


class MemoryQuery(msgspec.Struct, frozen=True):
    """Which notes a person asks for."""

    sessions: SessionFilter = SessionFilter()
    types: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    file: str | None = None


class NoteDetail(msgspec.Struct, frozen=True):
    """A note with the summary of the session it comes from."""

    note: StoredObservation
    summary: SessionSummary | None


def notes(settings: Settings, wanted: MemoryQuery, limit: int) -> list[StoredObservation]:
    """Return at most `limit` notes, newest first; 0 means all. Raises BadInput for a type or a
    state that does not exist."""
    _require(wanted.types, TYPES, "type")
    _require(wanted.states, STATES, "state")
    with reading(settings) as store:
        filters = MemoryFilter(
            parse_filters(store, wanted.sessions), wanted.types, wanted.states, wanted.file
        )
        return store.memory.observations(filters, limit or None)


def note_detail(settings: Settings, key: str) -> NoteDetail:
    """Return the note whose id begins so; raises NotFound or Ambiguous."""
    with reading(settings) as store:
        found = store.memory.observation(key)
        number = store.sessions.find(found.session_id, found.agent).id
        return NoteDetail(found, store.memory.summary(number))


def _require(given: tuple[str, ...], known: tuple[str, ...], what: str) -> None:
    for name in given:
        if name not in known:
            raise BadInput(f"no such {what}: {name}", f"There are: {', '.join(known)}.")
