"""Signs: what a record, a hook or the agent's own process registry says of where a session
stands, in one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from whyfor.agents.edits import first_text, path_in
from whyfor.agents.tools import (
    command_of,
    ends_with_turn,
    hook_kind,
    is_of_an_agent,
    notice_kind,
    process_kind,
    tool_kind,
)
from whyfor.model.attention import ATTENTION
from whyfor.model.events import StoredEvent
from whyfor.model.signals import Signal

KINDS = (
    "started",  # a process has the session open, and nothing is asked of it yet
    "prompt",  # a turn begins
    "thinking",
    "spoke",
    "call",  # a tool is called
    "result",  # and answers, whatever it answers
    "asked",  # may it call the tool?
    "answered",
    "noticed",  # it asks for something, and does not say for what
    "question",
    "done",  # the turn is over
    "failed",
    "interrupted",
    "ready",  # the prompt is free
    "busy",
    "compacting",
    "compacted",
    "child.active",
    "child.stopped",
    "erred",
    "exited",
    "heard",  # somebody is there, and that is all it says
)
TEXT_MAX = 8000  # characters of a command that are kept to be shown
# Tools of which the path says what they do; of all others every argument is shown.
_BY_PATH = ("read", "edit", "write")
_EVENTS: dict[str, str] = {
    "session.started": "started",
    "session.exited": "exited",
    "turn.started": "prompt",
    "turn.completed": "done",
    "user.prompt": "prompt",
    "assistant.message": "spoke",
    "assistant.thinking": "thinking",
    "tool.call": "call",
    "tool.result": "result",
    "approval.requested": "asked",
    "approval.resolved": "answered",
    "question.asked": "question",
    "status.changed": "heard",
    "compaction": "compacted",
    "subagent.started": "child.active",
    "subagent.stopped": "child.stopped",
    "error": "erred",
    "heartbeat": "heard",
}
# What ends or begins a subagent says nothing of its parent.
_OF_CHILDREN = dict.fromkeys(("done", "failed", "interrupted", "exited"), "child.stopped")
_OF_CHILDREN |= dict.fromkeys(("started", "prompt"), "child.active")
_OF_CHILDREN |= dict.fromkeys(("compacting", "compacted", "erred", "ready", "busy"), "heard")


class StatusInput(msgspec.Struct, frozen=True):
    kind: str
    at: int  # ms
    word: str  # who said it and how, for people: `Stop hook`
    source: str  # transcript | hook | process
    order: int = 0  # place in the transcript: two records of one moment have an order all the same
    agent: str = ""  # whose session it is; empty: not known
    child: str = ""  # the subagent it is about; empty: the session itself
    call: str = ""  # which call, or request, by the agent's own id
    about: str = ""  # the call a request is about, if it has an id of its own
    tool: str = ""
    text: str = ""  # the exact command, the question, the reason
    path: str = ""
    cwd: str = ""
    spawns: bool = False  # the call runs a subagent
    cut: bool = False  # there is more text than is kept
    process: tuple[int, int] | None = None  # pid and start of the agent's process
    single: bool = False  # the program ends with the turn


def of_event(event: StoredEvent, child: str = "", agent: str = "") -> StatusInput:
    """`child` names the subagent whose session the event is in, if it is fed to its parent's
    state; `agent` whose session it is, if that is known."""
    data = event.data or {}
    when = (
        event.observed_at if event.created_at is None else min(event.created_at, event.observed_at)
    )
    sign = StatusInput(
        kind=_EVENTS.get(event.kind, "heard"),
        at=when,
        word=f"transcript: {event.kind}",
        source="transcript",
        order=event.seq,
        agent=agent,
        child=child,
        call=first_text(data, "id", "request"),
    )
    return _about_child(_TELL[event.kind](sign, event, data) if event.kind in _TELL else sign)


def of_signal(signal: Signal) -> StatusInput | None:
    """None for what says nothing of the session: doctor's probes, and lines of our own."""
    if signal.event in ("probe", ATTENTION):
        return None
    data = signal.data
    is_git = signal.agent == "git"
    child = first_text(data, "agent_id")
    asked = data.get("asked")
    tool = first_text(data, "tool_name") or first_text(asked, "tool")
    kind = _kind_of_signal(signal, tool)
    return _about_child(
        StatusInput(
            kind=kind,
            at=signal.at,
            word=f"{signal.event} hook",
            source="hook",
            agent="" if is_git else signal.agent,
            child=child,
            call=first_text(data, "tool_use_id"),
            tool=tool,
            text=first_text(asked, "text")[:TEXT_MAX]
            if kind == "asked"
            else first_text(data, "error", "reason"),
            path=first_text(asked, "path") if kind == "asked" else "",
            cut=kind == "asked" and isinstance(asked, dict) and bool(asked.get("cut")),
            cwd=signal.cwd or "" if kind == "started" else "",
            process=_process(data.get("process")) if not is_git else None,
        )
    )


