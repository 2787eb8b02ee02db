"""Sessions as lanes: where each is, how it looks between rows, what shares a lane."""

from __future__ import annotations

from whyfor.service.timeline.lanes import (
    CLOSING,
    IDLE,
    LANES,
    NONE,
    WORK,
    LaneSlice,
    SessionSpan,
    lanes,
)

HOUR = 3_600_000


def _one(rows: list[list[LaneSlice]]) -> list[tuple[str, str, bool]]:
    return [
        (row[0].above, row[0].below, row[0].knot) if row else (NONE, NONE, False) for row in rows
    ]


def test_a_session_reaches_from_its_commit_down_to_the_one_before_it() -> None:
    span = SessionSpan("s", "claude", 5 * HOUR, 9 * HOUR, [(5 * HOUR, 9 * HOUR)], frozenset({1}))
    assert _one(lanes([20 * HOUR, 9 * HOUR, 3 * HOUR, HOUR], [span])) == [
        (NONE, NONE, False),
        (NONE, WORK, True),
        (WORK, NONE, False),
        (NONE, NONE, False),
    ]


def test_last_words_after_a_commit_do_not_reach_on_to_the_next() -> None:
    late = SessionSpan(
        "s", "claude", 5 * HOUR, 9 * HOUR + CLOSING, [(5 * HOUR, 9 * HOUR)], frozenset({1})
    )
    longer = SessionSpan(
        "s", "claude", 5 * HOUR, 9 * HOUR + CLOSING + 1, [(5 * HOUR, 9 * HOUR)], frozenset({1})
    )
    assert _one(lanes([20 * HOUR, 9 * HOUR], [late]))[0] == (NONE, NONE, False)
    assert _one(lanes([20 * HOUR, 9 * HOUR], [longer]))[0] == (NONE, IDLE, False)


def test_a_heading_has_what_is_above_it_and_below_it() -> None:
    span = SessionSpan("s", "claude", 5 * HOUR, 9 * HOUR, [(5 * HOUR, 9 * HOUR)], frozenset({0}))
    assert _one(lanes([9 * HOUR, None, 3 * HOUR], [span])) == [
        (NONE, WORK, True),
        (WORK, WORK, False),
        (WORK, NONE, False),
    ]


def test_a_session_that_was_quiet_for_a_while_is_dotted_there() -> None:
    span = SessionSpan(
        "s", "claude", HOUR, 9 * HOUR, [(HOUR, 2 * HOUR), (8 * HOUR, 9 * HOUR)], frozenset({0, 3})
    )
    rows = _one(lanes([9 * HOUR, 7 * HOUR, 4 * HOUR, 2 * HOUR], [span]))
    assert [row[1] for row in rows] == [WORK, IDLE, IDLE, WORK]


def test_rows_of_a_group_out_of_order_leave_no_hole() -> None:
    span = SessionSpan("s", "claude", HOUR, 4 * HOUR, [(HOUR, 4 * HOUR)], frozenset({1, 2}))
    rows = _one(lanes([9 * HOUR, 2 * HOUR, 4 * HOUR, 30 * 60_000], [span]))
    assert rows[1][1] == rows[2][0] == WORK
    assert rows[2][1] == WORK


def test_an_open_session_has_its_mark_on_top() -> None:
    span = SessionSpan(
        "s", "claude", 5 * HOUR, 6 * HOUR, [(5 * HOUR, 6 * HOUR)], frozenset(), open=True
    )
    rows = lanes([20 * HOUR, 4 * HOUR], [span])
    assert rows[0][0].head and rows[0][0].below == WORK and rows[0][0].above == NONE
    assert not rows[1][0].head


def test_sessions_that_meet_take_lanes_of_their_own_and_many_share_the_last() -> None:
    spans = [
        SessionSpan(str(n), "claude", 5 * HOUR, 9 * HOUR, (), frozenset({0})) for n in range(5)
    ]
    (first, _) = lanes([9 * HOUR, HOUR], spans)
    assert [piece.lane for piece in first] == [0, 1, 2, 2, 2]
    assert max(piece.lane for piece in first) == LANES - 1


def test_a_lane_is_taken_again_when_it_is_free() -> None:
    spans = [
        SessionSpan("late", "claude", 8 * HOUR, 9 * HOUR, (), frozenset({0})),
        SessionSpan("early", "codex", 2 * HOUR, 3 * HOUR, (), frozenset({2})),
    ]
    rows = lanes([9 * HOUR, 7 * HOUR, 3 * HOUR, HOUR], spans)
    assert {piece.lane for row in rows for piece in row} == {0}


def test_a_commit_long_after_its_session_is_tied_to_it_all_the_same() -> None:
    span = SessionSpan("s", "claude", HOUR, 2 * HOUR, [(HOUR, 2 * HOUR)], frozenset({0}))
    rows = _one(lanes([90 * HOUR, 50 * HOUR, 30 * 60_000], [span]))
    assert rows[0] == (NONE, IDLE, True)
    assert rows[1] == (IDLE, WORK, False)


def test_no_rows_and_no_sessions_are_nothing() -> None:
    assert lanes([], []) == []
    assert lanes([None], [SessionSpan("s", "claude", 1, 2)]) == [[]]
