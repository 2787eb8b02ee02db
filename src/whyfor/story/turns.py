"""Turns: from a real user prompt to the next one."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from whyfor.agents.edits import changes_in, first_text, is_edit, patched_paths, path_in
from whyfor.agents.tools import tool_kind
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
    _share(made, _approvals(events, signals, agent))
    return made


def counted_kind(name: str, agent: str = "") -> str:
    """What a tool does, as calls are counted: shell, edit, read, search, web, …"""
    kind = tool_kind(name, agent)
    return _COUNTED_AS.get(kind, kind)


def _add(making: _Making, event: StoredEvent, agent: str) -> None:
    turn, data = making.turn, event.data or {}
    turn.last_seq = event.seq
    if event.created_at is not None:
        turn.started_at = min(turn.started_at or event.created_at, event.created_at)
        turn.ended_at = max(turn.ended_at or event.created_at, event.created_at)
    if event.kind == "user.prompt":
        turn.prompt = turn.prompt or event.text
    elif event.kind == "assistant.message":
        turn.closing = event.text
    elif event.kind == "tool.call":
        making.tools[event.name or "unknown"] += 1
        making.kinds[counted_kind(event.name or "", agent)] += 1
        making.writes[first_text(data, "id") or str(event.seq)] = _written(
            data.get("input"), event.text
        )
    elif event.kind == "tool.result":
        turn.failures += bool(data.get("failed"))
        if data.get("failed"):
            making.writes.pop(first_text(data, "id"), None)
    elif event.kind == "error":
        turn.errors.append(event.text)
    elif event.kind == "question.asked":
        turn.questions.append(event.text)
    elif event.kind == "turn.completed":
        turn.interrupted = turn.interrupted or bool(data.get("interrupted"))
        measured = data.get("duration_ms")
        turn.duration_ms = (
            measured if isinstance(measured, int) and measured >= 0 else turn.duration_ms
        )


def _written(given: Any, text: str) -> list[str]:
    if not is_edit(given, text):
        return []
    if (changes := changes_in(given)) is not None:
        return [str(path) for path in changes]
    path = path_in(given)
    return patched_paths(text) or ([path] if path else [])


def _finished(making: _Making, spent: Mapping[int, Tokens]) -> Turn:
    turn = making.turn
    turn.tools, turn.kinds = dict(making.tools.most_common()), dict(making.kinds.most_common())
    turn.files = list(dict.fromkeys(path for paths in making.writes.values() for path in paths))
    turn.tokens = spent.get(turn.turn)
    if turn.duration_ms is None and turn.started_at is not None and turn.ended_at is not None:
        turn.duration_ms = turn.ended_at - turn.started_at
    return turn


# -- approvals -----------------------------------------------------------------------------------


def _approvals(
    events: list[StoredEvent], signals: Iterable[Signal], agent: str
) -> list[ApprovalRequest]:
    hooks = [sign for signal in signals if (sign := of_signal(signal))]
    if not any(sign.kind == "asked" for sign in hooks) and not any(
        event.kind in _ASKING for event in events
    ):
        return []
    told = [event for event in events if event.kind in _TELLING]
    refused = [
        first_text(event.data, "id") for event in told if event.data and event.data.get("rejected")
    ]
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
