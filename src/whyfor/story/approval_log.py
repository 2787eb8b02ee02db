"""Approvals on record: each request of a session, what came of it, who answered, how we know.

Made of the session's events and of what hooks and our own answers announced, so that a rebuild
makes the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.agents.edits import first_text
from whyfor.agents.tools import refused_by, was_denied
from whyfor.model.approvals import (
    ANSWERED,
    DECIDED,
    ApprovalDecision,
    ChangedSession,
    action_digest,
)
from whyfor.model.events import StoredEvent
from whyfor.model.signals import Signal
from whyfor.model.turns import ApprovalRequest
from whyfor.store.protocol import Store
from whyfor.story.status.inputs import of_signal
from whyfor.story.turns import session_requests

_MARK = "approvals"  # the newest signal that was looked at
_SLACK = 10_000  # ms between a request in a transcript and its hook
_DENIED_HOOK = "PermissionDenied"
_ANSWERERS = ("terminal", "nobody", "agent")  # whom a hook may name that tells of an answer
_WORDS = {"allow": "allowed", "deny": "denied"}


def renew_approvals(store: Store) -> int:
    """Write down the approvals of sessions that have something new; return of how many."""
    newest = store.signals.newest()
    changed = store.approvals.changed(store.mark(_MARK))
    if not changed and newest == store.mark(_MARK):
        return 0
    with store.transaction():
        for session in changed:
            found: list[ApprovalDecision] = []
            if store.approvals.has_requests(session):
                found = _session_decisions(store, session)
            store.approvals.save(session, found)
        store.set_mark(_MARK, newest)
    return len(changed)


def _session_decisions(store: Store, session: ChangedSession) -> list[ApprovalDecision]:
    events: list[StoredEvent] = []
    cwd = None
    if session.number is not None:
        known = store.sessions.by_number([session.number])[session.number]
        events = [e for e in store.conversation.events(known.id) if e.seq >= known.own_from]
        cwd = known.cwd
    signals = store.signals.of_session(session.agent, session.session_id)
    return approval_decisions(session, events, signals, cwd)


def approval_decisions(
    session: ChangedSession,
    events: list[StoredEvent],
    signals: list[Signal],
    cwd: str | None = None,
) -> list[ApprovalDecision]:
    """Return the decisions of a session, oldest first."""
    asked = [signal for signal in signals if _is_request(signal)]
    answers = [signal for signal in signals if signal.event == ANSWERED]
    replies = [signal for signal in signals if _kind(signal) == "answered"]
    told = [signal for signal in signals if signal.event == DECIDED]
    found = []
    for request in session_requests(events, signals, session.agent):
        hook = _take_nearest(asked, request)
        made = _begin(session, request, hook, cwd)
        evidence = _Evidence(
            hook,
            _take_answer(answers, made),
            _take_call(replies, made),
            _take_call(told, made),
            events,
        )
        found.append(_answered(made, request, evidence))
    found += _denied_by_agent(session, signals, cwd, _calls(found))
    found += _decided_unasked(session, told, events, cwd, _calls(found))
    found += _refused_unasked(session, events, cwd, _calls(found))
    return sorted(found, key=lambda each: each.asked_at)


class _Evidence(msgspec.Struct, frozen=True):
    """What is known of the answer to a request."""

    hook: Signal | None  # told of the request, and what a rule said
    answer: Signal | None  # ours, from the browser
    reply: Signal | None  # the agent's hook told of the answer
    told: Signal | None  # its telemetry did
    events: list[StoredEvent]


def _calls(found: list[ApprovalDecision]) -> set[str]:
    return {each.call for each in found if each.call}


def _kind(signal: Signal) -> str:
    told = of_signal(signal)
    return told.kind if told is not None else ""


def _is_request(signal: Signal) -> bool:
    return _kind(signal) == "asked"


def _take_nearest(asked: list[Signal], request: ApprovalRequest) -> Signal | None:
    """Return the hook's account of a request, which is then no other's."""
    near = [signal for signal in asked if abs(signal.at - request.at) <= _SLACK]
    said = request.action
    near.sort(key=lambda signal: (_text(signal) not in (said, ""), abs(signal.at - request.at)))
    if not near:
        return None
    asked.remove(near[0])
    return near[0]


def _text(signal: Signal) -> str:
    return first_text(signal.data.get("asked"), "text")


def _begin(
    session: ChangedSession, request: ApprovalRequest, hook: Signal | None, cwd: str | None
) -> ApprovalDecision:
    return ApprovalDecision(
        agent=session.agent,
        session_id=session.session_id,
        asked_at=request.at,
        tool=request.tool,
        action=request.action,
        cwd=hook.cwd if hook and hook.cwd else cwd,
        call=request.call,
        subagent=request.subagent,
    )


def _take_answer(answers: list[Signal], made: ApprovalDecision) -> Signal | None:
    """Return our answer from the browser to a request: the first behind it about what was asked."""
    digest = action_digest(made.action or "")
    for signal in answers:
        told = signal.data.get("answer", {})
        if signal.at >= made.asked_at - _SLACK and told.get("digest") == digest:
            answers.remove(signal)
            return signal
    return None


def _take_call(signals: list[Signal], made: ApprovalDecision) -> Signal | None:
    """Return what was told of the answer to a request's call, which is then no other's."""
    for signal in signals:
        if made.call and made.call == _call_id(signal) and signal.at >= made.asked_at - _SLACK:
            signals.remove(signal)
            return signal
    return None


def _call_id(signal: Signal) -> str:
    return first_text(signal.data, "tool_use_id") or first_text(signal.data.get("answer"), "call")


def _answered(
    made: ApprovalDecision, request: ApprovalRequest, evidence: _Evidence
) -> ApprovalDecision:
    """Return a decision with who answered. What rules would have said is kept beside it."""
    change = msgspec.structs.replace
    hook = evidence.hook
    ruled = hook.data.get("answer", {}) if hook else {}
    if ruled.get("dry"):
        made = change(
            made,
            dry=str(ruled.get("answer", "")),
            rule=str(ruled.get("rule", "")),
            reason=str(ruled.get("reason", "")),
        )
    if request.decision in (None, "superseded"):
        return _unresolved(made, request, evidence.told)
    outcome = str(request.decision)
    made = change(made, decision=outcome, answered_at=request.resolved_at)
    said = evidence.answer.data["answer"] if evidence.answer else {}
    if evidence.answer and _WORDS.get(str(said.get("answer"))) == outcome:
        words = f"answered on the page, then {_proof(made, evidence)}"
        at = evidence.answer.at
        return change(made, by="browser", answered_at=at, exact=True, evidence=words)
    if hook and not ruled.get("dry") and _WORDS.get(str(ruled.get("answer"))) == outcome:
        words = f"the hook printed it, then {_proof(made, evidence)}"
        at = hook.at + int(ruled.get("ms") or 0)
        rule = str(ruled.get("rule", ""))
        return change(made, by="rule", rule=rule, answered_at=at, exact=True, evidence=words)
    return _answered_elsewhere(made, evidence)


def _unresolved(
    made: ApprovalDecision, request: ApprovalRequest, told: Signal | None
) -> ApprovalDecision:
    """Return a request of which no result is known: telemetry may still tell who answered."""
    if told is not None:
        return _by_telemetry(made, told)
    if request.decision is None:
        return made
    return msgspec.structs.replace(
        made,
        decision="unanswered",
        by="nobody",
        answered_at=request.resolved_at,
        evidence="the turn or the session ended first",
    )


def _answered_elsewhere(made: ApprovalDecision, evidence: _Evidence) -> ApprovalDecision:
    """Return a decision that was not made by us."""
    change = msgspec.structs.replace
    if evidence.reply is not None:
        named = first_text(evidence.reply.data, "source")
        by = named if named in _ANSWERERS else "terminal"
        words = f"{evidence.reply.event} hook"
        return change(made, by=by, answered_at=evidence.reply.at, exact=True, evidence=words)
    if evidence.told is not None:
        return _by_telemetry(made, evidence.told)
    if _hook_decided(made, evidence.events):
        words = "another hook answered, says the transcript"
        return change(made, by="agent", exact=True, evidence=words)
    resolved = _resolution(made, evidence.events)
    named = first_text(resolved.data, "by") if resolved else ""
    refuser = _refuser(made, evidence.events) if made.decision == "denied" else None
    by = named if named in _ANSWERERS else refuser or "terminal"
    words = "the transcript" if named else _proof(made, evidence)
    return change(made, by=by, exact=resolved is not None, evidence=words)


def _by_telemetry(made: ApprovalDecision, told: Signal) -> ApprovalDecision:
    """Return a decision as the agent's telemetry tells it."""
    said = told.data.get("answer", {})
    named = said.get("by")
    return msgspec.structs.replace(
        made,
        decision=_WORDS.get(str(said.get("answer")), made.decision),
        by=named if named in _ANSWERERS else "unknown",
        answered_at=told.at,
        exact=True,
        evidence=f"telemetry: {first_text(said, 'source') or 'decision'}",
        reason=made.reason or first_text(said, "reason"),
    )


