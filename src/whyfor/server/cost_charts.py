"""Geometry and words of the charts of cost: plain numbers, drawn by templates."""

from __future__ import annotations

from datetime import date

import msgspec

from whyfor.model.cost import Cost, add_costs, cost_text, dollars
from whyfor.model.sessions import Tokens
from whyfor.model.stats import CostChange, CostPeriod, CostSum
from whyfor.service.insights_cost import CostGroup, CostOverview

WIDTH, LEFT, FLOOR, ROOF = 1190.0, 44.0, 190.0, 22.0
CAP = 5.0  # how high what is unknown is drawn: nobody knows how much it is
SHOWN = 6
_GAP = 0.2  # of a column
_TICKS = 8  # dates below the chart
_NUMBERED = 32  # columns that have room for their numbers
_STEPS = (1, 2, 2.5, 5, 10)


class StackPart(msgspec.Struct, frozen=True):
    model: int  # which of the models; one more is all others
    y: float
    height: float


class StackColumn(msgspec.Struct, frozen=True):
    """A day or a week."""

    x: float
    width: float
    middle: float
    top: float
    parts: list[StackPart]
    cap: float | None  # where the hatched part begins, if something has no price
    title: str
    number: str  # above it; empty if there is no room
    date: str  # below it; empty for most


class CostLine(msgspec.Struct, frozen=True):
    y: float
    word: str


class CostChart(msgspec.Struct, frozen=True):
    columns: list[StackColumn]
    lines: list[CostLine]
    before: CostLine | None  # a day's cost in the period before
    weekly: bool


class CostMeter(msgspec.Struct, frozen=True):
    """A bar of width 100, with a mark where it was in the period before."""

    group: CostGroup | None
    name: str
    cost: Cost
    width: float
    mark: float | None
    each: str  # what a turn costs
    others: int = 0  # it stands for so many


class CacheMeter(msgspec.Struct, frozen=True):
    """What the tokens of an agent were, of 100 for the one with the most."""

    name: str
    parts: list[tuple[str, float, float]]  # which sort, where it begins, how wide
    tokens: Tokens
    cached: float | None


