"""What work costs at list price: sums by agent, project, day and model, one period against another.

The label is always "API price": what the tokens cost at list price. Nobody may have paid it, with a
subscription for one. What has no known price stays unknown; a sum that lacks some says at least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta

from whyfor.model.cost import cost_of
from whyfor.model.prices import NANO
from whyfor.model.stats import CostPeriod, CostRow, CostSum
from whyfor.story.tokens import total

UNKNOWN = "(unknown)"
WEEKLY = 90  # days: a longer period is told by weeks
GROUPS: dict[str, Callable[[CostRow], str]] = {
    "agent": lambda row: row.agent,
    "project": lambda row: row.project or UNKNOWN,
    "model": lambda row: row.model or UNKNOWN,
    "day": lambda row: row.day or UNKNOWN,
}


def sum_costs(name: str, rows: Iterable[CostRow]) -> CostSum:
    """Return the rows as one."""
    kept = list(rows)
    tokens = total([row.tokens for row in kept])
    saved = [row.saved for row in kept if row.saved is not None]
    given = [tokens.input, tokens.cache_read, tokens.cache_write]
    taken = sum(number or 0 for number in given)
    return CostSum(
        name=name,
        responses=sum(row.responses for row in kept),
        tokens=tokens,
        cost=cost_of(tokens),
        saved=sum(saved) / NANO if saved else None,
        cached=(tokens.cache_read or 0) / taken if taken else None,
        agents=tuple(sorted({row.agent for row in kept})),
    )


def group_costs(rows: Iterable[CostRow], by: str) -> list[CostSum]:
    """Return the sums by `by` of GROUPS, dearest first; days in their order."""
    key = GROUPS[by]
    groups: dict[str, list[CostRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    found = [sum_costs(name, group) for name, group in groups.items()]
    if by == "day":
        return sorted(found, key=lambda one: one.name)
    return sorted(found, key=lambda one: (-(one.cost.usd or 0), -one.responses, one.name))


def unpriced_models(rows: Iterable[CostRow]) -> list[CostSum]:
    """Return the models without any known price that were used, most responses first."""
    without = [one for one in group_costs(rows, "model") if one.cost.usd is None]
    return sorted(without, key=lambda one: -one.responses)


def cost_periods(
    rows: Sequence[CostRow], since: date, until: date, models: Sequence[str]
) -> list[CostPeriod]:
    """Return the days from `since` to `until`, or the weeks if there are many, each with its cost
    by these models and by all others together."""
    step = 7 if (until - since).days >= WEEKLY else 1
    starts = [since + timedelta(days=at) for at in range(0, (until - since).days + 1, step)]
    groups: dict[date, list[CostRow]] = {first: [] for first in starts}
    for row in rows:
        day = date.fromisoformat(row.day) if row.day else None
        if day is not None and since <= day <= until:
            groups[starts[(day - since).days // step]].append(row)
    return [
        CostPeriod(
            first,
            min(until, first + timedelta(days=step - 1)),
            cost_of(total([row.tokens for row in group])),
            _shares(group, models),
        )
        for first, group in groups.items()
    ]


def _shares(rows: Iterable[CostRow], models: Sequence[str]) -> tuple[float, ...]:
    found = [0.0] * (len(models) + 1)
    place = {model: at for at, model in enumerate(models)}
    for row in rows:
        at = place.get(row.model or UNKNOWN, len(models))
        found[at] += (row.tokens.cost or 0) / NANO
    return tuple(found)
