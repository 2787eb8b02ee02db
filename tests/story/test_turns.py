"""Turns, their approvals, and a session in three lines."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyfor.model.events import StoredEvent
from whyfor.model.sessions import Tokens
from whyfor.model.signals import Signal
from whyfor.model.status import Status, Summary
from whyfor.model.turns import Turn
from whyfor.story.summary import EVERY, LINE_MAX, due, summarise
from whyfor.story.turns import build_turns, counted_kind

START = 1_780_000_000_000
repeatable = settings(deadline=None, derandomize=True, max_examples=100)


class Told:
    """A session's events, a second apart."""

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []
        self.hooks: list[Signal] = []
        self.turn = 0
        self._seqs = count(1)

    @property
    def now(self) -> int:
        return START + 1000 * len(self.events)

    def add(
        self,
        kind: str,
        text: str = "",
        actor: str = "assistant",
        name: str | None = None,
        **data: Any,
    ) -> None:
        seq = next(self._seqs)
        at = START + 1000 * seq
        self.events.append(
            StoredEvent(
                seq, self.turn, kind, "transcript", "high", at, at, actor, text, name, data or None
            )
        )

    def prompt(self, text: str) -> None:
        self.turn += 1
        self.add("user.prompt", text, "user")

    def call(self, name: str, ident: str, text: str = "", **given: Any) -> None:
        self.add(
            "tool.call",
            text or "\n".join(map(str, given.values())),
            name=name,
            id=ident,
            input=given,
        )

    def result(self, ident: str, **data: Any) -> None:
        self.add("tool.result", actor="tool", id=ident, **data)

    def hook(self, event: str, **data: Any) -> None:
        self.hooks.append(Signal(self.now + 100, "claude", event, data=data))

    @property
    def all(self) -> list[Turn]:
        return build_turns(self.events, signals=self.hooks)


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_turn_tells_what_was_asked_done_and_said(told: Told) -> None:
    told.add("session.started", actor="system")
    told.prompt("Fix the parser")
    told.call("Read", "c1", file_path="parser.py")
    told.result("c1")
    told.call("Edit", "c2", file_path="parser.py", old_string="a", new_string="b")
    told.result("c2")
    told.call("Write", "c3", file_path="gone.py", content="x")
    told.result("c3", failed=True)
    told.call("Bash", "c4", command="make")
    told.result("c4", failed=True)
    told.add("assistant.message", "Fixed.")
    told.add("error", "overloaded", "system")
    told.add("turn.completed", actor="system", duration_ms=1234)
    spent = {1: Tokens(input=10, output=5)}
    before, turn = build_turns(told.events, spent=spent)
    assert (before.turn, before.prompt, before.tokens) == (0, None, None)
    assert (turn.prompt, turn.closing, turn.tokens) == (
        "Fix the parser",
        "Fixed.",
        Tokens(input=10, output=5),
    )
    assert turn.tools == {"Read": 1, "Edit": 1, "Write": 1, "Bash": 1}
    assert turn.kinds == {"read": 1, "edit": 2, "shell": 1}
    assert (turn.files, turn.failures, turn.errors) == (["parser.py"], 2, ["overloaded"])
    assert (turn.duration_ms, turn.interrupted) == (1234, False)


def test_a_turn_nobody_measured_lasts_from_its_first_to_its_last_record(told: Told) -> None:
    told.prompt("Go")
    told.add("assistant.message", "Gone.")
    assert told.all[0].duration_ms == 1000
    undated = StoredEvent(
        1, 1, "user.prompt", "transcript", "high", None, START, "user", "Go", None, None
    )
    assert build_turns([undated])[0].duration_ms is None


