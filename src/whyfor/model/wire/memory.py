"""Notes, as JSON."""

from __future__ import annotations

import msgspec

from whyfor.model.memory import MemoryBlock, SessionSummary, StoredObservation
from whyfor.model.times import to_iso


class WireQuote(msgspec.Struct, frozen=True):
    """Words of one event: its seq in the session, and where in its text they stand."""

    seq: int
    start: int
    end: int
    text: str


class WireNote(msgspec.Struct, frozen=True):
    id: str
    type: str
    state: str
    title: str
    narrative: str
    facts: list[str]
    files_read: list[str]
    files_written: list[str]
    evidence: list[WireQuote]
    by: str
    at: str | None
    agent: str
    session_id: str
    parent_session_id: str | None
    turn: int
    project: str | None
    branch: str | None


class WireSessionSummary(msgspec.Struct, frozen=True):
    request: list[WireQuote]
    investigated: list[str]
    learned: list[WireQuote]
    completed: list[WireQuote]
    next_steps: list[WireQuote]


class WireNoteDetail(msgspec.Struct, frozen=True):
    note: WireNote
    session_summary: WireSessionSummary | None


class WireBlockLine(msgspec.Struct, frozen=True):
    section: str
    text: str
    source: str
    why: str


class WireMemoryBlock(msgspec.Struct, frozen=True):
    text: str
    tokens: int
    budget: int
    lines: list[WireBlockLine]
    left_out: dict[str, int]


def wire_memory_block(block: MemoryBlock) -> WireMemoryBlock:
    return msgspec.convert(block, WireMemoryBlock, from_attributes=True)


def wire_memory_note(stored: StoredObservation) -> WireNote:
    note = stored.observation
    return WireNote(
        id=note.key,
        type=note.type,
        state=note.state,
        title=note.title,
        narrative=note.narrative,
        facts=list(note.facts),
        files_read=list(note.files_read),
        files_written=list(note.files_written),
        evidence=msgspec.convert(note.evidence, list[WireQuote], from_attributes=True),
        by=note.by,
        at=None if note.at is None else to_iso(note.at),
        agent=stored.agent,
        session_id=stored.session_id,
        parent_session_id=stored.parent_session_id,
        turn=note.turn,
        project=stored.project,
        branch=stored.branch,
    )


def wire_session_summary(summary: SessionSummary) -> WireSessionSummary:
    return msgspec.convert(summary, WireSessionSummary, from_attributes=True)
