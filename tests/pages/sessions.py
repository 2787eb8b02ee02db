"""Sessions that do what a test wants, as the watcher would tell the hub of them."""

from __future__ import annotations

import time
from typing import Any

from whyfor.model.sessions import Session, Tokens
from whyfor.model.status import LiveStatus, PendingApproval, Status


def now() -> int:
    return int(time.time() * 1000)


def session(ident: str, **facts: Any) -> Session:
    known: dict[str, Any] = {
        "id": 0,
        "agent": "claude",
        "session_id": ident,
        "project": "example.com/acme/checkout",
        "cwd": "/home/ada/checkout",
        "branch": "main",
        "title": ident,
        "started_at": now() - 600_000,
        "ended_at": now() - 1000,
        "prompts": 3,
        "messages": 12,
        "tool_calls": 20,
        "tokens": Tokens(input=61_000, output=900),
        "models": ["sonnet-4.6"],
        "files_modified": [],
        "parent_session_id": None,
        "subagent": None,
        "unparsed": 0,
    }
    return Session(**{**known, **facts})


def standing(
    ident: str,
    phase: str,
    *,
    pid: int | None = None,
    status: dict[str, Any] | None = None,
    **facts: Any,
) -> LiveStatus:
    known: dict[str, Any] = {
        "evidence": "Stop hook",
        "confidence": "high",
        "since": now() - 60_000,
        "heard_at": now() - 3000,
    }
    return LiveStatus(
        session(ident, **facts), Status(phase, **{**known, **(status or {})}), pid=pid
    )


def asking(ident: str, action: str, tool: str = "Bash", **facts: Any) -> LiveStatus:
    status = {
        "approval": PendingApproval("permission", now() - 100_000, tool, action, certain=True),
        "since": now() - 100_000,
    }
    given = {**status, **facts.pop("status", {}), "evidence": "PermissionRequest hook"}
    return standing(ident, "waiting_approval", pid=48213, status=given, **facts)
