"""Now: the day so far, in one line of figures."""

from __future__ import annotations

import threading
import time
from datetime import datetime

import msgspec

from whyfor.config import Settings
from whyfor.model.approvals import ApprovalQuery
from whyfor.model.checkpoints import NOT_THEN
from whyfor.model.cost import DaySpend
from whyfor.model.errors import NotFound
from whyfor.model.listing import ListFilter
from whyfor.model.query import Filters
from whyfor.store.open import LocalStore, reading_local
from whyfor.story.spend import day_spend

LASTS = 15.0  # seconds: a page that is open asks again with every change
_PEOPLE = ("terminal", "browser")


class TodayFigures(msgspec.Struct, frozen=True):
    """What happened since midnight."""

    sessions: int
    turns: int
    commits: int
    told: int  # commits with a story
    spend: DaySpend
    waited: int  # ms that agents waited for a person's permission, at most


class TodayCache:
    """Keeps the figures for some seconds."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._made: float | None = None
        self._known: TodayFigures | None = None

    def figures(self) -> TodayFigures | None:
        """Return the figures of today; None if nothing was captured yet."""
        with self._lock:
            now = time.monotonic()
            if self._made is None or now - self._made > LASTS:
                self._known = today_figures(self.settings)
                self._made = now
            return self._known


def today_figures(settings: Settings) -> TodayFigures | None:
    """Count what happened since midnight; None if nothing was captured yet."""
    now = datetime.now().astimezone()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since, until = (round(when.timestamp() * 1000) for when in (midnight, now))
    try:
        with reading_local(settings) as store:
            told, commits = store.stats.commits(Filters(since=since), NOT_THEN)
            turns = store.stats.turns_by_time(Filters(), since, until)
            return TodayFigures(
                sessions=store.listing.count(ListFilter(since=since)),
                turns=sum(number for _, number in turns),
                commits=commits,
                told=told,
                spend=day_spend(store, settings.cost.day_budget, now),
                waited=_waited(store, since),
            )
    except NotFound:
        return None


def _waited(store: LocalStore, since: int) -> int:
    found = store.approvals.listed(ApprovalQuery(since=since, limit=None))
    decisions = [row.decision for row in found]
    return sum(each.waited_ms or 0 for each in decisions if each.by in _PEOPLE)
