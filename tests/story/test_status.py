"""Status: every kind of input in every phase, what time and liveness add, and what no input may
do."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import check_each
from whyfor.agents import AGENTS
from whyfor.agents.hooks import hookable
from whyfor.model.events import KINDS, StoredEvent
from whyfor.model.signals import Signal
from whyfor.model.status import Status
from whyfor.story.status import inputs as signs
from whyfor.story.status import state
from whyfor.story.status.inputs import StatusInput, of_event, of_process, of_signal
from whyfor.story.status.judge import (
    COMPACTING,
    IDLE,
    LONG,
    PHASES,
    QUIET,
    fold_inputs,
    judge_status,
    process,
)
from whyfor.story.status.state import NEW, State, apply

START = 1_780_000_000_000
SECOND = 1000
LATER = START + 60 * SECOND
repeatable = settings(deadline=None, derandomize=True, max_examples=200)


def event(
    kind: str,
    at: int = LATER,
    seq: int = 50,
    *,
    actor: str = "assistant",
    text: str = "",
    **rest: Any,
) -> StatusInput:
    name, child = rest.pop("name", None), rest.pop("child", "")
    return of_event(
        StoredEvent(seq, 1, kind, "transcript", "high", at, at, actor, text, name, rest or None),
        child,
    )


def hook(
    name: str, at: int = LATER, *, agent: str = "claude", cwd: str | None = None, **data: Any
) -> StatusInput:
    sign = of_signal(Signal(at, agent, name, cwd, data=data))
    assert sign is not None
    return sign


def bash(command: str, at: int, ident: str = "c1", seq: int = 5, **rest: Any) -> StatusInput:
    return event(
        "tool.call",
        at,
        seq,
        name="Bash",
        text=command,
        id=ident,
        input={"command": command},
        **rest,
    )


def now(*seen: StatusInput, at: int | None = None, alive: bool | None = None) -> Status:
    return judge_status(
        fold_inputs(seen), max(sign.at for sign in seen) if at is None else at, alive
    )


# -- every input in every phase ------------------------------------------------------------------

BEGUN = (hook("SessionStart", START, source="startup"), hook("UserPromptSubmit", START + SECOND))
CALLED = (*BEGUN, bash("make test", START + 2 * SECOND))
# How a session gets into each phase: what was heard of it before.
BEFORE: dict[str, tuple[StatusInput, ...]] = {
    "unknown": (),
    "idle": BEGUN[:1],
    "running": CALLED,
    "waiting_approval": (*CALLED, hook("PermissionRequest", START + 3 * SECOND, tool_name="Bash")),
    "waiting": (*BEGUN, hook("Stop", START + 4 * SECOND)),
    "exited": (
        *BEGUN,
        hook("Stop", START + 4 * SECOND),
        hook("SessionEnd", START + 5 * SECOND, reason="other"),
    ),
}
# What follows on each sign, from unknown, idle, running, waiting_approval, waiting, exited; and
# why.
SAME = "unknown idle running waiting_approval waiting exited"
EXPECTED: dict[str, tuple[str, str]] = {
    "started": (
        "idle idle idle idle idle idle",
        "a new process: what was open in the old one is gone",
    ),
    "prompt": (
        "running running running running running running",
        "a turn begins; what was asked before is pointless",
    ),
    "thinking": (
        "running running running waiting_approval running exited",
        "the agent works, even after its Stop if another hook sent it on; streamed thoughts "
        "answer no request",
    ),
    "spoke": ("running running running waiting_approval running exited", "as thinking"),
    "call": (
        "running running running waiting_approval running exited",
        "a call of the same reply answers no request",
    ),
    "result": (
        "running running running running running exited",
        "the tool ran or was refused: the request is answered",
    ),
    "asked": (
        "waiting_approval waiting_approval waiting_approval waiting_approval waiting_approval "
        "exited",
        "a dialog is open, whatever was before",
    ),
    "noticed": (
        "waiting_approval waiting_approval waiting_approval waiting_approval waiting_approval "
        "exited",
        "a dialog is open, and only that is known",
    ),
    "answered": (
        "unknown idle running running waiting exited",
        "the person decided; nothing else changes",
    ),
    "question": (
        "waiting waiting waiting waiting_approval waiting exited",
        "it waits for an answer; a permission that waits too comes first",
    ),
    "done": ("waiting waiting waiting waiting waiting exited", "the prompt is free"),
    "failed": (
        "waiting waiting waiting waiting waiting exited",
        "the prompt is free, though nothing came of it",
    ),
    "interrupted": (
        "waiting waiting waiting waiting waiting exited",
        "the person stopped it, and the prompt is free",
    ),
    "ready": (
        "waiting waiting waiting waiting waiting exited",
        "the agent says that it waits for a prompt",
    ),
    "ready, says the process": (
        "idle idle waiting waiting waiting exited",
        "no turn runs; it waits only if there was one",
    ),
    "busy": (
        "running running running running running exited",
        "its own registry says so, also of what was approved",
    ),
    "compacting": (
        "running running running waiting_approval running exited",
        "it works, though on no prompt",
    ),
    "compacted": (SAME, "the turn it was in goes on, if there was one"),
    "child.active": (SAME, "a subagent's work says nothing of its parent's turn"),
    "child.stopped": (SAME, "a subagent's end says nothing of its parent's turn"),
    "erred": (SAME, "most errors are tried again; the end of a turn is told apart"),
    "exited": ("exited exited exited exited exited exited", "it said goodbye"),
    "heard": (SAME, "somebody is there, and that is all"),
}
# Every input there is, and the sign it is taken for.
INPUTS: dict[str, tuple[Callable[[], StatusInput], str]] = {
    "event session.started": (
        lambda: event("session.started", actor="system", cwd="/code"),
        "started",
    ),
    "event session.exited": (lambda: event("session.exited", actor="system"), "exited"),
    "event turn.started": (lambda: event("turn.started", actor="system"), "prompt"),
    "event turn.completed": (
        lambda: event("turn.completed", actor="system", duration_ms=5),
        "done",
    ),
    "event turn.completed, interrupted": (
        lambda: event("turn.completed", interrupted=True),
        "interrupted",
    ),
    "event turn.completed, failed": (lambda: event("turn.completed", failed=True), "failed"),
    "event user.prompt": (lambda: event("user.prompt", actor="user", text="Go on"), "prompt"),
    "event user.prompt, to a subagent": (lambda: event("user.prompt", text="Look around"), "heard"),
    "event assistant.message": (lambda: event("assistant.message", text="Done."), "spoke"),
    "event assistant.thinking": (lambda: event("assistant.thinking", text="Hm."), "thinking"),
    "event tool.call": (
        lambda: event("tool.call", name="Read", id="c2", input={"file_path": "a.py"}),
        "call",
    ),
    "event tool.call, typed by the person": (
        lambda: event("tool.call", actor="user", name="Bash"),
        "heard",
    ),
    "event tool.result": (lambda: event("tool.result", actor="tool", id="c1"), "result"),
    "event tool.result, typed by the person": (
        lambda: event("tool.result", actor="user", name="Bash"),
        "heard",
    ),
    "event approval.requested": (
        lambda: event("approval.requested", text="make clean", id="c2"),
        "asked",
    ),
    "event approval.resolved": (
        lambda: event("approval.resolved", actor="user", id="c1", decision="denied"),
        "answered",
    ),
    "event question.asked": (lambda: event("question.asked", text="Which?", id="c2"), "question"),
    "event status.changed": (
        lambda: event("status.changed", actor="user", command="/model"),
        "heard",
    ),
    "event compaction": (lambda: event("compaction", actor="system", trigger="auto"), "compacted"),
    "event subagent.started": (
        lambda: event("subagent.started", text="Look", session="s2"),
        "child.active",
    ),
    "event subagent.stopped": (
        lambda: event("subagent.stopped", actor="subagent", session="s2"),
        "child.stopped",
    ),
    "event subagent.stopped, by its call": (
        lambda: event("subagent.stopped", actor="subagent", id="c9"),
        "heard",
    ),
    "event error": (lambda: event("error", actor="system", text="overloaded"), "erred"),
    "event heartbeat": (lambda: event("heartbeat", actor="system"), "heard"),
    "event of a kind nobody knows": (lambda: event("tea.served"), "heard"),
    "hook SessionStart": (lambda: hook("SessionStart", source="resume"), "started"),
    "hook SessionStart, after a compaction": (
        lambda: hook("SessionStart", source="compact"),
        "compacted",
    ),
    "hook sessionStart": (lambda: hook("sessionStart", agent="copilot", source="new"), "started"),
    "hook UserPromptSubmit": (lambda: hook("UserPromptSubmit"), "prompt"),
    "hook userPromptSubmitted": (lambda: hook("userPromptSubmitted", agent="copilot"), "prompt"),
    "hook BeforeAgent": (lambda: hook("BeforeAgent", agent="gemini"), "prompt"),
    "hook PreToolUse": (lambda: hook("PreToolUse", tool_name="Bash", tool_use_id="c2"), "call"),
    "hook BeforeTool": (lambda: hook("BeforeTool", agent="gemini", tool_use_id="c2"), "call"),
    "hook PostToolUse": (lambda: hook("PostToolUse", tool_name="Bash", tool_use_id="c1"), "result"),
    "hook PostToolUseFailure": (
        lambda: hook("PostToolUseFailure", tool_use_id="c1", error="Exit code 3"),
        "result",
    ),
    "hook PermissionDenied": (lambda: hook("PermissionDenied", tool_use_id="c1"), "result"),
    "hook postToolUse": (lambda: hook("postToolUse", agent="copilot", tool_use_id="c1"), "result"),
    "hook AfterTool": (lambda: hook("AfterTool", agent="gemini", tool_use_id="c1"), "result"),
    "hook PermissionReplied": (
        lambda: hook("PermissionReplied", tool_use_id="c1", reason="allowed", agent="opencode"),
        "answered",
    ),
    "hook PermissionRequest": (lambda: hook("PermissionRequest", tool_name="Bash"), "asked"),
    "hook PermissionRequest, of a plan": (
        lambda: hook("PermissionRequest", tool_name="ExitPlanMode"),
        "asked",
    ),
    "hook PermissionRequest, of a question": (
        lambda: hook("PermissionRequest", tool_name="AskUserQuestion"),
        "question",
    ),
    "hook permissionRequest": (lambda: hook("permissionRequest", agent="copilot"), "asked"),
    "hook Notification, of a permission": (
        lambda: hook("Notification", notification_type="permission_prompt"),
        "noticed",
    ),
    "hook Notification, of Gemini's": (
        lambda: hook("Notification", notification_type="ToolPermission"),
        "noticed",
    ),
    "hook Notification, idle": (
        lambda: hook("Notification", notification_type="idle_prompt"),
        "ready",
    ),
    "hook Notification": (lambda: hook("Notification", notification_type="auth_success"), "heard"),
    "hook notification": (lambda: hook("notification", agent="copilot"), "heard"),
    "hook Stop": (lambda: hook("Stop"), "done"),
    "hook AfterAgent": (lambda: hook("AfterAgent", agent="gemini"), "done"),
    "hook agentStop": (lambda: hook("agentStop", agent="copilot"), "done"),
    "hook StopFailure": (lambda: hook("StopFailure", error="overloaded"), "failed"),
    "hook errorOccurred": (lambda: hook("errorOccurred", agent="copilot"), "erred"),
    "hook SubagentStart": (lambda: hook("SubagentStart", agent_id="a1"), "child.active"),
    "hook SubagentStop": (lambda: hook("SubagentStop", agent_id="a1"), "child.stopped"),
    "hook SubagentStop, of a compaction": (lambda: hook("SubagentStop", agent_type=""), "heard"),
    "hook subagentStop": (lambda: hook("subagentStop", agent="copilot"), "heard"),
    "hook PreCompact": (lambda: hook("PreCompact", trigger="manual"), "compacting"),
    "hook preCompact": (lambda: hook("preCompact", agent="copilot"), "compacting"),
    "hook PostCompact": (lambda: hook("PostCompact", trigger="manual"), "compacted"),
    "hook SessionEnd": (lambda: hook("SessionEnd", reason="prompt_input_exit"), "exited"),
    "hook sessionEnd": (lambda: hook("sessionEnd", agent="copilot", reason="complete"), "exited"),
    "hook post-commit": (lambda: hook("post-commit", agent="git"), "heard"),
    "hook nobody knows": (lambda: hook("TeaServed"), "heard"),
    "process busy": (lambda: of_process("busy", "", LATER), "busy"),
    "process idle": (lambda: of_process("idle", "", LATER), "ready, says the process"),
    "process shell": (lambda: of_process("shell", "", LATER), "ready, says the process"),
    "process waiting": (lambda: of_process("waiting", "permission prompt", LATER), "noticed"),
    "process waiting, menu": (lambda: of_process("waiting", "dialog open", LATER), "heard"),
    "process of a status nobody knows": (lambda: of_process("sipping", "", LATER), "heard"),
}


def test_every_kind_of_input_stands_in_the_table() -> None:
    assert {f"event {kind}" for kind in KINDS} <= INPUTS.keys()
    installed = {on.event for agent in hookable().values() for on in agent.events}
    assert {f"hook {name}" for name in installed} <= INPUTS.keys()
    known = {name.lower() for agent in AGENTS.values() for name in agent.facts.hook_events}
    assert {name.removeprefix("hook ").lower() for name in INPUTS} >= known
    assert {sign for _, sign in INPUTS.values()} == EXPECTED.keys()
    assert {sign.partition(",")[0] for sign in EXPECTED} == set(signs.KINDS)
    assert BEFORE.keys() == set(PHASES) and SAME.split() == list(BEFORE)


def test_every_input_is_taken_for_the_sign_it_is() -> None:
    def check(name: str) -> None:
        made, expected = INPUTS[name]
        assert made().kind == expected.partition(",")[0]
        assert made().kind in signs.KINDS

    check_each(((name, name) for name in INPUTS), check)


def test_every_input_in_every_phase() -> None:
    def check(case: tuple[str, str]) -> None:
        phase, name = case
        before = fold_inputs(BEFORE[phase])
        assert judge_status(before, START + 6 * SECOND).phase == phase
        made, sign = INPUTS[name]
        phases, why = EXPECTED[sign]
        after = judge_status(apply(before, made()), LATER)
        assert after.phase == dict(zip(BEFORE, phases.split(), strict=True))[phase], why
        assert (after.approval is not None) == (after.phase == "waiting_approval")
        assert after.evidence and after.confidence in ("high", "medium", "low")

    check_each(((" ".join(case), case) for case in product(BEFORE, INPUTS)), check)


@pytest.mark.parametrize("phase", BEFORE)
def test_a_dead_process_has_exited_and_a_living_one_changes_nothing(phase: str) -> None:
    before = fold_inputs(BEFORE[phase])
    dead = judge_status(before, START + 6 * SECOND, alive=False)
    assert dead.phase == "exited" and dead.confidence == "high"
    assert ("goodbye" in dead.evidence) == (phase != "exited")
    assert judge_status(before, START + 6 * SECOND, alive=True).phase == phase


CHILD = {
    "prompt": hook("UserPromptSubmit", agent_id="a1"),
    "call": hook("PreToolUse", tool_name="Bash", tool_use_id="x1", agent_id="a1"),
    "result": hook("PostToolUse", tool_name="Bash", tool_use_id="x1", agent_id="a1"),
    "stop": hook("Stop", agent_id="a1"),
    "message": event("assistant.message", child="a1"),
    "interrupted": event("turn.completed", interrupted=True, child="a1"),
    "exited": event("session.exited", child="a1"),
    "started": event("session.started", child="a1"),
    "error": event("error", child="a1"),
}


def test_what_a_subagent_does_is_not_its_parents_doing() -> None:
    def check(case: tuple[str, str]) -> None:
        phase, name = case
        assert judge_status(apply(fold_inputs(BEFORE[phase]), CHILD[name]), LATER).phase == phase

    check_each(((" ".join(case), case) for case in product(BEFORE, CHILD)), check)


# -- time and silence ----------------------------------------------------------------------------


@pytest.mark.parametrize("alive", [None, True])
def test_an_open_turn_runs_through_half_a_minute_of_silence(alive: bool | None) -> None:
    assert now(*BEGUN, at=START + SECOND + QUIET, alive=alive).phase == "running"


def test_after_that_it_takes_a_living_process_or_a_tool_at_work() -> None:
    late = START + SECOND + QUIET + 1
    assert now(*BEGUN, at=late, alive=None).phase == "unknown"
    alive = now(*BEGUN, at=late, alive=True)
    assert (alive.phase, alive.confidence) == ("running", "medium")


def test_a_long_tool_call_is_not_idle() -> None:
    late = START + 10 * 60 * SECOND
    known, guessed = now(*CALLED, at=late, alive=True), now(*CALLED, at=late, alive=None)
    assert (known.phase, known.confidence, known.activity) == ("running", "high", "Bash: make test")
    assert (guessed.phase, guessed.confidence) == ("running", "low")
    assert now(*CALLED, at=START + LONG + 3 * SECOND, alive=None).phase == "unknown", (
        "nobody believes that any more"
    )


def test_silence_alone_is_never_waiting() -> None:
    for phase, seen in BEFORE.items():
        for minutes in (0, 1, 3, 60, 10_000):
            for alive in (None, True):
                found = judge_status(
                    fold_inputs(seen), START + 6 * SECOND + minutes * 60 * SECOND, alive
                )
                assert found.phase != "waiting" or phase == "waiting"


def test_waiting_lasts_for_as_long_as_nothing_happens() -> None:
    fresh, old = now(*BEFORE["waiting"]), now(*BEFORE["waiting"], at=START + 60 * LONG)
    assert (fresh.phase, fresh.confidence) == ("waiting", "high")
    assert (old.phase, old.confidence, old.since) == ("waiting", "medium", fresh.since)
    assert now(*BEFORE["waiting"], at=START + 60 * LONG, alive=True).confidence == "high"


def test_an_agent_without_hooks_that_spoke_last_is_idle_after_two_minutes() -> None:
    seen = (
        event("user.prompt", START, 1, actor="user"),
        event("assistant.message", START + SECOND, 2, text="Done."),
    )
    assert now(*seen, at=START + SECOND + QUIET).phase == "running"
    assert now(*seen, at=START + 2 * SECOND + QUIET).phase == "unknown"
    idle = now(*seen, at=START + SECOND + IDLE)
    assert (idle.phase, idle.confidence) == ("idle", "low")
    asked = (*seen, event("user.prompt", START + 2 * SECOND, 3, actor="user"))
    assert now(*asked, at=START + 10 * IDLE).phase == "unknown", "it should have answered"


def test_what_only_a_transcript_says_is_less_sure() -> None:
    seen = (event("turn.started", START, 1), event("turn.completed", START + SECOND, 2))
    assert now(*seen[:1]).confidence == now(*seen).confidence == "medium"
    assert now(*seen).phase == "waiting"
    assert now(*seen, hook("Stop", START + SECOND)).confidence == "high"


def test_a_session_that_nobody_may_have_open_any_more_does_not_wait_for_ever() -> None:
    seen = (event("turn.started", START, 1), event("turn.completed", START + SECOND, 2))
    assert now(*seen, at=START + LONG).phase == "waiting"
    left = now(*seen, at=START + 2 * LONG)
    assert (left.phase, left.confidence, left.since) == ("idle", "low", START + SECOND)
    assert now(*seen, at=START + 2 * LONG, alive=True).phase == "waiting"
    assert now(*seen, hook("Stop", START + SECOND), at=START + 2 * LONG).phase == "waiting"


def test_nothing_open_and_two_minutes_of_silence_is_idle() -> None:
    seen = event("status.changed", START, 1)
    assert now(seen, at=START + IDLE - 1).phase == "unknown"
    assert now(seen, at=START + IDLE).phase == "idle"


# -- approvals and questions ---------------------------------------------------------------------


def asked(at: int, tool: str = "Bash", **data: Any) -> StatusInput:
    return hook("PermissionRequest", at, tool_name=tool, **data)


def test_a_request_is_exact_as_soon_as_the_transcript_has_its_call() -> None:
    at_once = now(*BEGUN, asked(START + 3 * SECOND)).approval
    assert at_once and (at_once.tool, at_once.action, at_once.certain) == ("Bash", None, False)
    command = "docker compose exec db \\\n  psql -c 'DROP TABLE charges'"
    exact = now(*BEGUN, asked(START + 3 * SECOND), bash(command, START + 2900))
    assert exact.approval is not None
    assert (exact.approval.action, exact.approval.certain, exact.approval.call) == (
        command,
        True,
        "c1",
    )
    assert exact.activity == "Bash: docker compose exec db \\ psql -c 'DROP TABLE charges'"
    assert exact.since == exact.approval.asked_at == START + 3 * SECOND


def test_a_request_that_names_its_command_is_exact_at_once_and_sure_among_several() -> None:
    first, second = bash("touch a", START + 2000, "c1", 5), bash("touch b", START + 2001, "c2", 6)
    request = asked(START + 2100, asked={"text": "touch b"})
    at_once, sure = now(*BEGUN, request).approval, now(*BEGUN, first, second, request).approval
    assert at_once and (at_once.action, at_once.certain, at_once.call) == ("touch b", True, None)
    assert sure and (sure.action, sure.certain, sure.call) == ("touch b", True, "c2")
    other = hook("PostToolUse", START + 3000, tool_name="Bash", tool_use_id="c1")
    assert now(*BEGUN, first, second, request, other).phase == "waiting_approval"
    done = hook("PostToolUse", START + 4000, tool_name="Bash", tool_use_id="c2")
    assert now(*BEGUN, first, second, request, done).phase == "running", (
        "the other one may take as long as it wants"
    )


def test_gemini_tells_what_it_wants_though_its_transcript_has_it_later() -> None:
    begun = (
        hook("SessionStart", START, agent="gemini"),
        hook("BeforeAgent", START + SECOND, agent="gemini"),
    )

    def wants(**asked: Any) -> StatusInput:
        kind = "ToolPermission"
        return hook(
            "Notification", START + 2 * SECOND, agent="gemini", notification_type=kind, asked=asked
        )

    run = now(*begun, wants(tool="run_shell_command", text="rm -r b", cut=True))
    assert run.approval and (run.phase, run.approval.tool) == (
        "waiting_approval",
        "run_shell_command",
    )
    assert (run.approval.action, run.approval.certain, run.approval.cut) == ("rm -r b", True, True)
    edit = now(*begun, wants(tool="replace", path="/etc/hosts")).approval
    assert edit and (edit.action, edit.path, edit.certain) == ("/etc/hosts", "/etc/hosts", True)
    ran = hook("AfterTool", START + 3 * SECOND, agent="gemini", tool_name="run_shell_command")
    assert now(*begun, wants(tool="run_shell_command", text="rm -r b"), ran).phase == "running"
    over = hook("AfterAgent", START + 3 * SECOND, agent="gemini")
    assert now(*begun, wants(text="rm -r b"), over).phase == "waiting"


def test_an_edit_is_asked_for_by_its_path() -> None:
    call = event(
        "tool.call",
        START + 2 * SECOND,
        name="Edit",
        id="c1",
        input={"file_path": "/code/shop/a.py"},
    )
    found = now(
        hook("SessionStart", START, cwd="/code/shop"),
        BEGUN[1],
        call,
        asked(START + 3 * SECOND, "Edit"),
    )
    assert found.approval is not None
    assert (found.approval.tool, found.approval.path) == ("Edit", "/code/shop/a.py")
    running = now(hook("SessionStart", START, cwd="/code/shop"), BEGUN[1], call)
    assert running.activity == "Edit a.py"


def test_of_two_calls_in_one_reply_the_first_is_asked_first_and_then_the_second() -> None:
    first, second = bash("touch a", START + 2000, "c1", 5), bash("touch b", START + 2001, "c2", 6)
    one = now(*BEGUN, first, second, asked(START + 2100))
    assert one.approval and (one.approval.action, one.approval.certain) == ("touch a", False)
    done = hook("PostToolUse", START + 5000, tool_name="Bash", tool_use_id="c1")
    between = now(*BEGUN, first, second, asked(START + 2100), done)
    assert (between.phase, between.since) == ("running", START + 5000)
    late = event("tool.result", START + 5090, 7, actor="tool", id="c1")
    two = now(*BEGUN, first, second, asked(START + 2100), done, asked(START + 5080), late)
    assert two.approval and (two.approval.action, two.approval.certain) == ("touch b", True)


def test_another_tools_answer_does_not_answer_a_request() -> None:
    other = event(
        "tool.call", START + 1900, 4, name="WebFetch", id="w1", input={"url": "https://example.com"}
    )
    seen = (*BEGUN, other, bash("make", START + 2000), asked(START + 2100))
    assert (
        now(*seen, event("tool.result", START + 4000, 8, actor="tool", id="w1")).phase
        == "waiting_approval"
    )
    assert (
        now(*seen, event("tool.result", START + 4000, 8, actor="tool", id="c1")).phase == "running"
    )


def test_a_call_left_open_by_an_interrupt_is_not_what_the_next_turn_asks_for() -> None:
    seen = (
        *CALLED,
        event("turn.completed", START + 3 * SECOND, 6, interrupted=True),
        hook("UserPromptSubmit", START + 4 * SECOND),
        asked(START + 5 * SECOND),
    )
    found = now(*seen).approval
    assert found and found.action is None
    exact = now(*seen, bash("make again", START + 4900, "c2", 9)).approval
    assert exact and exact.action == "make again"


def test_codex_calls_its_shell_by_two_names() -> None:
    call = event(
        "tool.call",
        START + 2000,
        5,
        name="exec_command",
        text="ls",
        id="c1",
        input={"command": ["bash", "-lc", "ls"]},
    )
    found = now(
        *BEGUN, call, hook("PermissionRequest", START + 2100, agent="codex", tool_name="Bash")
    ).approval
    assert found and found.action == "ls"


def test_a_request_with_an_id_of_its_own_is_answered_by_it() -> None:
    ask = event(
        "approval.requested",
        START + 2000,
        5,
        name="shell",
        text="rm -r build",
        id="t1",
        request="r1",
    )
    found = now(*BEGUN, ask)
    assert found.approval and (found.approval.action, found.confidence) == ("rm -r build", "medium")
    other = event("approval.resolved", START + 3000, 6, id="t2", request="r2", decision="approved")
    assert now(*BEGUN, ask, other).phase == "waiting_approval"
    own = event("approval.resolved", START + 3000, 6, id="t1", request="r1", decision="approved")
    assert now(*BEGUN, ask, own).phase == "running"
    assert (
        now(*BEGUN, ask, event("tool.result", START + 3000, 6, actor="tool", id="t2")).phase
        == "waiting_approval"
    )
    assert (
        now(*BEGUN, ask, event("tool.result", START + 3000, 6, actor="tool", id="t1")).phase
        == "running"
    )


def test_the_registry_knows_of_a_yes_before_the_tool_answers() -> None:
    seen = (*BEFORE["waiting_approval"], of_process("waiting", "permission prompt", START + 3050))
    found = now(*seen)
    assert found.approval and found.approval.action == "make test"
    yes = now(*seen, of_process("busy", "", START + 9 * SECOND))
    assert (yes.phase, yes.since, yes.evidence) == ("running", START + 9 * SECOND, "process: busy")
    assert yes.activity == "Bash: make test"


def test_a_notification_about_a_request_that_is_known_changes_nothing() -> None:
    notice = hook("Notification", START + 9 * SECOND, notification_type="permission_prompt")
    before, after = now(*BEFORE["waiting_approval"]), now(*BEFORE["waiting_approval"], notice)
    assert (after.approval, after.since) == (before.approval, before.since)
    alone = now(*CALLED, notice).approval
    assert alone and (alone.tool, alone.action) == ("Bash", "make test")


def test_a_subagents_request_outlives_its_parents_stop_and_ends_with_it() -> None:
    ask = asked(START + 3 * SECOND, agent_id="a1")
    call = bash("rm x", START + 2900, "x1", 2, child="a1")
    seen = (*BEGUN, ask, call, hook("Stop", START + 5 * SECOND))
    found = now(*seen)
    assert found.approval and (found.approval.subagent, found.approval.action) == ("a1", "rm x")
    assert found.subagent
    for end in (
        hook("PostToolUse", LATER, tool_use_id="x1", agent_id="a1"),
        hook("SubagentStop", LATER, agent_id="a1"),
        hook("UserPromptSubmit", LATER),
        event("turn.completed", LATER, interrupted=True),
    ):
        assert now(*seen, end).approval is None
    assert now(*seen, hook("PostToolUse", LATER, agent_id="a2")).approval == found.approval


@pytest.mark.parametrize("hooked", [True, False])
def test_a_question_waits_for_its_answer(hooked: bool) -> None:
    call = event("tool.call", START + 2000, 5, name="AskUserQuestion", id="q1", input={})
    said = event("question.asked", START + 2000, 6, text="Where to?\nWhen?", id="q1")
    ask = hook("PermissionRequest", START + 2050, tool_name="AskUserQuestion")
    notice = hook("Notification", START + 8000, notification_type="permission_prompt")
    seen = (*BEGUN, ask, call, said, notice) if hooked else (*BEGUN, call, said)
    found = now(*seen, at=START + 10 * IDLE)
    assert (found.phase, found.questions) == ("waiting", ["Where to?", "When?"])
    answer = event("tool.result", LATER, 9, actor="tool", id="q1", answers={"Where to?": "Here"})
    assert (now(*seen, answer).phase, now(*seen, answer).questions) == ("running", [])
    first = now(*BEGUN, ask)
    assert (first.phase, first.questions) == ("waiting", []), "the transcript has not said it yet"


def test_a_question_without_an_answer_of_its_own_ends_when_the_agent_goes_on() -> None:
    said = event("question.asked", START + 2000, 6, text="Your name?", request="e1")
    assert now(*BEGUN, said).questions == ["Your name?"]
    assert now(*BEGUN, said, event("assistant.message", START + 9000, 7)).phase == "running"


def test_a_very_long_command_is_cut_and_that_is_said() -> None:
    found = now(*BEGUN, bash("x" * 20_000, START + 2000), asked(START + 2100))
    assert found.approval and found.approval.action and found.activity
    assert (len(found.approval.action), found.approval.cut) == (signs.TEXT_MAX, True)
    assert len(found.activity) <= 120


# -- turns ---------------------------------------------------------------------------------------


def test_an_interrupt_is_told_and_forgotten_with_the_next_prompt() -> None:
    seen = (*CALLED, event("turn.completed", START + 3 * SECOND, 6, actor="user", interrupted=True))
    assert now(*seen).interrupted
    assert not now(*seen, hook("UserPromptSubmit", LATER)).interrupted


def test_why_a_turn_failed_is_told() -> None:
    found = now(*BEGUN, hook("StopFailure", START + 2 * SECOND, error="rate_limit"))
    assert (found.phase, found.failed) == ("waiting", "rate_limit")
    hooked = hook("StopFailure", START + 2 * SECOND, error="unknown")
    why = event("error", START + 2 * SECOND - 10, 3, text="API Error: 400 scripted")
    assert now(*BEGUN, why, hooked).failed == "API Error: 400 scripted"
    again = (
        hook("UserPromptSubmit", START + 3 * SECOND),
        hook("StopFailure", START + 4 * SECOND, error="unknown"),
    )
    assert now(*BEGUN, why, hooked, *again).failed == "unknown", "that was another turn's"
    told_apart = now(
        *BEGUN,
        event("error", START + 2000, 3, text="529"),
        event("turn.completed", START + 2001, failed=True),
    )
    assert told_apart.failed == "529"
    assert now(*BEGUN, hook("Stop", START + 2 * SECOND)).failed is None


def test_the_last_words_of_a_turn_do_not_open_it_again() -> None:
    seen = (*BEGUN, hook("Stop", START + 3000))
    for late in (-500, 0, 900):
        words = event("assistant.message", START + 3000 + late, 9, text="Done.")
        assert now(*seen, words).phase == "waiting"
    over = event("turn.completed", START + 3100, 10)
    found = now(*seen, over)
    assert (found.evidence, found.confidence, found.since) == ("Stop hook", "high", START + 3000)


def test_codex_says_that_it_starts_after_its_first_turn_began() -> None:
    begun = event("turn.started", START, 2)
    assert (
        now(begun, hook("SessionStart", START + 80, agent="codex", source="startup")).phase
        == "running"
    )
    assert (
        now(begun, hook("SessionStart", START + 8000, agent="codex", source="resume")).phase
        == "idle"
    )


def test_records_of_one_moment_count_in_their_order() -> None:
    prompt = event("user.prompt", START, 2, actor="user")
    assert now(event("session.started", START, 1), prompt).phase == "running"
    assert now(prompt, event("turn.completed", START, 3)).phase == "waiting"
    assert now(event("turn.completed", START, 1), prompt).phase == "running"
    assert now(event("session.exited", START, 1), prompt).phase == "running"
    assert now(prompt, event("session.exited", START, 3)).phase == "exited"


def test_a_record_from_the_future_is_as_old_as_its_reading() -> None:
    wrong = StoredEvent(
        1, 1, "turn.completed", "transcript", "high", START + LONG, START, "system", "", None, None
    )
    assert now(of_event(wrong), hook("UserPromptSubmit", START + SECOND)).phase == "running"


def test_compaction_is_work_until_it_is_over_or_forgotten() -> None:
    begun = (*BEFORE["waiting"], hook("PreCompact", START + 10 * SECOND, trigger="manual"))
    found = now(*begun, at=START + 60 * SECOND)
    assert (found.phase, found.activity) == ("running", "compacting")
    assert (
        now(*begun, hook("SessionStart", START + 70 * SECOND, source="compact")).phase == "waiting"
    )
    assert now(*begun, event("compaction", START + 70 * SECOND, 30)).phase == "waiting"
    assert now(*begun, at=START + 10 * SECOND + COMPACTING + 1).phase == "waiting", (
        "there was nothing to compact"
    )
    inside = now(
        *CALLED,
        hook("PreCompact", START + 5000),
        hook("SessionStart", START + 6000, source="compact"),
    )
    assert inside.phase == "running"


def test_what_it_does_is_told_in_one_line() -> None:
    def doing(*seen: StatusInput) -> str | None:
        return now(*BEGUN, *seen).activity

    assert doing() == "thinking"
    assert doing(event("assistant.thinking", START + 2000)) == "thinking"
    assert doing(event("assistant.message", START + 2000)) == "writing"
    assert doing(bash("make\ttest\x1b[2J", START + 2000)) == "Bash: make test"
    task = event(
        "tool.call", START + 2000, 5, name="Agent", id="c1", text="a\nb", input={"description": "a"}
    )
    begun = event("subagent.started", START + 2000, 6, text="Find the parser", id="c1")
    assert doing(task, begun) == "Agent: Find the parser"
    assert (
        doing(event("error", START + 2000, 5, actor="system", text="overloaded"))
        == "error: overloaded"
    )
    assert now(*BEFORE["waiting"]).activity is None


def test_whether_a_subagent_runs() -> None:
    task = event("tool.call", START + 2000, 5, name="Agent", id="c1", text="look", input={})
    begun = event("subagent.started", START + 2000, 6, text="look", id="c1")
    assert now(*BEGUN, task, begun).subagent
    assert not now(
        *BEGUN, task, begun, event("tool.result", START + 3000, 7, actor="tool", id="c1")
    ).subagent
    behind = (*BEFORE["waiting"], hook("PostToolUse", START + 9000, agent_id="a1"))
    assert now(*behind).subagent and now(*behind).phase == "waiting"
    assert not now(*behind, hook("SubagentStop", START + 10_000, agent_id="a1")).subagent
    assert not now(*behind, at=START + 2 * LONG).subagent
    assert not now(*behind, hook("SessionEnd", LATER)).subagent


def test_the_process_to_ask_after_is_the_last_one_heard_of() -> None:
    seen = [hook("SessionStart", START, process=[7, 70]), hook("Stop", START + 1, process=[8, 80])]
    assert process(fold_inputs(seen)) == process(fold_inputs(reversed(seen))) == (8, 80)
    assert (
        process(
            fold_inputs([hook("Stop", START, process=["x"]), hook("Stop", START, process=None)])
        )
        is None
    )
    assert of_signal(Signal(START, "claude", "probe")) is None


# -- whatever comes ------------------------------------------------------------------------------

_AGAIN = [made for made, _ in INPUTS.values()] + [lambda sign=sign: sign for sign in CHILD.values()]


@st.composite
def stories(draw: st.DrawFn, limit: int = 40) -> list[StatusInput]:
    """Signs of one session in the order of their time."""
    found, at = [], START
    for seq in range(1, 1 + draw(st.integers(0, limit))):
        at += draw(st.sampled_from([0, 1, 80, 900, 1100, 5000, 40_000, 200_000]))
        sign = draw(st.sampled_from(_AGAIN))()
        idents = (
            ["x1", "x2"]
            if sign.child
            else ["q1"]
            if sign.kind == "question"
            else ["c1", "c2", "c3"]
        )
        ident = (
            draw(st.sampled_from(idents + ["q1"] * (sign.kind == "result"))) if sign.call else ""
        )
        found.append(
            msgspec.structs.replace(sign, at=at, call=ident, order=seq if sign.order else 0)
        )
    return found


@repeatable
@given(stories(), st.randoms(use_true_random=False))
def test_the_order_in_which_signs_come_means_nothing(
    story: list[StatusInput], chance: random.Random
) -> None:
    shuffled = chance.sample(story, len(story))
    assert fold_inputs(shuffled) == fold_inputs(story)


@repeatable
@given(stories(), st.data())
def test_signs_that_come_twice_change_nothing(
    story: list[StatusInput], data: st.DataObject
) -> None:
    once = fold_inputs(story)
    again = data.draw(st.lists(st.sampled_from(story))) if story else []
    assert fold_inputs(again, once) == once


@repeatable
@given(stories())
def test_exited_is_final_until_a_new_start_or_prompt(story: list[StatusInput]) -> None:
    known, gone = NEW, False
    for sign in story:
        known = apply(known, sign)
        begins = sign.kind in ("started", "prompt") and not sign.child
        phase = judge_status(known, sign.at).phase
        if gone and not begins:
            assert phase == "exited", sign
        gone = phase == "exited"


@repeatable
@given(stories(), st.sampled_from([None, True, False]))
def test_since_never_goes_back_while_the_phase_is_the_same(
    story: list[StatusInput], alive: bool | None
) -> None:
    known, before = NEW, Status("", "", "")
    for sign in story:
        known = apply(known, sign)
        for wait in (0, QUIET, IDLE):
            found = judge_status(known, sign.at + wait, alive)
            assert found.since is None or found.since <= sign.at
            if wait == 0:
                assert (
                    found.phase != before.phase
                    or not before.since
                    or (found.since or 0) >= before.since
                )
                before = found


@repeatable
@given(stories())
def test_a_state_survives_being_stored(story: list[StatusInput]) -> None:
    known = fold_inputs(story)
    assert msgspec.json.decode(msgspec.json.encode(known), type=State) == known


_odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
_facts = (
    "id request input tool_name tool_use_id agent_id process source notification_type interrupted "
    "failed session "
    "subagent reason error cwd decision path"
).split()


@repeatable
@given(
    st.sampled_from([*KINDS, "odd"]),
    st.dictionaries(st.sampled_from(_facts), _odd),
    st.text(max_size=5),
)
def test_an_event_of_any_shape_gives_a_known_phase(
    kind: str, data: dict[str, Any], text: str
) -> None:
    made = StoredEvent(
        1, 1, kind, "transcript", "high", None, START, text, text, text or None, data or None
    )
    for phase in BEFORE:
        assert (
            judge_status(apply(fold_inputs(BEFORE[phase]), of_event(made, text)), LATER).phase
            in PHASES
        )


@repeatable
@given(
    st.sampled_from(sorted(name.removeprefix("hook ") for name in INPUTS)),
    st.dictionaries(st.sampled_from(_facts), _odd),
    st.sampled_from(["claude", "git"]),
)
def test_a_hook_of_any_shape_gives_a_known_phase(
    name: str, data: dict[str, Any], agent: str
) -> None:
    sign = of_signal(Signal(START, agent, name, data=data))
    assert sign is not None
    for phase in BEFORE:
        assert judge_status(apply(fold_inputs(BEFORE[phase]), sign), LATER).phase in PHASES


def test_a_state_stays_small_however_much_it_is_told() -> None:
    known = fold_inputs(BEGUN)
    for number in range(1000):
        at, ident = START + 2000 + number * 10, f"c{number}"
        known = apply(known, bash("x" * 9000, at, ident, number))
        known = apply(
            known, event("approval.requested", at, number, text="y" * 9000, request=f"r{number}")
        )
        known = apply(known, hook("PostToolUse", at + 1, agent_id=f"a{number}"))
        if number % 3:
            known = apply(known, hook("PostToolUse", at + 2, tool_use_id=ident))
    assert (len(known.calls), len(known.asks), len(known.children)) == (
        state.CALLS_MAX,
        state.ASKS_MAX,
        state.CHILDREN_MAX,
    )
    assert len(msgspec.json.encode(known)) < 1_000_000
    old = bash("make", START + 2000, "c1")
    assert apply(known, old) == known, "what was answered and forgotten does not come back"
