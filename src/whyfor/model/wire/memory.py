"""Notes, as JSON."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.memory import (
    MemoryBlock,
    MemoryUse,
    ModelRound,
    NoteStatement,
    SessionSummary,
    StoredObservation,
    ToldSession,
)
from whyfor.model.times import to_iso


class WireQuote(msgspec.Struct, frozen=True):
    """Words of one event: its seq in the session, and where in its text they stand."""

    seq: int
    start: int
    end: int
    text: str


class WireStanding(msgspec.Struct, frozen=True):
    """Whether a note still holds, as far as git and later notes tell now; empty where nobody
    asked."""

    changed: list[str]
    elsewhere: bool
    gone: str


class WireNote(msgspec.Struct, frozen=True, rename={"person": "from"}):
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
    concepts: list[str]
    commit: str | None
    anchors: list[str]
    pinned: bool
    replaces: str | None
    superseded_by: str | None
    standing: WireStanding
    person: str | None  # who shared it; null: it is kept here


class WireFormerNote(msgspec.Struct, frozen=True):
    """What a person or an agent said about a note: write, pin, unpin, wrong."""

    at: str | None
    by: str
    action: str
    text: str


class WireSessionSummary(msgspec.Struct, frozen=True):
    request: list[WireQuote]
    investigated: list[str]
    learned: list[WireQuote]
    completed: list[WireQuote]
    next_steps: list[WireQuote]


class WireToldSession(msgspec.Struct, frozen=True):
    """A session that was told the note when it began."""

    at: str | None
    agent: str
    session_id: str
    title: str | None


class WireNoteDetail(msgspec.Struct, frozen=True):
    note: WireNote
    session_summary: WireSessionSummary | None
    said: list[WireFormerNote] = []
    told: list[WireToldSession] = []


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


class WireMemoryUse(msgspec.Struct, frozen=True):
    """What sessions were told at one moment (`start`, `threads`, `prompt`), and used of it."""

    part: str
    sessions: int
    times: int
    tokens: int
    files: int
    files_used: int
    sources: int
    fetched: int


class WireModelCall(msgspec.Struct, frozen=True):
    """What came of asking a model about a session; the outcome is `ok`, or why there is none."""

    session: str
    model: str
    sent: int
    received: int
    cost: float | None
    kept: int
    rejected: int
    outcome: str


class WireModelRound(msgspec.Struct, frozen=True):
    asked: list[WireModelCall]
    stopped: str | None


def wire_memory_use(used: MemoryUse) -> WireMemoryUse:
    return WireMemoryUse(**msgspec.structs.asdict(used))


def wire_model_round(done: ModelRound) -> WireModelRound:
    asked = [WireModelCall(each.name, *msgspec.structs.astuple(each.call)) for each in done.asked]
    return WireModelRound(asked, done.stopped)


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
        concepts=list(note.concepts),
        commit=note.commit,
        anchors=list(note.anchors),
        pinned=note.pinned,
        replaces=note.replaces,
        superseded_by=stored.superseded_by,
        standing=msgspec.convert(stored.standing, WireStanding, from_attributes=True),
        person=stored.person,
    )


def wire_note_detail(
    note: StoredObservation,
    summary: SessionSummary | None,
    said: Iterable[NoteStatement],
    told: Iterable[ToldSession] = (),
) -> WireNoteDetail:
    return WireNoteDetail(
        wire_memory_note(note),
        wire_session_summary(summary) if summary else None,
        [WireFormerNote(to_iso(each.at), each.by, each.action, each.text) for each in said],
        [WireToldSession(to_iso(one.at), one.agent, one.session_id, one.title) for one in told],
    )


def wire_session_summary(summary: SessionSummary) -> WireSessionSummary:
    return msgspec.convert(summary, WireSessionSummary, from_attributes=True)
