"""Who answered a request, and how that is known, from hooks, transcripts, our own answers and
telemetry."""

from __future__ import annotations

from typing import Any

from tests.cases import check_each
from whyfor.model.approvals import (
    ANSWERED,
    DECIDED,
    ApprovalDecision,
    ChangedSession,
    action_digest,
)
from whyfor.model.events import StoredEvent
from whyfor.model.signals import Signal
from whyfor.story.approval_log import approval_decisions

T = 1_794_000_000_000
COMMAND = "touch quokka.txt"


def signal(event: str, at: int, agent: str = "claude", **data: Any) -> Signal:
    return Signal(
        at=T + at,
        agent=agent,
        event=event,
        cwd="/p",
        session_agent=agent,
        session_id="s",
        data=data,
    )


def asked(at: int = 100, agent: str = "claude", **more: Any) -> Signal:
    tool = {"claude": "Bash", "opencode": "bash"}[agent]
    told = {"text": COMMAND}
    return signal("PermissionRequest", at, agent, tool_name=tool, asked=told, **more)


def event(seq: int, kind: str, at: int, text: str = "", **data: Any) -> StoredEvent:
    name = "Bash" if kind == "tool.call" else None
    return StoredEvent(
        seq=seq,
        turn=1,
        kind=kind,
        source="transcript",
        confidence="high",
        actor="assistant",
        observed_at=T + at,
        created_at=T + at,
        text=text,
        name=name,
        data=data,
    )


CALL = event(1, "tool.call", 50, COMMAND, id="c1", input={"command": COMMAND})
RAN = event(2, "tool.result", 5_000, "", id="c1")
REFUSED = event(2, "tool.result", 5_000, "The user doesn't want to", id="c1", failed=True)


def decide(
    *signals: Signal, events: list[StoredEvent] | None = None, agent: str = "claude"
) -> list[ApprovalDecision]:
    given = [CALL] if events is None else events
    return approval_decisions(ChangedSession(agent, "s", 1, 9), given, list(signals), "/p")


def told(made: ApprovalDecision) -> tuple[str, str, int | None, bool]:
    at = None if made.answered_at is None else made.answered_at - T
    return made.decision, made.by, at, made.exact


def test_who_answered_follows_from_the_best_evidence_there_is() -> None:
    page = {"by": "browser", "answer": "allow", "digest": action_digest(COMMAND)}
    rule = {"by": "rule", "answer": "allow", "rule": "r1", "dry": False, "ms": 30}
    decision = event(3, "approval.resolved", 300, "allowed", id="c1", by="hook")
    telemetry = {"answer": "allow", "by": "terminal", "source": "user_temporary", "call": "c1"}
    cases = [
        ("nothing yet", ([asked()], [CALL], ("waiting", "unknown", None, False))),
        ("it ran", ([asked()], [CALL, RAN], ("allowed", "terminal", 5_000, False))),
        ("it was refused", ([asked()], [CALL, REFUSED], ("denied", "terminal", 5_000, False))),
        (
            "the page",
            (
                [asked(), signal(ANSWERED, 900, answer=page)],
                [CALL, RAN],
                ("allowed", "browser", 900, True),
            ),
        ),
        (
            "a page that allowed what the person denied first",
            (
                [asked(), signal(ANSWERED, 900, answer=page)],
                [CALL, REFUSED],
                ("denied", "terminal", 5000, False),
            ),
        ),
        ("a rule", ([asked(answer=rule)], [CALL, RAN], ("allowed", "rule", 130, True))),
        ("another hook", ([asked()], [CALL, decision, RAN], ("allowed", "agent", 300, True))),
        (
            "telemetry",
            (
                [asked(), signal(DECIDED, 700, answer=telemetry)],
                [CALL, RAN],
                ("allowed", "terminal", 700, True),
            ),
        ),
        (
            "telemetry before the result",
            (
                [asked(), signal(DECIDED, 700, answer=telemetry)],
                [CALL],
                ("allowed", "terminal", 700, True),
            ),
        ),
        (
            "the turn ended first",
            ([asked(), signal("Stop", 2_000)], [CALL], ("unanswered", "nobody", 2_000, False)),
        ),
    ]

    def check(case: tuple[list[Signal], list[StoredEvent], tuple[Any, ...]]) -> None:
        signals, events, expected = case
        (made,) = decide(*signals, events=events)
        assert told(made) == expected
        assert (made.tool, made.action, made.cwd, made.call) == ("Bash", COMMAND, "/p", "c1")

    check_each(cases, check)


