"""Figures about many sessions at once."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec

from whyfor.model.cost import Cost, DaySpend
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


class Stats(msgspec.Struct, frozen=True):
    """The figures of sessions, in all and by group."""

    sessions: int
    subagents: int
    turns: int
    tokens: Tokens
    by_agent: list[StatsRow]
    by_project: list[StatsRow]
    by_day: list[StatsRow]
    by_model: list[StatsRow]


class CostRow(msgspec.Struct, frozen=True):
    """What the responses of one day, agent, project and model used."""

    day: str | None  # 2026-03-17, local; None: the record has no time
    agent: str
    project: str | None
    model: str | None
    responses: int
    saved: int | None  # by the cache, in billionths of a dollar
    tokens: Tokens


class CostSum(msgspec.Struct, frozen=True):
    """What one agent, project, day or model used, and what that costs."""

    name: str
    responses: int
    tokens: Tokens
    cost: Cost
    saved: float | None  # dollars that the cache saved; None if unknown
    cached: float | None  # how much of the input came from the cache, of 1
    agents: tuple[str, ...] = ()  # whose responses they are


class CostPeriod(msgspec.Struct, frozen=True):
    """A day, or a week from its first day on, with a share for each of the models named."""

    first: date
    last: date
    cost: Cost
    shares: tuple[float, ...]  # dollars, in the order of the models; the rest is in the last


class CostChange(msgspec.Struct, frozen=True):
    """A period against the one before it, of the same length."""

    now: Cost
    before: Cost

    @property
    def percent(self) -> float | None:
        """How much more or less it costs; None if either is unknown or nothing."""
        if not self.now.usd or not self.before.usd:
            return None
        return 100 * (self.now.usd - self.before.usd) / self.before.usd


class PriceSource(msgspec.Struct, frozen=True):
    """Where the prices are from."""

    source: str
    date: str  # when the last of them changed
    problem: str | None  # why own prices are not used


class CostReport(msgspec.Struct, frozen=True):
    """What was used costs this at list price, in all and by group."""

    whole: CostSum
    unknown_turns: int  # of sessions of which no tokens were recorded
    unpriced: list[CostSum]  # models that have no known price
    prices: PriceSource
    by_agent: list[CostSum]
    by_project: list[CostSum]
    by_model: list[CostSum]
    by_day: list[CostSum]
    today: DaySpend = DaySpend(Cost(), None)


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


class FailedCommand(msgspec.Struct, frozen=True):
    """A command that failed."""

    session: int
    turn: int
    command: str


class TurnTime(msgspec.Struct, frozen=True):
    """When a person asked, and when the last response to it was there; None if none is known."""

    session: int
    turn: int
    asked_at: int
    answered_at: int | None


class FailedStep(msgspec.Struct, frozen=True):
    """Something that went wrong in a session."""

    session: int
    turn: int
    kind: str
    head: str
    ran: bool  # it has an exit code
    seq: int = 0
    at: int | None = None
    text: str = ""  # more of how it begins, and how it ends
