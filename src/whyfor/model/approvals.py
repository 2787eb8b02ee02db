"""Approvals on record: what agents asked to be allowed, who answered, and how that is known."""

from __future__ import annotations

from typing import Literal

import msgspec

ApprovalOutcome = Literal["waiting", "allowed", "denied", "unanswered"]
Answerer = Literal["terminal", "browser", "rule", "agent", "nobody", "unknown"]
ANSWERED = "WhyforAnswer"  # the event under which the server writes down an answer
DECIDED = "WhyforDecision"  # and that under which it writes down what telemetry tells of one


class ToldDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's telemetry tells of a decision: by a person, its settings or another hook."""

    agent: str
    session_id: str
    at: int  # when it was decided, in ms
    allowed: bool
    by: Answerer  # terminal, agent or nobody
    source: str = ""  # the agent's own word for who decided
    call: str = ""  # the agent's id of the call
    tool: str = ""
    action: str = ""
    reason: str = ""


class ApprovalDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and what came of it."""

    agent: str
    session_id: str
    asked_at: int
    tool: str | None = None
    action: str | None = None  # the exact command, or the path
    cwd: str | None = None
    call: str | None = None
    subagent: str | None = None
    decision: ApprovalOutcome = "waiting"
    by: Answerer = "unknown"
    answered_at: int | None = None
    exact: bool = False  # whether it was answered just then, or at the latest then
    evidence: str = ""  # how we know
    rule: str = ""  # the rule that answered, or would have
    dry: str = ""  # what rules said without answering: allow | deny | ask | never | abstain
    reason: str = ""  # why the agent or a rule said so

    @property
    def waited_ms(self) -> int | None:
        """How long it waited, at most; None while it waits."""
        return None if self.answered_at is None else max(0, self.answered_at - self.asked_at)


class ListedApproval(msgspec.Struct, frozen=True, kw_only=True):
    """A decision with the session it was asked in."""

    id: int
    decision: ApprovalDecision
    title: str | None = None
    project: str | None = None  # its identity


class ApprovalQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which decisions are asked for, newest first."""

    agent: str | None = None
    since: int | None = None
    decision: str = ""
    by: str = ""
    project: str = ""
    before: tuple[int, int] | None = None  # asked_at and id of the last one that was shown
    limit: int | None = 50


class ChangedSession(msgspec.Struct, frozen=True):
    """A session of which something was read since its approvals were written down."""

    agent: str
    session_id: str
    number: int | None  # None: only hooks told of it yet
    last_seq: int


def action_digest(action: str) -> str:
    """Return a short name of an action, to compare what was shown with what is answered."""
    from hashlib import sha256  # here: OpenSSL takes longer to load than most runs take

    return sha256(action.encode("utf-8", "surrogatepass")).hexdigest()[:24]
