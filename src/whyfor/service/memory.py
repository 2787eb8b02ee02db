"""memory: what is remembered of past sessions."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec

from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.git.run import ask
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.memory import (
    MemoryBlock,
    MemoryFilter,
    ObservationState,
    ObservationType,
    SessionSummary,
    StoredObservation,
)
from whyfor.model.query import SessionFilter
from whyfor.privacy.redacted_text import redacted
from whyfor.recall.block import TOKENS as TOKENS
from whyfor.recall.block import build_block
from whyfor.recall.material import collect
from whyfor.store.open import reading
from whyfor.story.commit_lookup import require_checkout
from whyfor.story.repositories import repository_at
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


def preview(settings: Settings, cwd: Path, tokens: int = TOKENS) -> MemoryBlock:
    """Return what the next session in this repository would be told, without secrets."""
    folder = require_checkout(name_place(cwd))
    with reading(settings) as store:
        repository = repository_at(store, folder)
        if repository is None:
            raise NotFound(
                f"no session is known in {folder}", "Read what your agents wrote: whyfor ingest"
            )
        branch = ask(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
        material = collect(store, repository, branch)
    clean, _ = redacted(settings, material, rendered=False)
    return build_block(clean, tokens)


def _require(given: tuple[str, ...], known: tuple[str, ...], what: str) -> None:
    for name in given:
        if name not in known:
            raise BadInput(f"no such {what}: {name}", f"There are: {', '.join(known)}.")
