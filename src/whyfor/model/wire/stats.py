"""Figures about many sessions, as JSON."""

from __future__ import annotations

import msgspec

from whyfor.model.stats import CostReport, CostSum, Stats, StatsRow
from whyfor.model.wire.base import copy_fields
from whyfor.model.wire.sessions import WireCost, WireTokens, wire_cost, wire_spent, wire_tokens


class WireStatsRow(msgspec.Struct, frozen=True):
    name: str
    sessions: int
    turns: int | None
    tokens: WireTokens
    cost: WireCost


class WireStats(msgspec.Struct, frozen=True):
    sessions: int
    subagents: int
    turns: int
    tokens: WireTokens
    cost: WireCost
    by_agent: list[WireStatsRow]
    by_project: list[WireStatsRow]
    by_day: list[WireStatsRow]
    by_model: list[WireStatsRow]


def wire_stats(found: Stats) -> WireStats:
    return copy_fields(
        WireStats,
        found,
        **wire_spent(found.tokens),
        by_agent=_rows(found.by_agent),
        by_project=_rows(found.by_project),
        by_day=_rows(found.by_day),
        by_model=_rows(found.by_model),
    )


def _rows(found: list[StatsRow]) -> list[WireStatsRow]:
    return [copy_fields(WireStatsRow, row, **wire_spent(row.tokens)) for row in found]


class WireCostSum(msgspec.Struct, frozen=True):
    """What one agent, project, day or model used and costs."""

    name: str
    responses: int
    tokens: WireTokens
    cost: WireCost
    saved: float | None
    cached: float | None


class WirePrices(msgspec.Struct, frozen=True):
    source: str
    date: str
    problem: str | None


class WireCostReport(msgspec.Struct, frozen=True):
    """What was used costs this at list price."""

    cost: WireCost
    saved: float | None
    cached: float | None
    tokens: WireTokens
    responses: int
    unknown_turns: int
    unpriced: list[WireCostSum]
    prices: WirePrices
    by_agent: list[WireCostSum]
    by_project: list[WireCostSum]
    by_model: list[WireCostSum]
    by_day: list[WireCostSum]
    today: WireCost
    day_budget: float | None


def wire_cost_report(found: CostReport) -> WireCostReport:
    whole = _cost_sum(found.whole)
    return WireCostReport(
        cost=whole.cost,
        saved=whole.saved,
        cached=whole.cached,
        tokens=whole.tokens,
        responses=whole.responses,
        unknown_turns=found.unknown_turns,
        unpriced=[_cost_sum(one) for one in found.unpriced],
        prices=copy_fields(WirePrices, found.prices),
        by_agent=[_cost_sum(one) for one in found.by_agent],
        by_project=[_cost_sum(one) for one in found.by_project],
        by_model=[_cost_sum(one) for one in found.by_model],
        by_day=[_cost_sum(one) for one in found.by_day],
        today=wire_cost(found.today.cost),
        day_budget=found.today.budget,
    )


def _cost_sum(found: CostSum) -> WireCostSum:
    return copy_fields(
        WireCostSum,
        found,
        tokens=wire_tokens(found.tokens),
        cost=wire_cost(found.cost),
        saved=None if found.saved is None else round(found.saved, 6),
        cached=None if found.cached is None else round(found.cached, 4),
    )
