"""A turn: from a user's prompt to the next one, with the approvals in it."""

from __future__ import annotations

import msgspec

from whyfor.model.sessions import Tokens


class ApprovalRequest(msgspec.Struct):
    at: int
    tool: str | None = None
    action: str | None = None
    call: str | None = None
    subagent: str | None = None
    # for an allowed call, the time of its result, because agents do not record the approval itself
    resolved_at: int | None = None
    decision: str | None = None  # allowed | denied | superseded; None: it waits


class Turn(msgspec.Struct):
    turn: int
    prompt: str | None = None
    closing: str | None = None  # the agent's last words
    started_at: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None  # as the agent measured it, else from first to last record
    tools: dict[str, int] = {}
    kinds: dict[str, int] = {}  # the same calls by what they do: shell, edit, read, …
    files: list[str] = []  # it wrote to
    approvals: list[ApprovalRequest] = []
    failures: int = 0
    errors: list[str] = []
    questions: list[str] = []
    interrupted: bool = False
    tokens: Tokens | None = None  # None: unknown
    first_seq: int = 0
    last_seq: int = 0
