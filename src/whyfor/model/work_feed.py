"""The work feed: what happened in all sessions, one line each."""

from __future__ import annotations

from typing import Literal

import msgspec

WorkKind = Literal["prompt", "question", "approval", "failure", "commit", "done", "attention"]
WORK_KINDS: tuple[WorkKind, ...] = (
    "prompt",
    "question",
    "approval",
    "failure",
    "commit",
    "done",
    "attention",
)
WorkState = Literal["", "waiting", "testing", "failing"]
WORK_STATES: tuple[WorkState, ...] = ("waiting", "testing", "failing")


class WorkEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in a session, in one line."""

    at: int
    kind: WorkKind
    text: str
    agent: str | None = None
    session_id: str | None = None
    title: str | None = None
    project: str | None = None  # its identity
    seq: int | None = None  # the event that shows it
    sha: str | None = None  # of a commit
    # of an approval: waiting, allowed, denied …; of what needs attention: its level
    state: str = ""
    times: int = 1  # the same again and again

    @property
    def key(self) -> tuple[object, ...]:
        """By which it is known again when the feed is read a second time."""
        return self.kind, self.agent, self.session_id, self.seq, self.sha, self.at


class WorkQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are asked for."""

    since: int
    kinds: tuple[WorkKind, ...] = ()  # empty: all
    project: str | None = None  # part of its identity
    agent: str | None = None
    task: str | None = None  # of sessions that worked on it, and commits that came of that
    only: WorkState = ""  # of sessions that wait for a person, run tests, or had failures
    limit: int = 50


class FailedEvent(msgspec.Struct, frozen=True):
    """A failed call or an error, with its place in the session."""

    seq: int
    at: int | None
    kind: str  # of the event
    text: str  # how it begins
    exit_code: int | None = None
