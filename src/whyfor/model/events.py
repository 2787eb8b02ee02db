"""Events: records in normalised form."""

from __future__ import annotations

from typing import Any

import msgspec

KINDS = (
    "session.started",
    "session.exited",
    "turn.started",
    "turn.completed",
    "user.prompt",
    "assistant.message",
    "assistant.thinking",
    "tool.call",
    "tool.result",
    "approval.requested",
    "approval.resolved",
    "question.asked",
    "status.changed",
    "compaction",
    "subagent.started",
    "subagent.stopped",
    "error",
    "heartbeat",
)


class Event(msgspec.Struct, gc=False):
    """One normalised record, before the store assigns session, seq and turn."""

    kind: str
    key: int
    created_at: int | None
    actor: str  # user | assistant | tool | system | subagent
    text: str = ""
    name: str | None = None  # of the tool
    data: dict[str, Any] | None = None


class Usage(msgspec.Struct, gc=False):
    """Tokens of one model response. None means unknown, never zero; input excludes cached
    tokens."""

    key: int
    created_at: int | None
    model: str | None = None
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None


class Touch(msgspec.Struct, gc=False):
    """A file that the session read or wrote, with the event that did it."""

    key: int
    path: str
    action: str  # read | write


class StoredEvent(msgspec.Struct, gc=False):
    """An event with its session, seq and turn."""

    seq: int
    turn: int
    kind: str
    source: str
    confidence: str
    created_at: int | None
    observed_at: int
    actor: str
    text: str
    name: str | None
    data: dict[str, Any] | None