def test_a_request_that_a_busy_machine_tells_late_was_answered_all_the_same() -> None:
    over = signal("Stop", 30_000)
    (made,) = decide(asked(5_040), over, events=[CALL, RAN])
    assert told(made) == ("allowed", "terminal", 5_000, False)
    assert (made.call, made.asked_at) == ("c1", T + 5_000)
    (refused,) = decide(asked(5_040), over, events=[CALL, REFUSED])
    assert told(refused) == ("denied", "terminal", 5_000, False)
    (far,) = decide(asked(20_000), over, events=[CALL, RAN])
    assert told(far) == ("unanswered", "nobody", 30_000, False), "that call was not asked for"
    again = event(3, "tool.call", 5_020, COMMAND, id="c2", input={"command": COMMAND})
    first, second = decide(asked(), asked(5_040), over, events=[CALL, RAN, again])
    assert told(first) == ("allowed", "terminal", 5_000, False)
    assert (second.call, second.decision) == ("c2", "unanswered")


def test_a_plugin_tells_of_the_request_and_of_its_answer() -> None:
    first = asked(agent="opencode", tool_use_id="c1")

    def replied(reason: str, source: str) -> Signal:
        facts = {"tool_use_id": "c1", "reason": reason, "source": source}
        return signal("PermissionReplied", 800, "opencode", **facts)

    for reason, source in (("allowed", "terminal"), ("denied", "terminal"), ("denied", "nobody")):
        (made,) = decide(first, replied(reason, source), events=[], agent="opencode")
        assert told(made) == (reason, source, 800, True)
        assert made.evidence == "PermissionReplied hook"
    page = {"by": "browser", "answer": "allow", "digest": action_digest(COMMAND)}
    both = [signal(ANSWERED, 700, "opencode", answer=page), replied("allowed", "terminal")]
    (made,) = decide(first, *both, events=[], agent="opencode")
    assert told(made) == ("allowed", "browser", 700, True)
    assert "confirmed by the PermissionReplied hook" in made.evidence


def test_what_settings_let_through_is_on_record_where_telemetry_tells_it() -> None:
    given = {"answer": "allow", "by": "agent", "source": "config", "call": "c1", "tool": "Bash"}
    once = signal(DECIDED, 60, answer=given)
    (made,) = decide(once, once, events=[CALL, RAN])
    assert told(made) == ("allowed", "agent", 60, True)
    assert (made.action, made.evidence) == (COMMAND, "telemetry: config")
    unknown = {"answer": "deny", "by": "agent", "source": "config", "tool": "Bash"}
    twice = [signal(DECIDED, 60, answer=unknown), signal(DECIDED, 60, answer=unknown)]
    (made,) = decide(*twice, events=[])
    assert (made.decision, made.tool, made.call) == ("denied", "Bash", None)


def test_the_agents_own_no_is_on_record() -> None:
    facts = {"tool_name": "Bash", "tool_use_id": "c1", "reason": "It deletes."}
    denied = signal("PermissionDenied", 200, asked={"text": COMMAND}, **facts)
    (made,) = decide(denied, events=[CALL, event(2, "tool.result", 210, "No", id="c1")])
    assert told(made) == ("denied", "agent", 200, True)
    assert made.reason == "It deletes."
