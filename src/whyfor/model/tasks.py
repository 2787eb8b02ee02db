"""Tasks: units of planned work that sessions are captured for, and what became of each."""

from __future__ import annotations

from typing import Literal

import msgspec

from whyfor.model.cost import Cost
from whyfor.model.sessions import Session, SessionBrief

TaskStatus = Literal["open", "complete", "rejected", "abandoned"]
TASK_STATUSES: tuple[TaskStatus, ...] = ("open", "complete", "rejected", "abandoned")
# What a session did to a task: took it on, finished it, opened it again, gave it back, was refused,
# gave it up, or worked under its name without saying any of this.
TaskAction = Literal["claim", "close", "reopen", "unclaim", "reject", "abandon", "name"]
# Where that is known from, strongest first.
TASK_EVIDENCE = ("person", "tracker", "command", "tool", "shell", "trailer", "branch", "url", "key")
# What people and programs say of a task, in the order of the word in `whyfor task`.
TaskSaying = Literal["start", "done", "reject", "abandon", "add", "remove"]
TASK_SAYINGS: tuple[TaskSaying, ...] = ("start", "done", "reject", "abandon", "add", "remove")
KEY_MAX = 200  # characters


class TaskAct(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened to a task in a session."""

    action: TaskAction
    at: int | None
    seq: int
    turn: int
    evidence: str  # of TASK_EVIDENCE
    confidence: str  # high | medium | low
    prompt: int = 0  # the person's last prompt before it; 0: there is none
    objected: bool = False  # a person had just denied a request, or said that it was wrong
    source: str = ""  # the tracker, if it is known


class TaskRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of one session that was spent on a task: from claim to close, or to its end."""

    key: str
    first_seq: int
    last_seq: int
    first_turn: int
    last_turn: int
    acts: tuple[TaskAct, ...]  # in order

    @property
    def turns(self) -> int:
        return self.last_turn - max(self.first_turn, 1) + 1


class TaskIssue(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a tracker says of a task."""

    project: str  # identity
    key: str
    source: str  # beads
    title: str = ""
    status: str = ""  # the tracker's own word
    assignee: str = ""
    started_at: int | None = None
    closed_at: int | None = None
    close_reason: str = ""
    closed_by: str = ""  # the id of the session that closed it
    reopened_at: int | None = None  # when it was first seen open again after it was closed
    read_at: int = 0

    @property
    def closed(self) -> bool:
        return self.status in ("closed", "done")


class TaskStatement(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a person or a program says of a task; with a session, of its part in it."""

    key: str
    at: int
    action: TaskSaying
    project: str = ""  # identity; empty: whichever has it
    agent: str = ""
    session_id: str = ""
    by: str = "person"  # person, an agent, or trailer: of a commit's message
    text: str = ""  # why, or the commit


class StoredRun(msgspec.Struct, frozen=True):
    """A run with the session it is of."""

    run: TaskRun
    session: int  # number
    project: str | None  # identity


class TaskDecision(msgspec.Struct, frozen=True):
    """When a task became complete, rejected or abandoned, and whose words did it."""

    status: TaskStatus
    at: int | None
    by: str  # person | agent | tracker | silence
    evidence: str
    text: str = ""  # the words, as far as they are kept
    turn: int = 0
    seq: int = 0
    session: SessionBrief | None = None


class TaskSession(msgspec.Struct, frozen=True):
    """A session's part in a task."""

    session: Session
    run: TaskRun
    status: TaskStatus
    evidence: str
    confidence: str
    cost: Cost


class TaskCommit(msgspec.Struct, frozen=True):
    """A commit that came of a task."""

    sha: str
    subject: str
    committed_at: int
    evidence: str
    confidence: str


class TrackedTask(msgspec.Struct, frozen=True):
    """A task with all that is known of it."""

    key: str
    project: str | None  # identity
    title: str  # empty if no tracker says it
    source: str  # beads, or empty
    status: TaskStatus
    reason: str  # why it is that, in words
    confidence: str
    evidence: tuple[str, ...]  # of TASK_EVIDENCE, strongest first
    who: str  # whom the tracker names; empty if unknown
    agents: tuple[str, ...]
    sessions: int
    commits: int
    turns: int
    cost: Cost
    unknown_cost: int  # sessions of which no price is known
    first_at: int | None
    last_at: int | None


class TaskCounts(msgspec.Struct, frozen=True):
    """How many tasks there are of each status, and how many sessions belong to none."""

    open: int = 0
    complete: int = 0
    rejected: int = 0
    abandoned: int = 0
    sessions: int = 0
    without: int = 0  # sessions that belong to no task

    @property
    def tasks(self) -> int:
        return self.open + self.complete + self.rejected + self.abandoned


class TaskView(msgspec.Struct, frozen=True):
    """One task, whole."""

    task: TrackedTask
    sessions: list[TaskSession]  # newest first
    commits: list[TaskCommit]  # newest first
    decisions: list[TaskDecision]  # newest first
    said: list[TaskStatement]  # in order
    worked: int  # ms in which agents did something, as far as known
    issue: TaskIssue | None = None


def said_id(said: TaskStatement) -> tuple[str, str, int, str, str, str]:
    """Return what tells a statement from all others."""
    return said.project, said.key, said.at, said.action, said.agent, said.session_id
