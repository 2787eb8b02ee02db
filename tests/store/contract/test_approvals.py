"""Approvals on record: made of events and signals, listed, and gone with what they rest on."""

from __future__ import annotations

from tests.store.contract.build import NOW, Build
from whyfor.model.approvals import ANSWERED, ApprovalDecision, ApprovalQuery, action_digest
from whyfor.model.signals import Signal
from whyfor.store.protocol import Store
from whyfor.story.approval_log import renew_approvals


def _asks(store: Store, command: str, at: int = NOW, **data: object) -> None:
    signal = Signal(
        at,
        "claude",
        "PermissionRequest",
        "/p/shop",
        "claude",
        "a",
        "payload",
        data={"tool_name": "Bash", "asked": {"text": command}, **data},
    )
    with store.transaction():
        store.capture.writer().add_signals([signal])


def _log(store: Store, **asked: object) -> list[ApprovalDecision]:
    renew_approvals(store)
    return [row.decision for row in store.approvals.listed(ApprovalQuery(**asked))]  # type: ignore[arg-type]


def test_a_request_that_only_hooks_told_of_waits(store: Store) -> None:
    _asks(store, "touch a")
    (found,) = _log(store)
    assert (found.action, found.cwd, found.decision) == ("touch a", "/p/shop", "waiting")
    assert _log(store, decision="allowed") == []
    assert store.approvals.count(ApprovalQuery(agent="claude")) == 1
    assert store.approvals.changed(store.signals.newest()) == []


def test_who_answered_follows_from_what_was_recorded(store: Store, build: Build) -> None:
    _asks(store, "make test", answer={"answer": "allow", "rule": "r1", "dry": False, "ms": 12})
    call = build.event(
        "tool.call", name="Bash", data={"id": "t1", "input": {"command": "make test"}}
    )
    result = build.event("tool.result", "ok", data={"id": "t1"})
    build.session("a", call, result)
    (found,) = _log(store)
    assert (found.decision, found.by, found.rule, found.exact) == ("allowed", "rule", "r1", True)
    assert found.waited_ms == 12


def test_an_answer_from_the_browser_is_joined_to_its_request(store: Store, build: Build) -> None:
    _asks(store, "make test")
    told = {"by": "browser", "answer": "allow", "digest": action_digest("make test")}
    answer = Signal(NOW + 500, "claude", ANSWERED, None, "claude", "a", data={"answer": told})
    build.signals(answer)
    (found,) = _log(store)
    assert found.decision == "waiting", "until the call returns"
    call = build.event(
        "tool.call", name="Bash", data={"id": "t1", "input": {"command": "make test"}}
    )
    build.session("a", call, build.event("tool.result", "ok", data={"id": "t1"}))
    (found,) = _log(store)
    assert (found.decision, found.by, found.waited_ms) == ("allowed", "browser", 500)


def test_a_dry_run_is_kept_beside_the_persons_answer(store: Store, build: Build) -> None:
    _asks(store, "make test", answer={"answer": "allow", "rule": "r1", "dry": True, "ms": 12})
    call = build.event(
        "tool.call", name="Bash", data={"id": "t1", "input": {"command": "make test"}}
    )
    build.session("a", call, build.event("tool.result", "ok", data={"id": "t1"}))
    (found,) = _log(store, by="terminal")
    assert (found.decision, found.dry, found.rule) == ("allowed", "allow", "r1")


def test_calls_the_agent_refused_by_itself_are_listed(store: Store, build: Build) -> None:
    call = build.event("tool.call", name="Bash", data={"id": "t1", "input": {"command": "rm x"}})
    refused = "Permission to use Bash with command rm x has been denied."
    build.session(
        "a", call, build.event("tool.result", refused, data={"id": "t1", "rejected": True})
    )
    (found,) = _log(store)
    assert (found.decision, found.by, found.action) == ("denied", "agent", "rm x")


def test_forgetting_the_hooks_words_or_the_session_forgets_its_approvals(
    store: Store, build: Build
) -> None:
    _asks(store, "touch a")
    assert _log(store)
    with store.transaction():
        store.forget.delete_signals([store.signals.newest()])
    assert _log(store) == []
    _asks(store, "touch b")
    number = build.session("a", build.event("user.prompt", "Fix it"))
    assert _log(store)
    with store.transaction():
        store.forget.empty_session(number)
    assert store.approvals.count(ApprovalQuery()) == 0
