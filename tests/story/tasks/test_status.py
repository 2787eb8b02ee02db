"""What became of a task, from what was done and said, and when."""

from __future__ import annotations

from typing import Any

from tests.cases import check_each
from whyfor.model.sessions import SessionBrief
from whyfor.model.tasks import TaskAct, TaskIssue, TaskRun, TaskStatement
from whyfor.story.tasks.status import RunFacts, judge_run, judge_task

HOUR = 3_600_000
NOW = 1_000 * HOUR


def run(*acts: tuple[str, int], last: int = NOW, objected: bool = False, **more: Any) -> RunFacts:
    made = tuple(
        TaskAct(action, at, number, 1, "shell", "high", objected=objected)  # type: ignore[arg-type]
        for number, (action, at) in enumerate(acts, 1)
    )
    session = SessionBrief(1, "claude", "a", None, last, 9, 1, "main", "Title", 1)
    return RunFacts(TaskRun("tw-1", 1, 9, 1, 1, made), session, **more)


def test_the_last_act_decides_then_silence() -> None:
    def check(case: tuple[RunFacts, str]) -> None:
        facts, status = case
        assert judge_run(facts, NOW).status == status

    before = NOW - 48 * HOUR
    check_each(
        [
            ("taken on", (run(("claim", NOW)), "open")),
            ("closed", (run(("claim", 1), ("close", 2)), "complete")),
            ("closed long ago", (run(("claim", 1), ("close", 2), last=before), "complete")),
            ("reopened", (run(("close", 2), ("reopen", 3)), "rejected")),
            ("reopened, never closed", (run(("claim", 2), ("reopen", NOW)), "open")),
            ("closed again", (run(("close", 2), ("reopen", 3), ("close", 4)), "complete")),
            ("given back", (run(("claim", 2), ("unclaim", 3)), "abandoned")),
            (
                "given back after a no",
                (run(("claim", 2), ("unclaim", 3), objected=True), "rejected"),
            ),
            ("silent", (run(("claim", 1), last=before), "abandoned")),
            ("silent for less", (run(("claim", 1), last=NOW - 23 * HOUR), "open")),
            ("its session ended", (run(("claim", 1), last=NOW - 1, ended=True), "abandoned")),
            ("only named", (run(("name", 1)), "open")),
            ("named, silent", (run(("name", 1), last=before), "abandoned")),
            ("named, committed", (run(("name", 1), last=before, committed=True), "open")),
        ],
        check,
    )


def test_a_person_wins_until_something_newer_happens() -> None:
    done = run(("claim", 1), ("close", 2))
    no = TaskStatement(key="tw-1", at=5, action="reject", text="Too slow")
    judged = judge_task([done], [no], None, NOW)
    assert (judged.status, judged.decisions[-1].text) == ("rejected", "Too slow")
    again = run(("claim", 6), ("close", 7))
    assert judge_task([done, again], [no], None, NOW).status == "complete"
    closed = TaskIssue("shop", "tw-1", "beads", status="closed", closed_at=4)
    assert judge_task([done], [no], closed, NOW).status == "rejected"
    late = TaskIssue("shop", "tw-1", "beads", status="closed", closed_at=9, close_reason="Merged")
    judged = judge_task([run(("claim", 1))], [no], late, NOW)
    assert (judged.status, judged.decisions[-1].text) == ("complete", "Merged")
    opened = TaskIssue("shop", "tw-1", "beads", status="open", reopened_at=9)
    assert judge_task([done], [], opened, NOW).status == "rejected"


def test_a_task_that_is_only_named_by_a_person_is_open() -> None:
    start = TaskStatement(key="X-1", at=NOW, action="start")
    assert judge_task([], [start], None, NOW).status == "open"
    assert judge_task([], [], None, NOW).confidence == "low"
