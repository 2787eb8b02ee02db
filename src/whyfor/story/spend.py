"""What a day has cost so far, against what it may cost."""

from __future__ import annotations

from datetime import datetime

from whyfor.model.cost import DaySpend
from whyfor.model.query import SessionFilter
from whyfor.store.protocol import SharedStore
from whyfor.story.cost import sum_costs
from whyfor.story.session_lookup import parse_filters


def day_spend(store: SharedStore, budget: float | None, now: datetime) -> DaySpend:
    """Return what the day of a moment has cost so far."""
    day = str(now.date())
    rows = store.stats.costs(parse_filters(store, SessionFilter(since=day, until=day)))
    return DaySpend(sum_costs("today", rows).cost, budget)
