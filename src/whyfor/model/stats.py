"""Figures about many sessions at once."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.sessions import Tokens

QUARTER = 900_000  # ms: a quarter of an hour divides every time zone's days


class StoreTotals(msgspec.Struct, frozen=True):
    """How much is kept."""

    sessions: int
    subagents: int
    records: int
    events: int
    bytes: int
    unparsed: int
    unknown_types: int


class StatsRow(msgspec.Struct, frozen=True):
    """Sessions, turns and tokens of one agent, project, day or model."""

    name: str
    sessions: int
    turns: int | None  # a turn may use several models: not counted by model
    tokens: Tokens


class SessionCounts(msgspec.Struct, frozen=True):
    """Of one agent in one project: sessions with the same number of turns each."""

    agent: str
    project: str | None
    each: int
    sessions: int
    recent: int  # those of them active since a given time
    subagents: int
    turns: int
    unknown: int  # turns of sessions whose tokens were not recorded
    tokens: Tokens


class ApprovalWait(msgspec.Struct, frozen=True):
    """An approval an agent waited for, and when the next thing happened that ends the wait."""

    session: int
    asked_at: int
    answered_at: int | None


class ApprovalRecord(msgspec.Struct, frozen=True):
    """A request or its answer, as a transcript tells of it."""

    session: int
    kind: str
    at: int
    data: dict[str, Any]


class FailedStep(msgspec.Struct, frozen=True):
    """Something that went wrong in a session."""

    session: int
    turn: int
    kind: str
    head: str
    ran: bool  # it has an exit code