def test_files_of_patches_and_of_changes(told: Told) -> None:
    told.prompt("Patch it")
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"
    )
    told.call("apply_patch", "c1", text=patch, input=patch)
    told.call("apply_patch", "c2", changes={"c.py": {"add": {}}, "a.py": {}})
    assert told.all[0].files == ["a.py", "b.py", "c.py"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Bash", "shell"),
        ("exec_command", "shell"),
        ("run_shell_command", "shell"),
        ("MultiEdit", "edit"),
        ("apply_patch", "edit"),
        ("read_file", "read"),
        ("Grep", "search"),
        ("WebFetch", "web"),
        ("Task", "subagent"),
        ("AskUserQuestion", "question"),
        ("update_plan", "plan"),
        ("mcp__shop__list", "mcp"),
        ("juggle", "other"),
        ("", "other"),
    ],
)
def test_tools_are_counted_by_what_they_do(name: str, kind: str) -> None:
    assert counted_kind(name) == kind


# -- approvals -----------------------------------------------------------------------------------


def test_requests_are_told_with_their_turn_and_what_came_of_them(told: Told) -> None:
    told.prompt("Touch two files")
    told.call("Bash", "c1", command="touch a")
    told.hook("PermissionRequest", tool_name="Bash")
    asked = told.hooks[-1].at
    told.result("c1")
    allowed_at = told.now
    told.prompt("And another")
    told.call("Bash", "c2", command="touch b")
    told.hook("PermissionRequest", tool_name="Bash")
    told.add("approval.resolved", actor="user", id="c2", decision="denied")
    told.result("c2", failed=True, rejected=True)
    told.add("turn.completed", actor="user", interrupted=True)
    told.prompt("And one more")
    told.call("Bash", "c3", command="touch c")
    told.hook("PermissionRequest", tool_name="Bash")
    told.prompt("Never mind")
    told.call("Write", "c4", file_path="d")
    told.hook("PermissionRequest", tool_name="Write")
    first, second, third, fourth = told.all
    (yes,) = first.approvals
    assert (yes.at, yes.tool, yes.action, yes.resolved_at, yes.decision) == (
        asked,
        "Bash",
        "touch a",
        allowed_at,
        "allowed",
    )
    (no,) = second.approvals
    assert (no.action, no.decision) == ("touch b", "denied")
    (dropped,) = third.approvals
    assert (dropped.action, dropped.decision) == ("touch c", "superseded")
    (open_,) = fourth.approvals
    assert (open_.tool, open_.action, open_.decision, open_.resolved_at) == (
        "Write",
        "d",
        None,
        None,
    )


def test_a_no_is_told_also_where_no_hook_told_of_the_request(told: Told) -> None:
    told.prompt("Touch it")
    told.call("Bash", "c1", command="touch a")
    told.add("approval.resolved", actor="user", id="c1", decision="denied")
    told.result("c1", failed=True, rejected=True)
    ((no,),) = [turn.approvals for turn in told.all]
    assert (no.action, no.decision) == ("touch a", "denied")


def test_a_request_that_hook_and_transcript_tell_of_is_one(told: Told) -> None:
    told.prompt("Clean up")
    told.hook("PermissionRequest")
    told.add("approval.requested", "rm -r build", name="shell", id="t1", request="r1")
    told.add("approval.resolved", actor="user", id="t1", request="r1", decision="approved")
    told.result("t1")
    ((asked,),) = [turn.approvals for turn in told.all]
    assert (asked.tool, asked.action, asked.call) == ("shell", "rm -r build", "t1")
    assert (asked.decision, asked.resolved_at) == ("allowed", told.now - 1000)


def test_a_subagents_request_is_its_own(told: Told) -> None:
    told.prompt("Let others do it")
    told.call("Bash", "c1", command="make")
    told.hook("PermissionRequest", tool_name="Bash", agent_id="a1")
    told.result("c1")
    told.hook("SubagentStop", agent_id="a1")
    ((asked,),) = [turn.approvals for turn in told.all]
    assert (asked.subagent, asked.action, asked.decision) == ("a1", None, "superseded")


def test_without_requests_there_are_none(told: Told) -> None:
    told.prompt("Go")
    told.call("Bash", "c1", command="make")
    told.result("c1")
    assert told.all[0].approvals == []
    assert build_turns([], signals=[Signal(START, "claude", "PermissionRequest")]) == []


# -- three lines ---------------------------------------------------------------------------------


def being(phase: str, **rest: Any) -> Status:
    return Status(phase, "Stop hook", "high", **rest)