def cost_chart(found: CostOverview) -> CostChart:
    """Return a column for each day or week, its models one on another."""
    weekly = found.periods[0].first != found.periods[0].last
    average = _average(found)
    most = max([one.cost.usd or 0.0 for one in found.periods] + [average or 0.0])
    top = _top(most)
    slot = (WIDTH - LEFT) / max(1, len(found.periods))
    every = max(1, -(-len(found.periods) // _TICKS))
    columns = []
    for place, period in enumerate(found.periods):
        x = LEFT + slot * place
        named = place % every == 0
        columns.append(_column(period, x, slot, top, found.until if named else None))
    lines = [CostLine(_y(top * part / 4, top), _axis(top * part / 4)) for part in range(5)]
    before = None
    if average:
        word = f"before: {dollars(average)} a {'week' if weekly else 'day'}"
        before = CostLine(_y(average, top), word)
    numbered = len(found.periods) <= _NUMBERED
    if not numbered:
        columns = [msgspec.structs.replace(column, number="") for column in columns]
    return CostChart(columns, lines, before, weekly)


def _average(found: CostOverview) -> float | None:
    """What a day, or a week, cost on average in the period before."""
    usd = found.before.cost.usd
    step = (found.periods[0].last - found.periods[0].first).days + 1
    return usd * step / found.days if usd else None


def _column(
    period: CostPeriod, x: float, slot: float, top: float, named: date | None
) -> StackColumn:
    width = slot * (1 - _GAP)
    left = x + slot * _GAP / 2
    y = FLOOR
    parts = []
    for model, usd in enumerate(period.shares):
        height = (FLOOR - ROOF) * usd / top
        if height > 0:
            y -= height
            parts.append(StackPart(model, round(y, 1), round(height, 1)))
    cap = round(y - CAP, 1) if period.cost.unpriced else None
    top_y = y - CAP if cap is not None else y
    first = period.first
    word = f"{first.day} {first:%b}"
    return StackColumn(
        x=round(left, 1),
        width=round(width, 1),
        middle=round(left + width / 2, 1),
        top=round(top_y, 1),
        parts=parts,
        cap=cap,
        title=_period_title(period),
        number=f"{period.cost.usd:.1f}" if (period.cost.usd or 0) >= 0.05 else "",
        date=("today" if named == first == date.today() else word) if named else "",
    )


def _period_title(period: CostPeriod) -> str:
    days = f"{period.first.day} {period.first:%b}"
    if period.last != period.first:
        days += f" – {period.last.day} {period.last:%b}"
    said = "nothing" if period.cost.usd is None and not period.cost.unpriced else ""
    words = said or cost_text(period.cost)
    if period.cost.unpriced:
        words += f", {period.cost.unpriced:,} responses not wholly in it"
    return f"{days}: {words}"


def _top(most: float) -> float:
    """A round number of dollars above the highest column, that four lines divide evenly."""
    size = 0.01
    while True:
        for step in _STEPS:
            if size * step * 4 >= most:
                return size * step * 4
        size *= 10


def _y(usd: float, top: float) -> float:
    return round(FLOOR - (FLOOR - ROOF) * usd / top, 1)


def _axis(usd: float) -> str:
    return f"${usd:,.0f}" if usd >= 10 or usd == round(usd) else f"${usd:.2f}"


def change_words(change: CostChange) -> str:
    """↑ 12 %, ↓ 3 %, the same; empty if it cannot be compared."""
    percent = change.percent
    if percent is None:
        return ""
    if abs(percent) < 0.5:
        return "the same as before"
    return f"{'↑' if percent > 0 else '↓'} {abs(percent):,.0f} %"


def cost_meters(groups: list[CostGroup]) -> list[CostMeter]:
    """The dearest first, the others together."""
    kept, rest = groups, []
    if len(groups) > SHOWN:
        kept, rest = groups[: SHOWN - 1], groups[SHOWN - 1 :]
    sums = [(one, one.now.cost, _was([one])) for one in kept]
    last = add_costs(one.now.cost for one in rest)
    numbers = [usd for _, cost, was in sums for usd in (cost.usd, was)]
    most = max([usd or 0.0 for usd in (*numbers, last.usd, _was(rest))], default=0.0)
    meters = [
        CostMeter(one, one.now.name, cost, _share(cost.usd, most), _mark(was, most), _each(one))
        for one, cost, was in sums
    ]
    if rest:
        mark = _mark(_was(rest), most)
        width = _share(last.usd, most)
        meters.append(CostMeter(None, f"{len(rest)} others", last, width, mark, "", len(rest)))
    return meters


def _was(groups: list[CostGroup]) -> float | None:
    known = [one.before.cost.usd for one in groups if one.before]
    priced = [usd for usd in known if usd is not None]
    return sum(priced) if priced else None


def _share(usd: float | None, most: float) -> float:
    return round(100 * (usd or 0.0) / most, 1) if most else 0.0


def _mark(usd: float | None, most: float) -> float | None:
    return None if usd is None else _share(usd, most)


def _each(one: CostGroup) -> str:
    counted = one.turns - one.unknown
    if one.now.cost.usd is None or counted <= 0:
        return f"{one.turns:,} turn{'' if one.turns == 1 else 's'}" if one.turns else ""
    return f"{dollars(one.now.cost.usd / counted)} a turn"


def cache_meters(groups: list[CostGroup]) -> list[CacheMeter]:
    """The agents that recorded tokens: from the cache, to it, fresh, out."""
    known = [one.now for one in groups if one.now.tokens.total]
    most = max((one.tokens.total or 0 for one in known), default=0)
    return [_cache_meter(one, most) for one in known]


def _cache_meter(one: CostSum, most: int) -> CacheMeter:
    tokens = one.tokens
    sorts = {
        "k1": tokens.cache_read,
        "k2": tokens.cache_write,
        "k3": tokens.input,
        "k4": tokens.output,
    }
    parts = []
    x = 0.0
    for sort, number in sorts.items():
        width = 100 * (number or 0) / most
        if width:
            parts.append((sort, round(x, 2), round(width, 2)))
        x += width
    return CacheMeter(one.name, parts, tokens, one.cached)
