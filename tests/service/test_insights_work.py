"""How work went: turns until done, rounds of failing checks, times between turns."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.stats import FailedCommand, TurnTime
from whyfor.service.ingest import ingest
from whyfor.service.insights import InsightsRequest
from whyfor.service.insights_work import LEFT, check_rounds, session_times, work_overview

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
