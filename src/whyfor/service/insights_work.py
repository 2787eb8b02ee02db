"""Insights, work: turns until done, rounds of failing checks, waits for approval, and how long
agents waited for the next prompt, against the period before."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from statistics import median

import msgspec

from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.model.stats import FailedCommand, TurnTime
from whyfor.service.insights import ApprovalWaits, InsightsRequest, approval_waits, asked_period
from whyfor.store.open import OpenStore, reading
from whyfor.story.command_families import check_in
from whyfor.story.session_lookup import parse_filters

TURNS = (2, 3, 4, 6, 11)  # where one bar ends and the next begins
TURN_WORDS = ("1", "2", "3", "4–5", "6–10", "> 10")
ROUNDS = (2, 3, 4, 5, 7)
ROUND_WORDS = ("1 round", "2", "3", "4", "5–6", "> 6")
LEFT = 4 * 3_600_000  # ms without a prompt: then a session was left, and nobody waited


class WorkSpread(msgspec.Struct, frozen=True):
    """How many of each size there are."""

    total: int
    bars: list[int]
    median: float | None


class WorkPeriod(msgspec.Struct, frozen=True):
    """How work went in a period. Times are in ms."""

    turns: WorkSpread
    rounds: WorkSpread
    waits: ApprovalWaits
    worked: int  # from prompts to the last response to them
    waited: int  # from there to the next prompt

    @property
    def open(self) -> int:
        return self.worked + self.waited


class WorkOverview(msgspec.Struct, frozen=True):
    now: WorkPeriod
    before: WorkPeriod


def work_overview(
    settings: Settings, asking: InsightsRequest, now: datetime | None = None
) -> WorkOverview:
    """Return how work went in a period and in the one before; BadInput for a period that there is
    not."""
    since, until = asked_period(asking, now or datetime.now().astimezone())
    days = (until - since).days + 1
    with reading(settings) as library:
        return WorkOverview(
            _period(library, asking.project, since, until),
            _period(
                library, asking.project, since - timedelta(days=days), since - timedelta(days=1)
            ),
        )


def _period(library: OpenStore, project: str, since: date, until: date) -> WorkPeriod:
    where = SessionFilter(since=str(since), until=str(until), identity=project or None)
    filters = parse_filters(library, where)
    store = library.stats
    worked, waited = session_times(store.turn_times(filters))
    return WorkPeriod(
        turns=_spread(store.turns_until_done(filters), TURNS),
        rounds=_spread(check_rounds(store.failed_commands(filters)), ROUNDS),
        waits=approval_waits(store, filters),
        worked=worked,
        waited=waited,
    )


def _spread(sizes: Sequence[int], edges: Sequence[int]) -> WorkSpread:
    bars = [0] * (len(edges) + 1)
    for size in sizes:
        bars[bisect_right(edges, size)] += 1
    return WorkSpread(len(sizes), bars, median(sizes) if sizes else None)


def check_rounds(failed: Iterable[FailedCommand]) -> list[int]:
    """Return how often each test, lint or build failed in its turn."""
    rounds: Counter[tuple[int, int, str]] = Counter()
    for each in failed:
        check = check_in(each.command)
        if check is not None:
            rounds[each.session, each.turn, check.family] += 1
    return list(rounds.values())


def session_times(turns: Iterable[TurnTime]) -> tuple[int, int]:
    """Return how long agents worked and how long they waited for the next prompt, in ms. A session
    that was left is not waited for; a turn without a known response counts as neither."""
    worked = waited = 0
    before: TurnTime | None = None
    for turn in turns:
        if before is not None and before.session == turn.session and before.answered_at:
            gap = turn.asked_at - before.answered_at
            waited += gap if 0 < gap <= LEFT else 0
        if turn.answered_at is not None:
            worked += max(0, turn.answered_at - turn.asked_at)
        before = turn
    return worked, waited
