"""What a live session is doing, with the evidence."""

from __future__ import annotations

import msgspec

from whyfor.model.sessions import Session


class PendingApproval(msgspec.Struct, frozen=True):
    """What the user is asked to allow."""

    kind: str  # permission | plan
    asked_at: int
    tool: str | None = None
    action: str | None = None  # the exact command or other action; None: not known yet
    path: str | None = None
    call: str | None = None
    subagent: str | None = None  # who asks, if it is not the session itself
    cut: bool = False  # the action is longer than what is stored
    certain: bool = True  # False: several calls could be meant


class Status(msgspec.Struct, frozen=True):
    phase: str
    evidence: str
    confidence: str
    since: int | None = None
    heard_at: int | None = None
    activity: str | None = None
    approval: PendingApproval | None = None
    questions: list[str] = []
    subagent: bool = False  # one is at work
    interrupted: bool = False
    failed: str | None = None  # why the last turn did not end as it should
    activity_at: int | None = None  # when the activity started; None: unknown


class Summary(msgspec.Struct, frozen=True):
    """A short summary of a session: plain text, limited in length, one line each."""

    current: str
    recent: str
    prompt: str

    def __str__(self) -> str:
        return f"Current: {self.current}\nRecent: {self.recent}\nLast prompt: {self.prompt}"


class LiveStatus(msgspec.Struct, frozen=True):
    """A session and what it is doing."""

    session: Session
    status: Status
    summary: Summary | None = None  # the last turns in a few lines
    pid: int | None = None  # of the agent, if known
    alive: bool | None = None  # whether that process runs; None: nobody can tell

    @property
    def name(self) -> str:
        return f"{self.session.agent}:{self.session.session_id}"
