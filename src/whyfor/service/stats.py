"""stats: count sessions, turns, tokens and their price by agent, project, day and model."""

from __future__ import annotations

from datetime import datetime

from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.model.stats import CostReport, PriceSource, Stats, StatsRow
from whyfor.store.open import reading
from whyfor.store.price_table import load_prices
from whyfor.story.cost import group_costs, sum_costs, unpriced_models
from whyfor.story.session_lookup import parse_filters
from whyfor.story.spend import day_spend
from whyfor.story.tokens import total


def price_source(settings: Settings) -> PriceSource:
    """Return where the prices of this Whyfor directory are from."""
    table = load_prices(settings.home)
    return PriceSource(table.source, table.date, table.problem)


def cost_report(settings: Settings, where: SessionFilter) -> CostReport:
    """Return the price of the responses that fit; the times are theirs, not their sessions'."""
    with reading(settings) as library:
        filters = parse_filters(library, where)
        rows = library.stats.costs(filters)
        counted = library.stats.counted(filters)
        today = day_spend(library, settings.cost.day_budget, datetime.now().astimezone())
    return CostReport(
        whole=sum_costs("all", rows),
        unknown_turns=sum(row.unknown for row in counted),
        unpriced=unpriced_models(rows),
        prices=price_source(settings),
        by_agent=group_costs(rows, "agent"),
        by_project=group_costs(rows, "project"),
        by_model=group_costs(rows, "model"),
        by_day=group_costs(rows, "day"),
        today=today,
    )


def stats(settings: Settings, where: SessionFilter) -> Stats:
    """Return the figures of the sessions that fit, in all and by group."""
    with reading(settings) as library:
        filters = parse_filters(library, where)
        grouped = library.stats.grouped
        agents = _rows(grouped("agent", filters))
        projects = _rows(grouped("project", filters))
        days = _rows(grouped("day", filters))
        models = _rows(grouped("model", filters))
        counted = library.stats.counted(filters)
    return Stats(
        sessions=sum(row.sessions for row in counted),
        subagents=sum(row.subagents for row in counted),
        turns=sum(row.turns for row in counted),
        tokens=total([row.tokens for row in agents]),
        by_agent=agents,
        by_project=projects,
        by_day=sorted(days, key=lambda row: row.name),
        by_model=models,
    )


def _rows(found: list[StatsRow]) -> list[StatsRow]:
    """Return the groups, most output first."""
    return sorted(found, key=lambda row: (-(row.tokens.output or 0), -row.sessions, row.name))