def test_a_session_at_work_in_three_lines(told: Told) -> None:
    told.prompt("Split the importer")
    told.add("assistant.message", "## Moved parsing into `rows.py`. Nothing else changed.\n\nMore.")
    told.prompt("Now the tests")
    told.call("Bash", "c1", command="pytest")
    told.call("Bash", "c2", command="pytest -x")
    told.call("Edit", "c3", file_path="/code/tests/test_rows.py", new_string="x")
    told.prompt("One module per step,\nno behaviour change.")
    told.call("Bash", "c4", command="pytest -q tests/importer")
    made = summarise(told.all, being("running", activity="Bash: pytest -q tests/importer"))
    assert str(made) == (
        "Current: Bash: pytest -q tests/importer\n"
        "Recent: 2 commands, 1 edit, wrote test_rows.py; Moved parsing into `rows.py`\n"
        "Last prompt: One module per step, no behaviour change."
    )


@pytest.mark.parametrize(
    ("status", "current"),
    [
        (being("running"), "running"),
        (being("waiting_approval", activity="Bash: make"), "asks to be allowed: Bash: make"),
        (being("waiting_approval"), "asks to be allowed: something it does not tell"),
        (being("waiting"), "waits for you"),
        (being("waiting", interrupted=True), "waits for you after an interrupt"),
        (being("waiting", failed="rate_limit"), "waits for you; its last turn failed: rate_limit"),
        (being("waiting", questions=["Redis or files?", "When?"]), "asks: Redis or files?"),
        (being("exited"), "exited: Stop hook"),
        (being("unknown"), "unknown: Stop hook"),
    ],
)
def test_what_it_does_now(status: Status, current: str) -> None:
    assert summarise([], status) == Summary(current, "nothing yet", "none")


@pytest.mark.parametrize(
    ("closing", "recent"),
    [
        ("Done: all twelve tests pass. I left the cache alone.", "Done: all twelve tests pass"),
        ("Fixed. The loop ends now. See below.", "Fixed. The loop ends now"),
        ("Three problems remain: a, b and c.", "Three problems remain"),
        ("Done.", "Done"),
    ],
)
def test_a_word_that_opens_a_sentence_does_not_stand_for_it(
    closing: str, recent: str, told: Told
) -> None:
    told.prompt("Go on")
    told.add("assistant.message", closing)
    assert summarise(told.all, being("waiting")).recent == recent


def test_only_the_last_five_turns_are_recent_the_newest_first(told: Told) -> None:
    for number in range(8):
        told.prompt(f"Step {number}")
        told.add("assistant.message", f"Step {number} is done.")
    told.prompt("Stop")
    told.add("turn.completed", actor="user", interrupted=True)
    made = summarise(told.all, being("waiting", interrupted=True))
    assert (
        made.recent == "interrupted; Step 7 is done; Step 6 is done; Step 5 is done; Step 4 is done"
    )
    assert made.prompt == "Stop"


@repeatable
@given(st.lists(st.tuples(st.text(), st.text(), st.text(max_size=20)), max_size=8), st.text())
def test_it_is_three_bounded_lines_whatever_was_said(
    said: list[tuple[str, str, str]], activity: str
) -> None:
    told = Told()
    for prompt, closing, path in said:
        told.prompt(prompt * 50)
        told.call("Write", "c", file_path=path, content="x")
        told.add("assistant.message", closing * 50)
        told.add("error", closing)
    lines = str(summarise(told.all, being("running", activity=activity * 50))).split("\n")
    assert [line.partition(": ")[0] for line in lines] == ["Current", "Recent", "Last prompt"]
    assert all(len(line) <= LINE_MAX + len("Last prompt: ") for line in lines)
    assert not any("\x00" <= letter < " " for line in lines for letter in line)


def test_a_new_one_is_due_every_half_minute_or_when_a_turn_completes() -> None:
    assert due(None, None, START)
    assert not due(START, None, START + EVERY - 1)
    assert due(START, None, START + EVERY)
    assert due(START, START + 1, START + 2)
    assert not due(START, START - 1, START + 2), "that turn is in it already"