def _proof(made: ApprovalDecision, evidence: _Evidence) -> str:
    if evidence.reply is not None:
        return f"confirmed by the {evidence.reply.event} hook"
    if _hook_decided(made, evidence.events):
        return "confirmed by the transcript"
    return "the call ran" if made.decision == "allowed" else "the call was refused"


def _hook_decided(made: ApprovalDecision, events: Iterable[StoredEvent]) -> bool:
    """Whether the agent's own record says that a hook answered."""
    found = _resolution(made, events)
    return found is not None and found.get("by") == "hook"


def _resolution(made: ApprovalDecision, events: Iterable[StoredEvent]) -> StoredEvent | None:
    """Return what the agent's own record says of the answer, if it has more than the call's
    result."""
    told = [event for event in events if event.kind == "approval.resolved"]
    for event in told:
        if made.call and first_text(event.data, "id") == made.call:
            return event
    return next((event for event in told if event.created_at == made.answered_at), None)


def _refuser(made: ApprovalDecision, events: Iterable[StoredEvent]) -> str | None:
    """Return who refused a call, by the words of its result; None if they do not say."""
    for event in events:
        if event.kind == "tool.result" and made.call and first_text(event.data, "id") == made.call:
            return refused_by(event.text, made.agent)
    return None


def _denied_by_agent(
    session: ChangedSession, signals: list[Signal], cwd: str | None, known: set[str]
) -> list[ApprovalDecision]:
    """Return what the agent's own judgement denied, without asking anybody."""
    found = []
    for signal in signals:
        call = first_text(signal.data, "tool_use_id")
        if signal.event != _DENIED_HOOK or (call and call in known):
            continue
        made = ApprovalDecision(
            agent=session.agent,
            session_id=session.session_id,
            asked_at=signal.at,
            tool=first_text(signal.data, "tool_name") or None,
            action=_text(signal) or None,
            cwd=signal.cwd or cwd,
            call=call or None,
            decision="denied",
            by="agent",
            answered_at=signal.at,
            exact=True,
            evidence=f"{_DENIED_HOOK} hook",
            reason=first_text(signal.data, "reason"),
        )
        found.append(made)
    return found


