"""Insights, work: turns until done, rounds of failing checks, waits for approval, and how long
agents waited for the next prompt, against the period before."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from statistics import median

import msgspec

from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.model.stats import ApprovalWait, FailedCommand, TurnTime
from whyfor.service.insights import (
    ApprovalWaits,
    InsightsRequest,
    asked_approvals,
    asked_period,
    spread_waits,
)
from whyfor.store.open import OpenStore, reading
from whyfor.story.command_families import check_in
from whyfor.story.session_lookup import parse_filters

TURNS = (2, 3, 4, 6, 11)  # where one bar ends and the next begins
TURN_WORDS = ("1", "2", "3", "4–5", "6–10", "> 10")
ROUNDS = (2, 3, 4, 5, 7)
ROUND_WORDS = ("1 round", "2", "3", "4", "5–6", "> 6")
DAYS, WEEKS = (
    14,
    120,
)  # a period up to so many days is cut into days, weeks; longer ones into months
LEFT = 4 * 3_600_000  # ms without a prompt: then a session was left, and nobody waited


class WorkSpread(msgspec.Struct, frozen=True):
    """How many of each size there are."""

    total: int
    bars: list[int]
    median: float | None


class TimeSpan(msgspec.Struct, frozen=True):
    """Where the time of some days went, in ms. What waited for an approval did not work."""

    first: date
    last: date
    worked: int
    waited: int  # for the next prompt
    approval: int
    unknown: int  # between prompts of which no response is known

    @property
    def total(self) -> int:
        return self.worked + self.waited + self.approval + self.unknown


class WorkPeriod(msgspec.Struct, frozen=True):
    """How work went in a period. Times are in ms."""

    turns: WorkSpread
    rounds: WorkSpread
    waits: ApprovalWaits
    worked: int  # from prompts to the last response to them
    waited: int  # from there to the next prompt
    spans: list[TimeSpan]

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
    turns = store.turn_times(filters)
    worked, waited = session_times(turns)
    asked = asked_approvals(store, filters)
    return WorkPeriod(
        turns=_spread(store.turns_until_done(filters), TURNS),
        rounds=_spread(check_rounds(store.failed_commands(filters)), ROUNDS),
        waits=spread_waits(asked),
        worked=worked,
        waited=waited,
        spans=time_spans(turns, asked, since, until),
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
    spent: Counter[str] = Counter()
    for _, kind, took in _turn_parts(turns):
        spent[kind] += took
    return spent["worked"], spent["waited"]


def time_spans(
    turns: Iterable[TurnTime], approvals: Iterable[ApprovalWait], since: date, until: date
) -> list[TimeSpan]:
    """Return where the time went in each day, week or month of a period."""
    begins = _begins(since, until)
    spent = [Counter[str]() for _ in begins]

    def add(at: int, kind: str, took: int) -> None:
        day = datetime.fromtimestamp(at / 1000).astimezone().date()
        place = bisect_right(begins, day) - 1
        if place >= 0 and day <= until:
            spent[place][kind] += took

    for at, kind, took in _turn_parts(turns):
        add(at, kind, took)
    for one in approvals:
        if one.answered_at is not None:
            add(one.asked_at, "approval", min(LEFT, max(0, one.answered_at - one.asked_at)))
    ends = [begin - timedelta(days=1) for begin in begins[1:]] + [until]
    return [
        TimeSpan(
            first,
            last,
            max(0, own["worked"] - own["approval"]),
            own["waited"],
            own["approval"],
            own["unknown"],
        )
        for first, last, own in zip(begins, ends, spent, strict=True)
    ]


def _begins(since: date, until: date) -> list[date]:
    """Return the first days of the parts of a period: days, weeks from Monday on, or months."""
    length = (until - since).days + 1
    days = [since + timedelta(days=number) for number in range(length)]
    if length <= DAYS:
        return days
    if length <= WEEKS:
        return [day for day in days if day == since or day.weekday() == 0]
    return [day for day in days if day == since or day.day == 1]


def _turn_parts(turns: Iterable[TurnTime]) -> Iterator[tuple[int, str, int]]:
    """Yield when something began, what, and how long it took: `worked`, `waited` for the next
    prompt, or `unknown`."""
    before: TurnTime | None = None
    for turn in turns:
        if before is not None and before.session == turn.session:
            begin = before.answered_at or before.asked_at
            gap = turn.asked_at - begin
            if 0 < gap <= LEFT:
                yield begin, "waited" if before.answered_at else "unknown", gap
        if turn.answered_at is not None:
            yield turn.asked_at, "worked", max(0, turn.answered_at - turn.asked_at)
        before = turn
