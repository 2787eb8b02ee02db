"""The Insights page: activity, turns and tokens, approvals, failures; counted like `whyfor
stats`."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import msgspec
from litestar import get
from litestar.params import FromQuery
from litestar.response import Template

from whyfor.config import Settings
from whyfor.model.text import count
from whyfor.server.charts import calendar, day_name, histogram
from whyfor.server.cost_charts import cache_meters, change_words, cost_chart, cost_meters
from whyfor.server.page import Kept, render_page
from whyfor.server.work_charts import time_rows, work_charts
from whyfor.service.insights import (
    LATE,
    PERIODS,
    VIEWS,
    WAITS,
    ApprovalWaits,
    Bar,
    InsightsRequest,
    Overview,
    merge_bars,
    overview,
)
from whyfor.service.insights_cost import cost_overview
from whyfor.service.insights_work import work_overview

_SHOWN = 6
_BY = (("agent", "Agent"), ("project", "Project"), ("model", "Model"))
_WAITS = ("< 2 s", "2–5 s", "5–15 s", "15–60 s", "1–5 min", "5–15 min", "15–60 min", "> 1 h")
_HATCH = 12.0  # of 100: how wide a bar is of which nothing is known
_TOKENS = (
    ("input", "in"),
    ("cache_read", "read from cache"),
    ("cache_write", "written to cache"),
    ("output", "out"),
)


class MeterBar(msgspec.Struct, frozen=True):
    """A bar of width 100: the known part, then the unknown part."""

    bar: Bar
    value: int | None
    width: float
    hatched: float


@get("/insights", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    project: FromQuery[str] = "",
    period: FromQuery[str] = "365",
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
    by: FromQuery[str] = "agent",
    view: FromQuery[str] = VIEWS[0],
    who: FromQuery[str] = "",
) -> Template:
    asking = InsightsRequest(period, since, until, project, by, view, who)
    if view == "cost":
        return _costs(settings, asking)
    found = overview(settings, asking)
    waits = found.waits
    return render_page(
        "insights.html",
        here="insights",
        asking=asking,
        periods=PERIODS,
        ways=_BY,
        found=found,
        calendar=calendar(found.days),
        busiest=f"{day_name(found.busiest.date)}, {found.busiest.turns:,}" if found.busiest else "",
        turns=rows(
            found.bars, lambda bar: bar.sessions if by == "model" else bar.turns, uncertain=False
        ),
        tokens=rows(found.bars, lambda bar: bar.spent, uncertain=True),
        histogram=histogram(waits.bars, WAITS, waits.median),
        waits_words=list(zip(_WAITS, waits.bars, strict=True)),
        late=sum(edge < LATE for edge in WAITS) + 1,
        median=seconds(waits.median),
        waited=waited(waits),
        failures=[one for one in found.failures if one.turns],
        spent_words=", ".join(
            f"{count(getattr(found.tokens, name))} {word}" for name, word in _TOKENS
        ),
        active=active_days(found),
        against=against,
        tenths=lambda value: f"{value:.1f}",
        link=lambda **changed: insights_link(asking, **changed),
    )


def _costs(settings: Settings, asking: InsightsRequest) -> Template:
    found = cost_overview(settings, asking)
    work = work_overview(settings, asking)
    return render_page(
        "insights/cost.html",
        here="insights",
        asking=asking,
        periods=PERIODS,
        found=found,
        chart=cost_chart(found),
        change=change_words(found.change),
        agents=cost_meters(found.by_agent),
        projects=cost_meters(found.by_project),
        caches=cache_meters(found.by_agent),
        work=work,
        times=time_rows(work),
        charts=work_charts,
        seconds=seconds,
        hours=hours,
        against=against,
        number_word=lambda value: f"{value:g}",
        link=lambda **changed: insights_link(asking, **changed),
    )


def insights_link(asking: InsightsRequest, **changed: str) -> str:
    """Return the address of this page with some parameters changed."""
    given = msgspec.structs.asdict(msgspec.structs.replace(asking, **changed))
    usual = msgspec.structs.asdict(InsightsRequest())
    asked = urlencode({name: value for name, value in given.items() if value != usual[name]})
    return f"/insights?{asked}" if asked else "/insights"


def rows(bars: list[Bar], value: Callable[[Bar], int | None], *, uncertain: bool) -> list[MeterBar]:
    """The longest first, the small ones together; with `uncertain` what was not written down is
    drawn, too: as much as the known turns of the same bar suggest."""
    ordered = sorted(bars, key=lambda bar: (-(value(bar) or 0), bar.name))
    if len(ordered) > _SHOWN:
        rest = ordered[_SHOWN - 1 :]
        ordered = [*ordered[: _SHOWN - 1], merge_bars(rest)]
    drawn = [(bar, value(bar), _unknown(bar, value(bar)) if uncertain else 0.0) for bar in ordered]
    most = max(((number or 0) + more for _, number, more in drawn), default=0)
    found = []
    for bar, number, more in drawn:
        width = 100 * (number or 0) / most if most else 0.0
        hatched = 100 * more / most if most else 0.0
        if uncertain and number is None:
            hatched = _HATCH
        found.append(MeterBar(bar, number, round(width, 1), round(hatched, 1)))
    return found


def _unknown(bar: Bar, number: int | None) -> float:
    known = (bar.turns or 0) - bar.unknown
    return (number or 0) * bar.unknown / known if number and known > 0 else 0.0


def seconds(value: float | None) -> str:
    """14 s, 4 min 12 s, 2 h 05 min."""
    if value is None:
        return "unknown"
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def waited(waits: ApprovalWaits) -> str:
    """Return the sentence below the waiting times."""
    share = round(100 * waits.late / waits.answered) if waits.answered else 0
    return (
        f"{share} % waited over five minutes: {seconds(waits.late_seconds)} of agent time."
        if waits.late
        else ""
    )


def hours(ms: int) -> str:
    """19 h, 2.5 h, 12 min."""
    if ms < 3_600_000:
        return f"{round(ms / 60_000)} min"
    value = ms / 3_600_000
    return f"{value:.1f} h" if value < 10 else f"{round(value)} h"


def against(now: float | None, before: float | None, word: Callable[[float], str]) -> str:
    """↑ 0.6, ↓ 5 s, same; empty if one of the two is not known."""
    if now is None or before is None:
        return ""
    if word(now) == word(before):
        return "same"
    return f"{'↑' if now > before else '↓'} {word(abs(now - before))}"


def active_days(found: Overview) -> int:
    return sum(1 for day in found.days if day.inside and day.turns)


router = [show]