def _decided_unasked(
    session: ChangedSession,
    told: list[Signal],
    events: list[StoredEvent],
    cwd: str | None,
    known: set[str],
) -> list[ApprovalDecision]:
    """Return what telemetry alone tells: mostly what the agent's settings or its automatic mode
    let through without asking."""
    calls = {first_text(e.data, "id"): e for e in events if e.kind == "tool.call"}
    found = []
    seen: set[tuple[int, str]] = set()
    for signal in told:
        said = signal.data.get("answer", {})
        ident = first_text(said, "call")
        call = calls.get(ident)
        same = (0, ident) if ident else (signal.at, first_text(said, "tool"))
        if ident in known or same in seen:
            continue
        seen.add(same)
        made = ApprovalDecision(
            agent=session.agent,
            session_id=session.session_id,
            asked_at=signal.at,
            tool=(call.name if call else None) or first_text(said, "tool") or None,
            action=_said_action(call, session.agent) or first_text(said, "action") or None,
            cwd=cwd,
            call=ident or None,
        )
        found.append(_by_telemetry(made, signal))
    return found


def _said_action(call: StoredEvent | None, agent: str) -> str:
    from whyfor.story.status.inputs import of_event  # here: few sessions have such calls

    said = of_event(call, agent=agent) if call else None
    return (said.text or said.path) if said else ""


def _refused_unasked(
    session: ChangedSession, events: list[StoredEvent], cwd: str | None, known: set[str]
) -> list[ApprovalDecision]:
    """Return calls whose result says that they were refused, where no request was heard of."""
    calls = {first_text(e.data, "id"): e for e in events if e.kind == "tool.call"}
    found = []
    for event in events:
        ident = first_text(event.data, "id")
        call = calls.get(ident)
        if event.kind != "tool.result" or not was_denied(event.data, event.text):
            continue
        if call is None or ident in known:
            continue
        by = refused_by(event.text, session.agent) or "unknown"
        found.append(_unasked(session, call, event, cwd, by))
    return found


def _unasked(
    session: ChangedSession, call: StoredEvent, result: StoredEvent, cwd: str | None, by: str
) -> ApprovalDecision:
    return ApprovalDecision(
        agent=session.agent,
        session_id=session.session_id,
        asked_at=call.created_at or call.observed_at,
        tool=call.name,
        action=_said_action(call, session.agent) or None,
        cwd=cwd,
        call=first_text(call.data, "id") or None,
        decision="denied",
        by=by,  # type: ignore[arg-type]  # a word of the agent's facts
        answered_at=result.created_at or result.observed_at,
        evidence="the words of its result",
    )
