"""Turns: from a real user prompt to the next one."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from whyfor.model.events import StoredEvent
from whyfor.model.sessions import Tokens
from whyfor.model.signals import Signal
from whyfor.model.turns import ApprovalRequest, Turn
from whyfor.story.links.activity import SHELLS
from whyfor.story.links.edits import PATHS, first, is_edit
from whyfor.story.status.approvals import approvals
from whyfor.story.status.inputs import of_event, of_signal

_KINDS: Mapping[str, frozenset[str]] = {
    "shell": SHELLS,
    "edit": frozenset(
        "edit multiedit write notebookedit write_file replace create str_replace insert "
        "apply_patch patch".split()
    ),
    "read": frozenset("read read_file read_many_files view view_image".split()),
    "search": frozenset("grep glob ls list list_directory search_file_content grep_search".split()),
    "web": frozenset("webfetch websearch web_fetch web_search google_web_search".split()),
    "subagent": frozenset("task agent spawn_agent invoke_agent delegate_to_agent".split()),
    "question": frozenset("askuserquestion ask_user request_user_input question".split()),
    "plan": frozenset(
        "todowrite todo taskcreate taskupdate update_plan write_todos exitplanmode "
        "exit_plan_mode".split()
    ),
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
_PATCHED = re.compile(r"(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$")


class _Making(msgspec.Struct):
    """A turn while its events come."""

    turn: Turn
    tools: Counter[str]
    kinds: Counter[str]
    writes: dict[str, list[str]]  # by call


def turns(
    events: Iterable[StoredEvent],
    *,
    spent: Mapping[int, Tokens] | None = None,
    signals: Iterable[Signal] = (),
) -> list[Turn]:
    """`spent`: tokens by turn; `signals`: what the session's hooks said, for requests no
    transcript holds."""
    events = list(events)
    found: dict[int, _Making] = {}
    for event in events:
        making = found.get(event.turn)
        if making is None:
            turn = Turn(event.turn, errors=[], questions=[], approvals=[], first_seq=event.seq)
            making = found[event.turn] = _Making(turn, Counter(), Counter(), {})
        _add(making, event)
    made = [_finished(found[number], spent or {}) for number in sorted(found)]
    _share(made, _approvals(events, signals))
    return made


def tool_kind(name: str) -> str:
    lowered = name.lower()
    if lowered.startswith("mcp__"):
        return "mcp"
    return next((kind for kind, names in _KINDS.items() if lowered in names), "other")


def _add(making: _Making, event: StoredEvent) -> None:
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
        making.kinds[tool_kind(event.name or "")] += 1
        making.writes[first(data, "id") or str(event.seq)] = _written(data.get("input"), event.text)
    elif event.kind == "tool.result":
        turn.failures += bool(data.get("failed"))
        if data.get("failed"):
            making.writes.pop(first(data, "id"), None)
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
    if isinstance(given, dict) and isinstance(given.get("changes"), dict):
        return [str(path) for path in given["changes"]]
    return _PATCHED.findall(text) or [path for path in (first(given, *PATHS),) if path]


def _finished(making: _Making, spent: Mapping[int, Tokens]) -> Turn:
    turn = making.turn
    turn.tools, turn.kinds = dict(making.tools.most_common()), dict(making.kinds.most_common())
    turn.files = list(dict.fromkeys(path for paths in making.writes.values() for path in paths))
    turn.tokens = spent.get(turn.turn)
    if turn.duration_ms is None and turn.started_at is not None and turn.ended_at is not None:
        turn.duration_ms = turn.ended_at - turn.started_at
    return turn


# -- approvals -----------------------------------------------------------------------------------


def _approvals(events: list[StoredEvent], signals: Iterable[Signal]) -> list[ApprovalRequest]:
    hooks = [sign for signal in signals if (sign := of_signal(signal))]
    if not any(sign.kind == "asked" for sign in hooks) and not any(
        event.kind in _ASKING for event in events
    ):
        return []
    told = [event for event in events if event.kind in _TELLING]
    refused = [
        first(event.data, "id") for event in told if event.data and event.data.get("rejected")
    ]
    return approvals([*map(of_event, told), *hooks], refused)


def _share(made: list[Turn], asked: list[ApprovalRequest]) -> None:
    """Each request to the turn that had begun when it was made."""
    dated = sorted(
        (turn.started_at, turn.turn, turn) for turn in made if turn.started_at is not None
    )
    starts = [start for start, _, _ in dated]
    for request in asked:
        if dated:
            dated[max(0, bisect_right(starts, request.at) - 1)][2].approvals.append(request)
