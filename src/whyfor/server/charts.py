"""Positions and sizes of the shapes of a chart, as numbers for SVG attributes. Templates set the
colours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import msgspec

from whyfor.service.insights import Day

# The calendar: a column a week, a row a day of it.
CELL, STEP, LEFT, TOP = 18.0, 21.6, 36.0, 18.0
# The histogram.
WIDTH, FLOOR, ROOF = 540.0, 168.0, 38.0


class Cell(msgspec.Struct, frozen=True):
    x: float
    y: float
    level: int | None  # 0 to 4; none: nothing was captured yet
    title: str
    inside: bool


class Tick(msgspec.Struct, frozen=True):
    x: float
    word: str


class Calendar(msgspec.Struct, frozen=True):
    width: float
    cells: list[Cell]
    months: list[Tick]


class Column(msgspec.Struct, frozen=True):
    x: float
    y: float
    width: float
    height: float
    middle: float
    number: int


class Histogram(msgspec.Struct, frozen=True):
    columns: list[Column]
    lines: list[float]
    median: float | None


def calendar(days: Sequence[Day]) -> Calendar:
    """Return the cells of a calendar, starting with a Monday."""
    limits = quarters([day.turns for day in days if day.turns])
    cells: list[Cell] = []
    months: list[Tick] = []
    for number, day in enumerate(days):
        week, weekday = divmod(number, 7)
        x, y = round(LEFT + week * STEP, 1), round(TOP + weekday * STEP, 1)
        level = (
            None
            if day.turns is None
            else sum(day.turns > limit for limit in limits) + 1
            if day.turns
            else 0
        )
        cells.append(Cell(x, y, level, _told(day), day.inside))
        if day.date.day == 1 and (not months or x - months[-1].x >= 2 * STEP):
            months.append(Tick(x, f"{day.date:%b}"))
    weeks = (len(days) + 6) // 7
    return Calendar(round(LEFT + weeks * STEP, 1), cells, months)


def quarters(numbers: Sequence[int]) -> list[float]:
    """Return three numbers that divide the values into four equal groups, so that one busy day does
    not make all others pale."""
    ordered = sorted(numbers)
    return [ordered[(len(ordered) - 1) * part // 4] for part in (1, 2, 3)] if ordered else [0, 0, 0]


def histogram(numbers: Sequence[int], edges: Sequence[float], median: float | None) -> Histogram:
    """Return columns of equal width; the median is marked inside its column."""
    most = max(numbers, default=0)
    slot = WIDTH / max(len(numbers), 1)
    columns = []
    for place, number in enumerate(numbers):
        height = (FLOOR - ROOF) * number / most if most else 0.0
        x = round(place * slot + 6, 1)
        columns.append(
            Column(
                x,
                round(FLOOR - height, 1),
                round(slot - 12, 1),
                round(height, 1),
                round(x + slot / 2 - 6, 1),
                number,
            )
        )
    lines = [round(FLOOR - (FLOOR - ROOF) * part / 4, 1) for part in (1, 2, 3, 4)]
    return Histogram(
        columns, lines, None if median is None else round(_place(median, edges, slot), 1)
    )


def _place(value: float, edges: Sequence[float], slot: float) -> float:
    low = 0.0
    for place, edge in enumerate(edges):
        if value < edge:
            return slot * (place + (value - low) / (edge - low))
        low = edge
    return slot * (len(edges) + 0.5)  # the last column has no end


def day_name(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b}"


def _told(day: Day) -> str:
    if day.turns is None:
        return f"{day.date.day} {day.date:%b %Y}: nothing captured"
    return f"{day_name(day.date)}: {day.turns:,} turn{'' if day.turns == 1 else 's'}"
