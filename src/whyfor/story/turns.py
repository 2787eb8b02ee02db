"""Turns: from a real user prompt to the next one."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from whyfor.agents.edits import first_text, written_paths
from whyfor.agents.tools import tool_kind, was_denied
from whyfor.model.events import StoredEvent
from whyfor.model.sessions import Tokens
from whyfor.model.signals import Signal
from whyfor.model.tools import ToolKind
from whyfor.model.turns import ApprovalRequest, Turn
from whyfor.story.status.approvals import approvals
from whyfor.story.status.inputs import of_event, of_signal

# What is counted together.
_COUNTED_AS: Mapping[ToolKind, str] = {
    "write": "edit",
    "patch": "edit",
    "list": "search",
    "fetch": "web",
    "todo": "plan",
    "typed": "other",
    "mode": "other",
    "tools": "other",
}
_ASKING = frozenset({"approval.requested", "approval.resolved"})
_TELLING = _ASKING | {
    "tool.call",
    "tool.result",
    "user.prompt",
    "turn.started",
    "turn.completed",
    "session.exited",
}


class _Making(msgspec.Struct):
    """A turn while its events come."""

    turn: Turn
    tools: Counter[str]
    kinds: Counter[str]
    writes: dict[str, list[str]]  # by call


def build_turns(
    events: Iterable[StoredEvent],
    *,
    spent: Mapping[int, Tokens] | None = None,
    signals: Iterable[Signal] = (),
    agent: str = "",
) -> list[Turn]:
    """`spent`: tokens by turn; `signals`: what the session's hooks said, for requests no
    transcript holds; `agent`: whose session it is, if that is known."""
    events = list(events)
    found: dict[int, _Making] = {}
    for event in events:
        making = found.get(event.turn)
        if making is None:
            turn = Turn(event.turn, errors=[], questions=[], approvals=[], first_seq=event.seq)
            making = found[event.turn] = _Making(turn, Counter(), Counter(), {})
        _add(making, event, agent)
    made = [_finished(found[number], spent or {}) for number in sorted(found)]
    _share(made, session_requests(events, signals, agent))
    return made


def counted_kind(name: str, agent: str = "") -> str:
    """What a tool does, as calls are counted: shell, edit, read, search, web, …"""
    kind = tool_kind(name, agent)
    return _COUNTED_AS.get(kind, kind)


def _add(making: _Making, event: StoredEvent, agent: str) -> None:
    turn = making.turn
    turn.last_seq = event.seq
    if event.created_at is not None:
        turn.started_at = min(turn.started_at or event.created_at, event.created_at)
        turn.ended_at = max(turn.ended_at or event.created_at, event.created_at)
    add = _ADD.get(event.kind)
    if add:
        add(making, event, agent)


def _add_prompt(making: _Making, event: StoredEvent, _agent: str) -> None:
    making.turn.prompt = making.turn.prompt or event.text


def _add_message(making: _Making, event: StoredEvent, _agent: str) -> None:
    making.turn.closing = event.text


def _add_call(making: _Making, event: StoredEvent, agent: str) -> None:
    data = event.data or {}
    making.tools[event.name or "unknown"] += 1
    making.kinds[counted_kind(event.name or "", agent)] += 1
    ident = first_text(data, "id") or str(event.seq)
    making.writes[ident] = written_paths(data.get("input"), event.text)


def _add_result(making: _Making, event: StoredEvent, _agent: str) -> None:
    data = event.data or {}
    if data.get("failed"):
        making.turn.failures += not was_denied(data, event.text)
        making.writes.pop(first_text(data, "id"), None)


def _add_error(making: _Making, event: StoredEvent, _agent: str) -> None:
    making.turn.errors.append(event.text)


def _add_question(making: _Making, event: StoredEvent, _agent: str) -> None:
    making.turn.questions.append(event.text)


def _add_end(making: _Making, event: StoredEvent, _agent: str) -> None:
    data = event.data or {}
    turn = making.turn
    turn.interrupted = turn.interrupted or bool(data.get("interrupted"))
    measured = data.get("duration_ms")
    if isinstance(measured, int) and measured >= 0:
        turn.duration_ms = measured


_ADD: dict[str, Callable[[_Making, StoredEvent, str], None]] = {
    "user.prompt": _add_prompt,
    "assistant.message": _add_message,
    "tool.call": _add_call,
    "tool.result": _add_result,
    "error": _add_error,
    "question.asked": _add_question,
    "turn.completed": _add_end,
}


def _finished(making: _Making, spent: Mapping[int, Tokens]) -> Turn:
    turn = making.turn
    turn.tools, turn.kinds = dict(making.tools.most_common()), dict(making.kinds.most_common())
    turn.files = list(dict.fromkeys(path for paths in making.writes.values() for path in paths))
    turn.tokens = spent.get(turn.turn)
    if turn.duration_ms is None and turn.started_at is not None and turn.ended_at is not None:
        turn.duration_ms = turn.ended_at - turn.started_at
    return turn


# -- approvals -----------------------------------------------------------------------------------


def session_requests(
    events: list[StoredEvent], signals: Iterable[Signal], agent: str
) -> list[ApprovalRequest]:
    """Return what a session asked to be allowed, from its events and what its hooks said."""
    hooks = [sign for signal in signals if (sign := of_signal(signal))]
    if not any(sign.kind == "asked" for sign in hooks) and not any(
        event.kind in _ASKING for event in events
    ):
        return []
    told = [event for event in events if event.kind in _TELLING]
    refused = [first_text(event.data, "id") for event in told if was_denied(event.data, event.text)]
    signs = [of_event(event, agent=agent) for event in told]
    return approvals([*signs, *hooks], refused)


def _share(made: list[Turn], asked: list[ApprovalRequest]) -> None:
    """Each request to the turn that had begun when it was made."""
    dated = sorted(
        (turn.started_at, turn.turn, turn) for turn in made if turn.started_at is not None
    )
    starts = [start for start, _, _ in dated]
    for request in asked:
        if dated:
            dated[max(0, bisect_right(starts, request.at) - 1)][2].approvals.append(request)
