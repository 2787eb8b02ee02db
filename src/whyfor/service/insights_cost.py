"""Insights, cost: what a period costs at list price, against the period before it."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta

import msgspec

from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.model.sessions import Person
from whyfor.model.stats import CostChange, CostPeriod, CostRow, CostSum, PriceSource, SessionCounts
from whyfor.service.insights import InsightsRequest, asked_period
from whyfor.store.open import OpenStore, reading
from whyfor.store.price_table import load_prices
from whyfor.story.cost import (
    UNKNOWN,
    cost_periods,
    group_costs,
    sum_costs,
    unpriced_models,
)
from whyfor.story.session_lookup import parse_filters

MODELS = 6  # drawn apart; the others together


class CostModel(msgspec.Struct, frozen=True):
    """A model in the chart: the agent whose colour it has, and which of its models it is."""

    name: str
    agent: str
    place: int
    cost: CostSum


class CostGroup(msgspec.Struct, frozen=True):
    """An agent or a project, in the period and in the one before."""

    now: CostSum
    before: CostSum | None
    turns: int
    unknown: int  # turns without token counts


class CostOverview(msgspec.Struct, frozen=True):
    since: date
    until: date
    days: int
    whole: CostSum
    before: CostSum
    change: CostChange
    periods: list[CostPeriod]
    models: list[CostModel]
    other_models: int  # how many are drawn together
    by_agent: list[CostGroup]
    by_project: list[CostGroup]
    turns: int
    unknown_turns: int
    unpriced: list[CostSum]
    prices: PriceSource
    projects: list[str]  # to choose from
    members: list[Person] = []  # who has sessions here; of a team

    @property
    def dearest(self) -> CostPeriod | None:
        known = [one for one in self.periods if one.cost.usd]
        return max(known, key=lambda one: one.cost.usd or 0.0, default=None)


def cost_overview(
    settings: Settings, asking: InsightsRequest, now: datetime | None = None
) -> CostOverview:
    """Return the cost of a period; BadInput for a period that there is not."""
    since, until = asked_period(asking, now or datetime.now().astimezone())
    days = (until - since).days + 1
    earlier = since - timedelta(days=days)
    table = load_prices(settings.home)
    with reading(settings) as library:
        rows = _rows(library, asking, since, until)
        before = _rows(library, asking, earlier, since - timedelta(days=1))
        where = _filter(asking, since, until)
        members = library.authors()
        counted = library.stats.counted(parse_filters(library, where))
        projects = sorted({known.identity for _, known in library.projects.known()})
    whole, past = sum_costs("all", rows), sum_costs("all", before)
    models = _models(rows)
    return CostOverview(
        since=since,
        until=until,
        days=days,
        whole=whole,
        before=past,
        change=CostChange(whole.cost, past.cost),
        periods=cost_periods(rows, since, until, [model.name for model in models]),
        models=models,
        other_models=len(group_costs(rows, "model")) - len(models),
        by_agent=_groups(rows, before, counted, "agent"),
        by_project=_groups(rows, before, counted, "project"),
        turns=sum(row.turns for row in counted),
        unknown_turns=sum(row.unknown for row in counted),
        unpriced=unpriced_models(rows),
        prices=PriceSource(table.source, table.date, table.problem),
        projects=projects,
        members=members,
    )


def _filter(asking: InsightsRequest, since: date, until: date) -> SessionFilter:
    identity = asking.project or None
    return SessionFilter(since=str(since), until=str(until), identity=identity, who=asking.who)


def _rows(library: OpenStore, asking: InsightsRequest, since: date, until: date) -> list[CostRow]:
    return library.stats.costs(parse_filters(library, _filter(asking, since, until)))


def _models(rows: list[CostRow]) -> list[CostModel]:
    """The dearest models, each with the agent that used it most."""
    used: dict[str, Counter[str]] = {}
    for row in rows:
        used.setdefault(row.model or UNKNOWN, Counter())[row.agent] += row.tokens.cost or 0
    priced = [one for one in group_costs(rows, "model") if one.cost.usd is not None]
    places: Counter[str] = Counter()
    found = []
    for one in priced[:MODELS]:
        agent = used[one.name].most_common(1)[0][0]
        found.append(CostModel(one.name, agent, places[agent], one))
        places[agent] += 1
    return found


def _groups(
    rows: list[CostRow], before: list[CostRow], counted: list[SessionCounts], by: str
) -> list[CostGroup]:
    """Dearest first; also those that recorded no tokens."""
    past = {one.name: one for one in group_costs(before, by)}
    turns: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for row in counted:
        name = row.agent if by == "agent" else row.project or UNKNOWN
        turns[name] += row.turns
        unknown[name] += row.unknown
    sums = group_costs(rows, by)
    known = {one.name for one in sums}
    sums += [sum_costs(name, []) for name in sorted(turns) if name not in known and turns[name]]
    return [CostGroup(one, past.get(one.name), turns[one.name], unknown[one.name]) for one in sums]
