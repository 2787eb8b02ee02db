"""Feature context: the sessions of a branch, what they decided and how they ended, at once."""

from __future__ import annotations

import msgspec

from whyfor.config import Settings
from whyfor.model.memory import MemoryFilter, SessionSummary, StoredObservation
from whyfor.model.query import Filters
from whyfor.model.sessions import Person, Session
from whyfor.store.open import reading

SESSIONS = 50
_NOTES = 200
_TYPES = ("decision", "gotcha", "discovery", "bugfix")


class FeatureSession(msgspec.Struct, frozen=True):
    session: Session
    who: Person | None  # of a team
    summary: SessionSummary | None


class FeatureContext(msgspec.Struct, frozen=True):
    branch: str | None
    sessions: list[FeatureSession]  # newest first
    decisions: list[StoredObservation]  # and what else was learned, newest first


def feature_context(
    settings: Settings, branch: str | None, limit: int = SESSIONS
) -> FeatureContext:
    """Return what is known of the sessions of a branch, or of all; no bodies."""
    with reading(settings) as library:
        found = library.sessions.matching(Filters(branch=branch), limit=limit, subagents=False)
        numbers = [session.id for session in found]
        people = library.people_of(numbers)
        wanted = MemoryFilter(types=_TYPES, current=True, numbers=tuple(numbers))
        notes = library.memory.observations(wanted, _NOTES) if numbers else []
        sessions = [
            FeatureSession(each, people.get(each.id), library.memory.summary(each.id))
            for each in found
        ]
    return FeatureContext(branch, sessions, notes)
