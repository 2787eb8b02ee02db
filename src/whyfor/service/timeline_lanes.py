"""Sessions as lanes beside a list of commits: which lane each has, and how it looks between one
row and the next.

Rows have times (the newest first, groups aside) or none (a day's heading). Between two of them a
session is at work, open with nothing new, or not there; a row may lie outside its time and still
hold its words.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import msgspec

LANES = 3
CLOSING = 600_000  # ms: the last words after a commit do not reach on to the next
WORK, IDLE, NONE = "work", "idle", ""
_EVER = 1 << 62


class SessionSpan(msgspec.Struct, frozen=True):
    """A session in time: when it was there, when it did something, and which rows hold its
    words."""

    name: str
    agent: str
    start: int
    end: int
    active: Sequence[tuple[int, int]] = ()  # from when to when
    rows: Set[int] = frozenset()
    open: bool = False


class LaneSlice(msgspec.Struct, frozen=True):
    """A session in one row: above and below the row's middle."""

    lane: int
    agent: str
    above: str
    below: str
    knot: bool = False
    head: bool = False  # its mark, on top of all


def lanes(times: Sequence[int | None], spans: Sequence[SessionSpan]) -> list[list[LaneSlice]]:
    """For each row the sessions in it, by lane."""
    gaps = _gaps(times)
    found: list[list[LaneSlice]] = [[] for _ in times]
    until = [-1] * LANES  # the last row each lane is taken in
    shapes = sorted(
        ((span, _states(gaps, span)) for span in spans),
        key=lambda item: (item[1][0], item[0].start),
    )
    for span, (first, last, states) in shapes:
        if first < 0:
            continue
        lane = next((number for number in range(LANES) if until[number] < first), LANES - 1)
        until[lane] = max(until[lane], last)
        for row in range(first, last + 1):
            above, below = states[row], states[row + 1]
            knot = row in span.rows
            if above or below or knot:
                head = span.open and row == 0
                found[row].append(
                    LaneSlice(lane, span.agent, NONE if head else above, below, knot, head)
                )
    return [sorted(row, key=lambda piece: piece.lane) for row in found]


def _gaps(times: Sequence[int | None]) -> list[tuple[int, int]]:
    """The time above the first row, between each row and the next, and below the last one."""
    known = [time for time in times if time is not None]
    if not known:
        return [(0, 0)] * (len(times) + 1)
    gaps: list[tuple[int, int]] = []
    above, rest = _EVER, iter(known)
    below = next(rest)
    for time in times:
        gaps.append((min(above, below), max(above, below)))
        if time is not None:
            above, below = time, next(rest, -_EVER)
    return [*gaps, (min(above, below), max(above, below))]


def _states(gaps: Sequence[tuple[int, int]], span: SessionSpan) -> tuple[int, int, list[str]]:
    """The first and last row of a session, and what it does in each gap."""
    states = [_state(gap, span) for gap in gaps]
    there = [number for number, state in enumerate(states) if state]
    rows = sorted(
        {
            *span.rows,
            *(row for number in there for row in (number - 1, number) if 0 <= row < len(gaps) - 1),
        }
    )
    if not rows:
        return -1, -1, states
    first, last = rows[0], rows[-1]
    # it was there all the time, even where rows are not in order
    for number in range(first + 1, last + 1):
        states[number] = states[number] or _work(gaps[number], span)
    if first == last and not any(states[first : first + 2]):
        states[first + 1] = IDLE
    return first, last, states


def _state(gap: tuple[int, int], span: SessionSpan) -> str:
    since, until = gap
    end = _EVER if span.open else span.end - CLOSING
    if span.start >= until or end <= since:
        return NONE
    return _work(gap, span)


def _work(gap: tuple[int, int], span: SessionSpan) -> str:
    return WORK if any(begun < gap[1] and done > gap[0] for begun, done in span.active) else IDLE
