"""JSON shapes of tasks."""

from __future__ import annotations

import msgspec

from whyfor.model.tasks import (
    TaskCounts,
    TaskDecision,
    TaskSession,
    TaskStatement,
    TaskView,
    TrackedTask,
)
from whyfor.model.times import to_iso
from whyfor.model.wire.sessions import WireCost, wire_cost


class WireTask(msgspec.Struct):
    """A task: a unit of planned work, and what became of it."""

    key: str
    project: str | None
    title: str | None
    source: str | None
    status: str
    reason: str
    confidence: str
    evidence: list[str]
    who: str | None
    agents: list[str]
    sessions: int
    commits: int
    turns: int
    cost: WireCost
    unknown_cost_sessions: int
    first_at: str | None
    last_at: str | None


class WireTaskCounts(msgspec.Struct):
    """How many tasks there are of each status."""

    open: int
    complete: int
    rejected: int
    abandoned: int
    sessions: int
    sessions_without: int


class WireTasks(msgspec.Struct):
    """A page of tasks."""

    tasks: list[WireTask]
    fits: int
    counts: WireTaskCounts
    next: str | None


class WireTaskSession(msgspec.Struct):
    """A session's part in a task."""

    agent: str
    session_id: str
    parent_session_id: str | None
    title: str | None
    first_seq: int
    last_seq: int
    turns: int
    status: str
    evidence: str
    confidence: str
    cost: WireCost
    ended_at: str | None


class WireTaskCommit(msgspec.Struct):
    """A commit that came of a task."""

    sha: str
    subject: str
    committed_at: str | None
    evidence: str
    confidence: str


class WireTaskDecision(msgspec.Struct):
    """When a task became complete, rejected or abandoned, and whose words did it."""

    status: str
    at: str | None
    by: str
    evidence: str
    text: str | None
    turn: int | None
    agent: str | None
    session_id: str | None


class WireTaskStatement(msgspec.Struct):
    """What a person or a program said of a task."""

    action: str
    at: str | None
    by: str
    agent: str | None
    session_id: str | None
    text: str | None


class WireTaskView(msgspec.Struct):
    """One task, whole."""

    task: WireTask
    sessions: list[WireTaskSession]
    commits: list[WireTaskCommit]
    decisions: list[WireTaskDecision]
    said: list[WireTaskStatement]
    worked_ms: int


def wire_task(task: TrackedTask) -> WireTask:
    return WireTask(
        key=task.key,
        project=task.project,
        title=task.title or None,
        source=task.source or None,
        status=task.status,
        reason=task.reason,
        confidence=task.confidence,
        evidence=list(task.evidence),
        who=task.who or None,
        agents=list(task.agents),
        sessions=task.sessions,
        commits=task.commits,
        turns=task.turns,
        cost=wire_cost(task.cost),
        unknown_cost_sessions=task.unknown_cost,
        first_at=to_iso(task.first_at),
        last_at=to_iso(task.last_at),
    )


def wire_tasks(
    tasks: list[TrackedTask], fits: int, counts: TaskCounts, after: str | None
) -> WireTasks:
    counted = WireTaskCounts(
        *(counts.open, counts.complete, counts.rejected, counts.abandoned),
        *(counts.sessions, counts.without),
    )
    return WireTasks([wire_task(task) for task in tasks], fits, counted, after)


def wire_task_view(view: TaskView) -> WireTaskView:
    commits = [
        WireTaskCommit(
            *(each.sha, each.subject, to_iso(each.committed_at), each.evidence, each.confidence)
        )
        for each in view.commits
    ]
    return WireTaskView(
        task=wire_task(view.task),
        sessions=[_session(each) for each in view.sessions],
        commits=commits,
        decisions=[_decision(each) for each in view.decisions],
        said=[wire_task_statement(each) for each in view.said],
        worked_ms=view.worked,
    )


def _session(part: TaskSession) -> WireTaskSession:
    session = part.session
    return WireTaskSession(
        agent=session.agent,
        session_id=session.session_id,
        parent_session_id=session.parent_session_id,
        title=session.title,
        first_seq=part.run.first_seq,
        last_seq=part.run.last_seq,
        turns=part.run.turns,
        status=part.status,
        evidence=part.evidence,
        confidence=part.confidence,
        cost=wire_cost(part.cost),
        ended_at=to_iso(session.ended_at),
    )


def _decision(decision: TaskDecision) -> WireTaskDecision:
    session = decision.session
    return WireTaskDecision(
        *(decision.status, to_iso(decision.at), decision.by, decision.evidence),
        *(decision.text or None, decision.turn or None),
        *((session.agent, session.session_id) if session else (None, None)),
    )


def wire_task_statement(said: TaskStatement) -> WireTaskStatement:
    return WireTaskStatement(
        *(said.action, to_iso(said.at), said.by, said.agent or None, said.session_id or None),
        said.text or None,
    )