def _kind_of_signal(signal: Signal, tool: str) -> str:
    data = signal.data
    kind = "heard"
    if signal.agent != "git":
        kind = hook_kind(signal.event, signal.agent) or "heard"
    if kind == "started" and data.get("source") == "compact":
        return "compacted"
    if kind == "asked" and tool_kind(tool, signal.agent) == "question":
        return "question"
    if signal.event.lower() == "notification":
        notice = notice_kind(first_text(data, "notification_type"), signal.agent)
        return "asked" if data.get("asked") else notice or "heard"
    if kind in ("child.active", "child.stopped") and not first_text(data, "agent_id"):
        return "heard"  # Claude Code says so of a compaction, too
    return kind


def of_process(status: str, waiting_for: str, at: int) -> StatusInput:
    """What the agent's own registry says of its process, in the agent's word."""
    kind = process_kind(status, waiting_for) or "heard"
    word = f"process: {status} ({waiting_for})" if waiting_for else f"process: {status}"
    return StatusInput(kind=kind, at=at, word=word, source="process")


def said(event: StoredEvent, agent: str = "") -> str:
    """What a call or a request would do, whole: the exact command, or all that is given where no
    path says it."""
    if event.kind != "tool.call":
        return event.text
    given, tool = (event.data or {}).get("input"), event.name or "unknown"
    command = command_of(given) if tool_family(tool, agent) == "shell" else ""
    return command or ("" if _path(given, tool, agent) else event.text)


def _path(given: Any, tool: str, agent: str) -> str:
    tells = is_of_an_agent(tool) and tool_kind(tool, agent, given) in _BY_PATH
    return path_in(given) if tells else ""


def tool_family(tool: str, agent: str = "") -> str:
    """Hooks and transcripts of one agent may call its shell by different names."""
    return "shell" if tool_kind(tool, agent) == "shell" else tool


def _about_child(sign: StatusInput) -> StatusInput:
    if not sign.child or sign.kind not in _OF_CHILDREN:
        return sign
    return msgspec.structs.replace(sign, kind=_OF_CHILDREN[sign.kind])


def _process(told: object) -> tuple[int, int] | None:
    match told:
        case [int(pid), int(start)]:
            return pid, start
    return None


# -- what the kinds of events say beside that ----------------------------------------------------


def _started(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    """Without a time it may be later than all that follows it, and then says nothing."""
    kind = "heard" if event.created_at is None else sign.kind
    single = ends_with_turn(data, sign.agent)
    return msgspec.structs.replace(sign, kind=kind, cwd=first_text(data, "cwd"), single=single)


def _prompt(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    own = event.actor == "user" or sign.child
    # a subagent's task, in an older parent's file
    return sign if own else msgspec.structs.replace(sign, kind="heard")


def _over(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    kind = "interrupted" if data.get("interrupted") else "failed" if data.get("failed") else "done"
    return msgspec.structs.replace(sign, kind=kind, text=first_text(data, "reason"))


def _call(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    if event.actor == "user":  # a `!` line the person typed
        return msgspec.structs.replace(sign, kind="heard")
    tool, text = event.name or "unknown", said(event, sign.agent)
    path = _path(data.get("input"), tool, sign.agent)
    cut = len(text) > TEXT_MAX
    ident = sign.call or f"seq {event.seq}"
    return msgspec.structs.replace(
        sign, call=ident, tool=tool, text=text[:TEXT_MAX], path=path, cut=cut
    )


def _result(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    return msgspec.structs.replace(sign, kind="heard") if event.actor == "user" else sign


def _asked(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    request, cut = (
        first_text(data, "request", "id") or f"seq {event.seq}",
        len(event.text) > TEXT_MAX,
    )
    told = msgspec.structs.replace(
        sign, call=request, about=first_text(data, "id"), tool=event.name or "", cut=cut
    )
    return msgspec.structs.replace(told, text=event.text[:TEXT_MAX])


def _answered(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    return msgspec.structs.replace(
        sign, call=first_text(data, "request", "id"), text=first_text(data, "decision")
    )


def _question(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    return msgspec.structs.replace(
        sign, call=sign.call or f"seq {event.seq}", text=event.text[:TEXT_MAX]
    )


def _subagent(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    """Only some agents name the session of a subagent; for the others its call says how long it
    runs."""
    if child := first_text(data, "session", "subagent"):
        return msgspec.structs.replace(sign, child=child, call="")
    kind = "call" if event.kind == "subagent.started" and sign.call else "heard"
    return msgspec.structs.replace(
        sign, kind=kind, spawns=True, text=event.text[:TEXT_MAX], child=sign.child
    )


def _error(sign: StatusInput, event: StoredEvent, data: dict[str, Any]) -> StatusInput:
    return msgspec.structs.replace(sign, text=event.text[:TEXT_MAX])


_TELL: dict[str, Callable[[StatusInput, StoredEvent, dict[str, Any]], StatusInput]] = {
    "session.started": _started,
    "turn.completed": _over,
    "user.prompt": _prompt,
    "tool.call": _call,
    "tool.result": _result,
    "approval.requested": _asked,
    "approval.resolved": _answered,
    "question.asked": _question,
    "subagent.started": _subagent,
    "subagent.stopped": _subagent,
    "error": _error,
}
