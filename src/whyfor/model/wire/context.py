"""The sessions of a branch, and what came of them, in one answer."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.memory import SessionSummary, StoredObservation
from whyfor.model.sessions import Person, Session
from whyfor.model.wire.memory import (
    WireNote,
    WireSessionSummary,
    wire_memory_note,
    wire_session_summary,
)
from whyfor.model.wire.sessions import WireSession, wire_session


class WireFeatureSession(msgspec.Struct, frozen=True):
    session: WireSession
    who: str | None  # whose it is, on a team
    summary: WireSessionSummary | None


class WireFeatureContext(msgspec.Struct, frozen=True):
    branch: str | None
    sessions: list[WireFeatureSession]
    decisions: list[WireNote]


def wire_feature_session(
    session: Session, who: Person | None, summary: SessionSummary | None
) -> WireFeatureSession:
    told = wire_session_summary(summary) if summary else None
    return WireFeatureSession(wire_session(session), who.name if who else None, told)


def wire_feature_context(
    branch: str | None,
    sessions: list[WireFeatureSession],
    decisions: Iterable[StoredObservation],
) -> WireFeatureContext:
    return WireFeatureContext(branch, sessions, [wire_memory_note(note) for note in decisions])
