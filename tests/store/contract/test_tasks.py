"""Tasks: runs of sessions, what trackers say, what people say."""

from __future__ import annotations

from tests.store.contract.build import NOW, SHOP, Build, checkpoint, part
from whyfor.model.memory import WaitingSession
from whyfor.model.signals import Signal
from whyfor.model.tasks import StoredRun, TaskAct, TaskIssue, TaskRun, TaskStatement
from whyfor.store.protocol import SharedStore


def run_of(key: str, first: int = 1, last: int = 2) -> TaskRun:
    act = TaskAct("claim", NOW, first, 1, "shell", "high", source="beads")
    return TaskRun(key, first, last, 1, 1, (act,))


def issue(key: str, **more: object) -> TaskIssue:
    given = {"project": SHOP.identity, "key": key, "source": "beads", "title": key, **more}
    return TaskIssue(**given)  # type: ignore[arg-type]


def save(store: SharedStore, session: int, *runs: TaskRun, version: int = 1) -> None:
    last = store.sessions.last_seqs([session])[session]
    with store.transaction():
        store.tasks.save(WaitingSession(session, "claude", "a", 1, last), runs, version)


def waiting(store: SharedStore, version: int = 1) -> list[int]:
    return [each.number for each in store.tasks.waiting(version)]


def test_a_session_waits_until_its_runs_are_as_new_as_all_that_they_are_made_of(
    store: SharedStore, build: Build
) -> None:
    project = build.project()
    session = build.session("a", build.event("user.prompt", "Fix"), facts={"cwd": "/shop"})
    assert waiting(store) == [session]
    save(store, session)
    assert waiting(store) == []
    assert waiting(store, 2) == [session], "other rules made them"
    build.session("a", build.event("assistant.message", "Done"))
    assert waiting(store) == [session], "it has grown"
    save(store, session)
    build.checkpoint(project, checkpoint("c1", part("a", 1, 2)))
    assert waiting(store) == [session], "a commit was linked"
    save(store, session)
    with store.transaction():
        store.tasks.state(
            TaskStatement(key="tw-1", at=NOW, action="add", agent="claude", session_id="a")
        )
    assert waiting(store) == [session], "somebody said something of it"
    save(store, session)
    with store.transaction():
        store.tasks.save_issue(issue("tw-1", closed_by="b"))
    assert waiting(store) == []
    with store.transaction():
        store.tasks.save_issue(issue("tw-1", closed_by="a"))
    assert waiting(store) == [session], "a tracker says that it closed a task"
    assert [each.key for each in store.tasks.closed_by("a")] == ["tw-1"]


def test_only_what_may_tell_of_a_task_is_read(store: SharedStore, build: Build) -> None:
    def call(command: str, name: str = "Bash") -> object:
        return build.event("tool.call", name=name, data={"id": "x", "input": {"command": command}})

    session = build.session(
        "a",
        build.event("user.prompt", "Take tw-1"),
        build.event("assistant.message", "bd close tw-1"),
        call("bd update tw-1 --claim"),  # type: ignore[arg-type]
        call("ls"),  # type: ignore[arg-type]
        call("", "mcp__beads__close"),  # type: ignore[arg-type]
        call("git -C x commit -m 'Fixes: #1'"),  # type: ignore[arg-type]
        build.event("approval.resolved", data={"decision": "denied"}),
    )
    found = store.tasks.events(WaitingSession(session, "claude", "a", 1, 7))
    assert [each.seq for each in found] == [1, 3, 5, 6, 7]
    assert found[1].data == {"id": "x", "input": {"command": "bd update tw-1 --claim"}}
    assert [each.seq for each in store.tasks.events(WaitingSession(session, "claude", "a", 4, 7))]


def test_runs_are_found_by_task_project_and_time_and_go_with_their_session(
    store: SharedStore, build: Build
) -> None:
    project = build.project()
    one = build.session("a", build.event("user.prompt", "A"), facts={"cwd": "/shop"})
    other = build.session("b", build.event("user.prompt", "B"))
    save(store, one, run_of("tw-2"), run_of("tw-1"))
    save(store, other, run_of("tw-1"))
    assert store.tasks.runs(projects=[project]) == [
        StoredRun(run_of("tw-1"), one, SHOP.identity),
        StoredRun(run_of("tw-2"), one, SHOP.identity),
    ]
    assert [each.session for each in store.tasks.runs(keys=["tw-1"])] == [one, other]
    assert [each.session for each in store.tasks.runs(since=NOW + 2_000)] == [other]
    assert store.tasks.keys_like("TW-", 9) == ["tw-1", "tw-2"]
    with store.transaction():
        store.removal.delete_session(one)
    assert [each.session for each in store.tasks.runs()] == [other]
    save(store, other)
    assert store.tasks.runs() == []


def test_what_is_said_is_kept_once_and_in_order(store: SharedStore) -> None:
    early = TaskStatement(key="tw-1", at=NOW, action="start", project=SHOP.identity)
    late = TaskStatement(key="tw-1", at=NOW + 5, action="reject", text="Too slow")
    of_session = TaskStatement(key="tw-2", at=1, action="add", agent="claude", session_id="a")
    with store.transaction():
        for each in (late, early, of_session, early):
            store.tasks.state(each)
    assert store.tasks.said() == [of_session, early, late]
    assert store.tasks.said(keys=["tw-1"]) == [early, late]
    assert store.tasks.said(session=("claude", "a")) == [of_session]
    with store.transaction():
        store.tasks.keep_said([late])
    assert store.tasks.said() == [late]


def test_of_what_a_tracker_says_the_last_counts(store: SharedStore) -> None:
    open_one, closed = issue("tw-1", status="open"), issue("tw-1", status="closed", closed_at=NOW)
    with store.transaction():
        for each in (open_one, closed, issue("tw-2")):
            store.tasks.save_issue(each)
    assert store.tasks.issues(SHOP.identity) == [closed, issue("tw-2")]
    assert store.tasks.issues("example.com/other") == []
    with store.transaction():
        store.tasks.keep_issues([closed])
    assert store.tasks.issues() == [closed]


def test_a_session_has_ended_if_a_hook_says_so_after_its_last_event(
    store: SharedStore, build: Build
) -> None:
    numbers = [build.session(name, build.event("user.prompt", name)) for name in "abc"]

    def end(name: str, at: int, event: str = "SessionEnd") -> Signal:
        return Signal(at, "claude", event, session_agent="claude", session_id=name)

    build.signals(end("a", NOW + 60_000), end("b", NOW - 1), end("c", NOW + 60_000, "Stop"))
    assert store.tasks.ended(numbers, ["SessionEnd"]) == {numbers[0]: NOW + 60_000}
