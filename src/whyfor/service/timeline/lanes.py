"""Lay out sessions as lanes beside a list of commits: the lane of each session, and its shape
between rows.

Rows have times (newest first, except in groups) or none (a day's heading). Between two rows a
session is working, open and silent, or absent. A row can be outside a session's time and still
contain its words.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import msgspec

LANES = 3
CLOSING = 600_000  # ms: the last words after a commit do not reach on to the next
WORK, IDLE, NONE = "work", "idle", ""
_EVER = 1 << 62


class SessionSpan(msgspec.Struct, frozen=True):
    """A session in time: when it was open, when it was active, and which rows it contributed to."""

    name: str
    agent: str
    start: int
    end: int
    active: Sequence[tuple[int, int]] = ()  # from when to when
    rows: Set[int] = frozenset()
    open: bool = False


class LaneSlice(msgspec.Struct, frozen=True):
    """A session in one row: its shape above and below the middle of the row."""

    lane: int
    agent: str
    above: str
    below: str
    knot: bool = False
    head: bool = False  # its mark, on top of all


def lanes(times: Sequence[int | None], spans: Sequence[SessionSpan]) -> list[list[LaneSlice]]:
    """Return for each row the sessions in it, by lane."""
    gaps = _gaps(times)
    found: list[list[LaneSlice]] = [[] for _ in times]
    until = [-1] * LANES  # the last row each lane is taken in
    shapes = filter(None, (_shape(gaps, span) for span in spans))
    for shape in sorted(shapes, key=lambda shape: (shape.first, shape.span.start)):
        lane = next((number for number in range(LANES) if until[number] < shape.first), LANES - 1)
        until[lane] = max(until[lane], shape.last)
        for row in range(shape.first, shape.last + 1):
            piece = shape.slice(row, lane)
            if piece is not None:
                found[row].append(piece)
    return [sorted(row, key=lambda piece: piece.lane) for row in found]


class _Shape(msgspec.Struct, frozen=True):
    """The rows of a session, and its state in each gap between them."""

    span: SessionSpan
    first: int
    last: int
    states: list[str]

    def slice(self, row: int, lane: int) -> LaneSlice | None:
        above, below = self.states[row], self.states[row + 1]
        knot = row in self.span.rows
        if not (above or below or knot):
            return None
        head = self.span.open and row == 0
        return LaneSlice(lane, self.span.agent, NONE if head else above, below, knot, head)


def _gaps(times: Sequence[int | None]) -> list[tuple[int, int]]:
    """Return the time ranges above the first row, between rows, and below the last row."""
    known = [time for time in times if time is not None]
    if not known:
        return [(0, 0)] * (len(times) + 1)
    rest = iter(known)
    above, below = _EVER, next(rest)
    gaps = [_ordered(above, below)]
    for time in times:
        if time is not None:
            above, below = time, next(rest, -_EVER)
        gaps.append(_ordered(above, below))
    return gaps


def _ordered(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _shape(gaps: Sequence[tuple[int, int]], span: SessionSpan) -> _Shape | None:
    """Return the shape of a session; None if it is in no row."""
    states = [_state(gap, span) for gap in gaps]
    rows = set(span.rows)
    for number, state in enumerate(states):
        if state:
            rows |= {number - 1, number}
    rows -= {-1, len(gaps) - 1}  # no row is above the first gap or below the last
    if not rows:
        return None
    first, last = min(rows), max(rows)
    # it was open all the time, even where rows are not in order
    for number in range(first + 1, last + 1):
        states[number] = states[number] or _work(gaps[number], span)
    if first == last and not any(states[first : first + 2]):
        states[first + 1] = IDLE
    return _Shape(span, first, last, states)


def _state(gap: tuple[int, int], span: SessionSpan) -> str:
    since, until = gap
    end = _EVER if span.open else span.end - CLOSING
    if span.start >= until or end <= since:
        return NONE
    return _work(gap, span)


def _work(gap: tuple[int, int], span: SessionSpan) -> str:
    return WORK if any(begun < gap[1] and done > gap[0] for begun, done in span.active) else IDLE
