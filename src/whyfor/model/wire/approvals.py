"""Approvals and rules, as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.approvals import ListedApproval
from whyfor.model.rules import CommandRule
from whyfor.model.times import to_iso
from whyfor.model.wire.base import copy_fields


class WireApprovalDecision(msgspec.Struct, frozen=True):
    """One request of an agent, and what came of it."""

    agent: str
    session_id: str
    title: str | None
    project: str | None
    tool: str | None
    action: str | None
    cwd: str | None
    call: str | None
    subagent: str | None
    asked_at: str | None
    answered_at: str | None
    exact: bool  # false: it was answered then at the latest
    waited_ms: int | None
    decision: str  # waiting | allowed | denied | unanswered
    by: str  # terminal | browser | rule | agent | nobody | unknown
    evidence: str
    rule: str
    dry: str
    reason: str


class WireRule(msgspec.Struct, frozen=True):
    id: str
    run: list[str]
    project: str
    agents: list[str]
    may: list[str]
    decision: str
    until: str | None
    hits: int
    last_at: str | None


def wire_approval_decision(found: ListedApproval) -> WireApprovalDecision:
    made = found.decision
    return copy_fields(
        WireApprovalDecision,
        made,
        title=found.title,
        project=found.project,
        answered_at=to_iso(made.answered_at),
        waited_ms=made.waited_ms,
    )


def wire_rule(rule: CommandRule, hits: int = 0, last_at: int | None = None) -> WireRule:
    until = rule.until.isoformat() if rule.until else None
    return copy_fields(WireRule, rule, until=until, hits=hits, last_at=to_iso(last_at))


def plain_values(found: msgspec.Struct) -> Any:
    """A report whose fields are its JSON."""
    return msgspec.to_builtins(found)
