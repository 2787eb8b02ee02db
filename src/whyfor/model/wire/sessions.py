"""Sessions, their events and turns, and what was found in them, as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.cost import Cost, cost_of
from whyfor.model.events import StoredEvent
from whyfor.model.memory import Injection
from whyfor.model.query import FoundPassage, Hit
from whyfor.model.reports import (
    Conversation,
)
from whyfor.model.sessions import Session, Tokens
from whyfor.model.turns import ApprovalRequest, Turn
from whyfor.model.wire.base import copy_fields

_FROM = {"person": "from"}


class WireTokens(msgspec.Struct, frozen=True):
    input: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None


class WireCost(msgspec.Struct, frozen=True):
    """Dollars at list price, null if unknown; responses that are not in it, or not wholly."""

    usd: float | None
    unpriced: int


class WireSession(msgspec.Struct, frozen=True):
    agent: str
    session_id: str
    project: str | None
    cwd: str | None
    branch: str | None
    title: str | None
    started_at: str | None
    ended_at: str | None
    prompts: int
    messages: int
    tool_calls: int
    tokens: WireTokens
    cost: WireCost
    models: list[str]
    files_modified: list[str]
    parent_session_id: str | None
    subagent: str | None
    unparsed: int
    copy_of: str | None
    copy_kind: str | None
    own_from: int
    original: str | None
    title_source: str | None


class WireEvent(msgspec.Struct, frozen=True):
    seq: int
    turn: int
    kind: str
    source: str
    confidence: str
    created_at: str | None
    observed_at: str | None
    actor: str
    text: str
    name: str | None
    data: dict[str, Any] | None


class WireRequest(msgspec.Struct, frozen=True):
    """Something a turn asked to be allowed, and what came of it."""

    at: str | None
    tool: str | None
    action: str | None
    call: str | None
    subagent: str | None
    resolved_at: str | None
    decision: str | None


class WireTurn(msgspec.Struct, frozen=True):
    turn: int
    prompt: str | None
    closing: str | None
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    tools: dict[str, int]
    kinds: dict[str, int]
    files: list[str]
    approvals: list[WireRequest]
    failures: int
    errors: list[str]
    questions: list[str]
    interrupted: bool
    tokens: WireTokens | None
    cost: WireCost
    first_seq: int
    last_seq: int


class WireSummary(msgspec.Struct, frozen=True):
    """The last turns, each on one line."""

    current: str
    recent: str
    prompt: str


class WireInjection(msgspec.Struct, frozen=True):
    """What Whyfor told a session of earlier ones, and what the session used of it."""

    at: str
    part: str
    block: str
    tokens: int
    sources: tuple[str, ...]
    files: tuple[str, ...]
    files_used: tuple[str, ...]
    fetched: tuple[str, ...]


class WireTranscript(msgspec.Struct, frozen=True, rename=_FROM):
    """A whole session."""

    session: WireSession
    subagents: list[str]
    abandoned_turns: list[int]
    events: list[WireEvent]
    told: list[WireInjection]
    imported_from: str | None
    person: str | None  # who shared it; null: it is kept here


class WireTurns(msgspec.Struct, frozen=True, rename=_FROM):
    """A whole session, turn by turn."""

    session: WireSession
    subagents: list[str]
    abandoned_turns: list[int]
    turns: list[WireTurn]
    told: list[WireInjection]
    person: str | None


class WirePassage(msgspec.Struct, frozen=True):
    session_id: str
    seq: int
    turn: int
    kind: str
    created_at: str | None
    snippet: str
    marks: list[tuple[int, int]]  # where in the snippet the words stand


class WireFoundNote(msgspec.Struct, frozen=True):
    id: str
    type: str
    state: str
    title: str


class WireHit(msgspec.Struct, frozen=True, tag_field="type", tag="session", rename=_FROM):
    agent: str
    session_id: str
    seq: int
    turn: int
    kind: str
    created_at: str | None
    project: str | None
    title: str | None
    snippet: str
    score: float
    found_in: str  # the session that seq and turn are of: this one, a subagent's, or a copy
    copies: list[str]  # the session's copies, or what it is a copy of, as agent:id
    passages: list[WirePassage]
    notes: list[WireFoundNote]  # made in the session, with the words
    person: str | None  # who shared it; null: it is kept here


class WireMarkedHit(WireHit, frozen=True, tag_field="type", tag="session"):
    marks: list[tuple[int, int]]  # where in the snippet the words stand


class WireNoteHit(msgspec.Struct, frozen=True, tag_field="type", tag="note", rename=_FROM):
    """A note with the words, of a session that is not among the results."""

    id: str
    note_type: str
    state: str
    by: str
    agent: str
    session_id: str
    turn: int
    project: str | None
    branch: str | None
    at: str | None
    snippet: str
    marks: list[tuple[int, int]]
    person: str | None


class WireCommitHit(msgspec.Struct, frozen=True, tag_field="type", tag="commit", rename=_FROM):
    """A commit with the words in its subject or in what is known of it."""

    sha: str
    subject: str
    project: str
    committed_at: str
    evidence: str
    confidence: str
    agents: list[str]
    snippet: str
    marks: list[tuple[int, int]]
    person: str | None


def wire_session(found: Session) -> WireSession:
    return copy_fields(WireSession, found, **wire_spent(found.tokens))


def wire_spent(found: Tokens) -> dict[str, Any]:
    """The fields that say what was used."""
    return {"tokens": wire_tokens(found), "cost": wire_cost(cost_of(found))}


def wire_cost(found: Cost) -> WireCost:
    return WireCost(None if found.usd is None else round(found.usd, 6), found.unpriced)


def wire_tokens(found: Tokens) -> WireTokens:
    return copy_fields(WireTokens, found)


def wire_event(found: StoredEvent) -> WireEvent:
    return copy_fields(WireEvent, found)


def wire_turn(found: Turn) -> WireTurn:
    return copy_fields(
        WireTurn,
        found,
        approvals=[_request(asked) for asked in found.approvals],
        tokens=wire_tokens(found.tokens) if found.tokens else None,
        cost=wire_cost(cost_of(found.tokens or Tokens())),
    )


def _request(found: ApprovalRequest) -> WireRequest:
    return copy_fields(WireRequest, found)


def wire_injection(told: Injection) -> WireInjection:
    return copy_fields(WireInjection, told)


def wire_transcript(found: Conversation) -> WireTranscript:
    return WireTranscript(
        wire_session(found.session),
        [child.session_id for child in found.children],
        sorted(found.abandoned),
        [wire_event(each) for each in found.events],
        [wire_injection(each) for each in found.told],
        found.imported_from,
        found.person,
    )


def wire_turns(found: Conversation) -> WireTurns:
    return WireTurns(
        wire_session(found.session),
        [child.session_id for child in found.children],
        sorted(found.abandoned),
        [wire_turn(each) for each in found.turns],
        [wire_injection(each) for each in found.told],
        found.person,
    )


def wire_hit(found: Hit) -> WireHit:
    return copy_fields(WireHit, found.best, **_hit_fields(found))


def wire_marked_hit(found: Hit) -> WireMarkedHit:
    return copy_fields(WireMarkedHit, found.best, **_hit_fields(found))


def wire_note_hit(found: msgspec.Struct, key: str) -> WireNoteHit:
    return copy_fields(WireNoteHit, found, id=key)


def wire_commit_hit(found: msgspec.Struct) -> WireCommitHit:
    return copy_fields(WireCommitHit, found)


def _hit_fields(found: Hit) -> dict[str, Any]:
    return {
        **session_place(found.session),
        "score": found.score,
        "found_in": found.best.session.session_id,
        "copies": found.copies,
        "passages": [_passage(each) for each in found.passages],
        "notes": [copy_fields(WireFoundNote, each, id=each.key) for each in found.notes],
        "person": found.person,
    }


def _passage(found: FoundPassage) -> WirePassage:
    return copy_fields(WirePassage, found, session_id=found.session.session_id)


def session_place(found: Session) -> dict[str, str | None]:
    names = ("agent", "session_id", "project", "title")
    return {name: getattr(found, name) for name in names}
