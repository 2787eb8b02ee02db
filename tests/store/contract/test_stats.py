"""Figures about all sessions at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.store.contract.build import NOW, SHOP, Build, checkpoint, part
from whyfor.model.checkpoints import SeenCommit
from whyfor.model.events import Usage
from whyfor.model.query import Filters
from whyfor.model.sessions import Tokens
from whyfor.model.signals import Signal
from whyfor.model.stats import (
    QUARTER,
    ApprovalRecord,
    ApprovalWait,
    FailedCommand,
    FailedStep,
    TurnTime,
)
from whyfor.store.protocol import SharedStore


@pytest.fixture
def project(build: Build) -> int:
    number = build.project()
    build.session(
        "a",
        build.event("user.prompt", "go", at=NOW),
        build.event("tool.result", "exit 1", at=NOW + 1, data={"failed": True, "exit_code": 1}),
        build.event("approval.requested", "", at=NOW + 2, data={"id": "r"}),
        build.event("approval.resolved", "", at=NOW + 9, data={"id": "r", "decision": "denied"}),
        facts={"cwd": "/shop"},
        more=[Usage(1, NOW, "big", input=1, output=2)],
    )
    build.session(
        "child",
        build.event("user.prompt", "count", at=NOW),
        parent="a",
        more=[Usage(2, NOW, "small", output=5)],
    )
    build.session("b", build.event("user.prompt", "go", at=NOW + QUARTER), agent="codex")
    return number


@pytest.mark.usefixtures("project")
def test_totals_and_groups_count_main_sessions_and_all_tokens(store: SharedStore) -> None:
    totals = store.stats.totals()
    assert (totals.sessions, totals.subagents, totals.events) == (2, 1, 6)
    agents = {row.name: row for row in store.stats.grouped("agent", Filters())}
    assert (agents["claude"].sessions, agents["claude"].turns) == (1, 1)
    assert agents["claude"].tokens == Tokens(input=1, output=7, unpriced=2)
    assert (agents["codex"].turns, agents["codex"].tokens) == (1, Tokens())
    projects = {row.name: row.sessions for row in store.stats.grouped("project", Filters())}
    assert projects == {SHOP.identity: 1, "(unknown)": 1}
    models = {row.name: row.turns for row in store.stats.grouped("model", Filters())}
    assert models == {"big": None, "small": None}
    assert sum(row.turns or 0 for row in store.stats.grouped("day", Filters())) == 2
    assert sorted(store.stats.by_model(Filters())) == [
        ("big", 1, Tokens(input=1, output=2, unpriced=1)),
        ("small", 0, Tokens(output=5, unpriced=1)),
    ]


def test_counted_turns_and_times_fit_the_filters(store: SharedStore, project: int) -> None:
    found = {row.agent: row for row in store.stats.counted(Filters(), NOW + QUARTER)}
    assert (found["codex"].sessions, found["codex"].recent, found["codex"].unknown) == (1, 1, 1)
    assert sum(row.sessions for row in store.stats.counted(Filters(projects=(project,)))) == 1
    quarter = NOW // QUARTER
    assert store.stats.turns_by_time(Filters(), NOW, NOW + 2 * QUARTER) == [
        (quarter, 1),
        (quarter + 1, 1),
    ]
    assert store.stats.turns_by_time(Filters(agent="codex"), NOW, NOW + 1) == []
    assert store.stats.first_at(Filters(since=NOW + QUARTER)) == NOW
    assert store.stats.first_at(Filters(agent="gemini")) is None


@pytest.mark.usefixtures("project")
def test_what_went_wrong_is_of_main_sessions(store: SharedStore) -> None:
    number = store.sessions.numbers([("claude", "a")])["claude", "a"]
    assert sorted(store.stats.wrong(Filters()), key=lambda one: one.kind) == [
        FailedStep(number, 1, "approval.resolved", "", False, 4, NOW + 9, "\n"),
        FailedStep(number, 1, "tool.result", "exit 1", True, 2, NOW + 1, "exit 1\nexit 1"),
    ]
    assert store.stats.wrong(Filters(agent="codex")) == []


@pytest.mark.usefixtures("project")
def test_approvals_are_told_by_transcripts_and_by_hooks(store: SharedStore, build: Build) -> None:
    number = store.sessions.numbers([("claude", "a")])["claude", "a"]
    assert store.stats.told_approvals(Filters()) == [
        ApprovalRecord(number, "approval.requested", NOW + 2, {"id": "r"}),
        ApprovalRecord(number, "approval.resolved", NOW + 9, {"id": "r", "decision": "denied"}),
    ]
    asked: dict[str, Any] = {"session_agent": "claude", "session_id": "a"}
    build.signals(
        Signal(NOW, "claude", "PermissionRequest", data={"tool_name": "Bash"}, **asked),
        Signal(NOW + 5, "claude", "PermissionRequest", data={"tool_name": "Bash"}, **asked),
        Signal(NOW, "claude", "PermissionRequest", data={"tool_name": "Ask"}, **asked),
    )
    found = store.stats.announced_approvals(Filters(), frozenset({"ask"}))
    assert sorted(found, key=lambda wait: wait.asked_at) == [
        ApprovalWait(number, NOW, NOW + 1),
        ApprovalWait(number, NOW + 5, None),
    ]


def test_commits_with_a_story_among_those_that_could_have_one(
    store: SharedStore, build: Build, project: int
) -> None:
    build.checkpoint(project, checkpoint("c1", part("a", 1, 2)))
    build.checkpoint(project, checkpoint("m1", part("a", 1, 2), is_merge=True))
    with store.transaction():
        rows = [
            SeenCommit("c2", NOW, NOW, "nobody", None),
            SeenCommit("c3", NOW, NOW, "too early", None),
        ]
        store.checkpoints.saw(project, rows)
    assert store.stats.commits(Filters(), "too early") == (1, 2)
    assert store.stats.commits(Filters(since=NOW + 1), "too early") == (0, 0)
    assert store.stats.commits(Filters(projects=()), "too early") == (0, 0)


def test_turns_have_costs_by_project(store: SharedStore, build: Build) -> None:
    build.project()
    build.session(
        "paid",
        build.event("user.prompt", "go", at=NOW),
        facts={"cwd": "/shop"},
        more=[Usage(1, NOW, "m", output=1, reported=0.5), Usage(2, NOW, "m", reported=0.25)],
    )
    assert store.stats.turn_costs(SHOP.identity, 0) == [750_000_000]
    assert store.stats.turn_costs(SHOP.identity, NOW + 1) == []
    assert store.stats.turn_costs("example.com/other", 0) == []


def test_work_is_told_by_commits_failed_commands_and_times(
    store: SharedStore, build: Build, project: int
) -> None:
    first = build.session(
        "c",
        build.event("user.prompt", "go", at=NOW),
        build.event("tool.call", "", at=NOW + 1, data={"id": "x", "input": {"command": "make t"}}),
        build.event("tool.result", "no", at=NOW + 2, data={"id": "x", "failed": True}),
        facts={"cwd": "/shop"},
        more=[Usage(3, NOW + 5, "big", input=1, output=2)],
    )
    build.checkpoint(project, checkpoint("d1", part("c", 1, 2, turns=3)))
    filters = Filters(projects=(project,))
    assert store.stats.turns_until_done(filters) == [3]
    assert store.stats.turns_until_done(Filters(since=NOW + 10**10)) == []
    assert store.stats.failed_commands(filters) == [FailedCommand(first, 1, "make t")]
    times = {each.session: each for each in store.stats.turn_times(filters)}
    assert times[first] == TurnTime(first, 1, NOW, NOW + 5)
