"""How work went: turns until done, rounds of failing checks, times between turns."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.stats import ApprovalWait, FailedCommand, TurnTime
from whyfor.service.ingest import ingest
from whyfor.service.insights import InsightsRequest
from whyfor.service.insights_work import (
    LEFT,
    check_rounds,
    session_times,
    time_spans,
    work_overview,
)

NOW = datetime(2026, 5, 31, 12, 0).astimezone()


def test_failing_checks_and_times_of_a_period(settings: Settings, home: Path) -> None:
    talk = Transcript("s-1", day="2026-05-20")
    talk.prompt("Fix the door")
    for _ in range(3):
        talk.call("Bash", {"command": "pytest -q tests"}, "1 failed", failed=True)
        talk.call("Edit", {"file_path": "/code/shop/a.py", "old_string": "a", "new_string": "b"})
    talk.call("Bash", {"command": "pytest -q tests"}, "3 passed")
    talk.call("Bash", {"command": "ls nowhere"}, "no such file", failed=True)
    talk.say("Fixed.")
    talk.prompt("And the window")
    talk.say("Done.")
    talk.save(home)
    ingest(settings)
    found = work_overview(settings, InsightsRequest(period="30"), NOW)
    assert (found.now.rounds.total, found.now.rounds.bars) == (1, [0, 0, 1, 0, 0, 0])
    # a line every 5 s: the last response to the first prompt is 85 s after it
    assert (found.now.worked, found.now.waited) == (90_000, 5_000)
    assert (found.now.turns.total, found.now.turns.median) == (0, None)
    assert found.before.open == 0
    spans = [(span.first.day, span.last.day) for span in found.now.spans]
    assert spans == [(2, 3), (4, 10), (11, 17), (18, 24), (25, 31)]
    assert [span.total for span in found.now.spans] == [0, 0, 0, 95_000, 0]


def test_the_time_of_each_part_of_a_period_is_told_apart() -> None:
    day = datetime(2026, 5, 4, 12).astimezone()
    start = round(day.timestamp() * 1000)
    turns = [
        TurnTime(1, 1, start, start + 60_000),
        TurnTime(1, 2, start + 90_000, None),
        TurnTime(1, 3, start + 100_000, start + 120_000),
        TurnTime(2, 1, start + 86_400_000, start + 86_401_000),
    ]
    waits = [ApprovalWait(1, start + 1000, start + 6000), ApprovalWait(1, start, None)]
    first, last = time_spans(turns, waits, day.date(), day.date() + timedelta(days=1))
    assert (first.worked, first.waited, first.approval, first.unknown) == (
        75_000, 30_000, 5000, 10_000,
    )  # fmt: skip
    assert (last.worked, last.total) == (1000, 1000)
    assert len(time_spans(turns, waits, date(2026, 1, 1), date(2026, 12, 31))) == 12


def test_rounds_are_counted_by_check_and_turn() -> None:
    failed = [
        FailedCommand(1, 1, "npm test"),
        FailedCommand(1, 1, "npm test -- door"),
        FailedCommand(1, 2, "npm test"),
        FailedCommand(2, 1, "make lint"),
        FailedCommand(2, 1, "rm nothing"),
    ]
    assert sorted(check_rounds(failed)) == [1, 1, 2]


def test_a_session_that_was_left_is_not_waited_for() -> None:
    turns = [
        TurnTime(1, 1, 0, 10),
        TurnTime(1, 2, 110, 130),
        TurnTime(1, 3, 130 + LEFT + 1, None),
        TurnTime(1, 4, 200 + LEFT, 300 + LEFT),
        TurnTime(2, 1, 400 + LEFT, 500 + LEFT),
    ]
    assert session_times(turns) == (10 + 20 + 100 + 100, 100)
