"""The charts of how work went: columns by size, and what is said below them."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from whyfor.model.text import plural
from whyfor.server.charts import Histogram, histogram
from whyfor.service.insights import LATE, WAITS
from whyfor.service.insights_work import (
    ROUND_WORDS,
    TURN_WORDS,
    TimeSpan,
    WorkOverview,
    WorkSpread,
)

_WAIT_WORDS = ("< 2 s", "2–5 s", "5–15 s", "15–60 s", "1–5 min", "> 5 min")
_LONG = WAITS.index(LATE) + 1  # the bars from here on are drawn as one


class WorkChart(msgspec.Struct, frozen=True):
    """One chart; without a histogram there is nothing to draw."""

    title: str
    counted: str
    words: list[tuple[str, int]]
    histogram: Histogram | None
    late: int  # columns after this one are drawn as long
    note: str
    empty: str


class TimeRow(msgspec.Struct, frozen=True):
    """A bar of width 100 for the longest: at work, waiting for a prompt or an approval, unknown."""

    name: str
    parts: list[tuple[str, float, float]]  # which sort, where it begins, how wide
    total: int  # ms
    waiting: int


def time_rows(work: WorkOverview) -> list[TimeRow]:
    """Return where the time went; nothing if no time is known at all."""
    spans = work.now.spans
    most = max((span.total for span in spans), default=0)
    return [_time_row(span, most) for span in spans] if most else []


def _time_row(span: TimeSpan, most: int) -> TimeRow:
    sorts = {
        "w-plain": span.worked,
        "k2": span.waited,
        "hb-late": span.approval,
        "heat-x cap": span.unknown,
    }
    parts = []
    x = 0.0
    for sort, took in sorts.items():
        width = 100 * took / most
        if width:
            parts.append((sort, round(x, 2), round(width, 2)))
        x += width
    return TimeRow(_span_name(span), parts, span.total, span.waited + span.approval)


def _span_name(span: TimeSpan) -> str:
    """14 Oct, 14 – 18 Oct, 26 Oct – 1 Nov, Oct 2026."""
    first, last = span.first, span.last
    if first == last:
        return f"{first.day} {first:%b}"
    if (first.year, first.month) != (last.year, last.month):
        return f"{first.day} {first:%b} – {last.day} {last:%b}"
    is_month = first.day == 1 and (last + timedelta(days=1)).day == 1
    return f"{first:%b %Y}" if is_month else f"{first.day} – {last.day} {last:%b}"


def work_charts(work: WorkOverview) -> list[WorkChart]:
    """Return the charts of a period."""
    now = work.now
    long = sum(now.waits.bars[_LONG:])
    waits = [*now.waits.bars[:_LONG], long]
    return [
        _chart(
            "Turns until done",
            plural(now.turns.total, "request"),
            now.turns,
            TURN_WORDS,
            "Turns that went into the commits of one request.",
            "No request ended in a commit in this time.",
        ),
        _chart(
            "Test–fix loops",
            plural(now.rounds.total, "loop"),
            now.rounds,
            ROUND_WORDS,
            "How often the same test, lint or build failed in one turn.",
            "No test, lint or build failed in this time.",
        ),
        _chart(
            "Wait for approval",
            plural(now.waits.answered, "request"),
            WorkSpread(now.waits.answered, waits, now.waits.median),
            _WAIT_WORDS,
            "Where only a hook tells, the call’s own time is in it.",
            "No approval was recorded in this time.",
        ),
    ]


def _chart(
    title: str,
    counted: str,
    spread: WorkSpread,
    words: tuple[str, ...],
    note: str,
    empty: str,
) -> WorkChart:
    drawn = histogram(spread.bars, (), None) if spread.total else None
    pairs = list(zip(words, spread.bars, strict=True))
    return WorkChart(title, counted, pairs, drawn, len(words) - 2, note, empty)
