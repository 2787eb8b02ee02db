"""What open sessions do now, as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.status import LiveStatus, PendingApproval
from whyfor.model.wire.base import copy_fields
from whyfor.model.wire.sessions import WireSession, session_place


class WireApproval(msgspec.Struct, frozen=True):
    kind: str
    asked_at: str | None
    tool: str | None
    action: str | None
    path: str | None
    call: str | None
    subagent: str | None
    cut: bool
    certain: bool


class WireStatus(msgspec.Struct, frozen=True):
    """What an open session does now, and how we know."""

    agent: str
    session_id: str
    parent_session_id: str | None
    project: str | None
    branch: str | None
    title: str | None
    phase: str
    evidence: str
    confidence: str
    since: str | None
    heard_at: str | None
    activity: str | None
    approval: WireApproval | None
    questions: list[str]
    subagent: bool
    interrupted: bool
    failed: str | None
    activity_at: str | None
    summary: str | None
    pid: int | None


class WireStatuses(msgspec.Struct, frozen=True):
    sessions: list[WireStatus]


class WireSessionDetail(msgspec.Struct, frozen=True):
    session: WireSession
    subagents: list[WireSession]
    status: WireStatus | None  # null: it is not open


def wire_status(found: LiveStatus) -> WireStatus:
    return copy_fields(WireStatus, found.status, **status_fields(found))


def status_fields(found: LiveStatus) -> dict[str, Any]:
    own = found.session
    approval = found.status.approval
    return {
        **session_place(own),
        "parent_session_id": own.parent_session_id,
        "branch": own.branch,
        "approval": _approval(approval) if approval else None,
        "summary": str(found.summary) if found.summary else None,
        "pid": found.pid,
    }


def _approval(found: PendingApproval) -> WireApproval:
    return copy_fields(WireApproval, found)
