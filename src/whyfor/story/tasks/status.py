"""What became of a task: the last thing that was done or said decides, then silence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from whyfor.model.sessions import SessionBrief
from whyfor.model.tasks import (
    TASK_EVIDENCE,
    TaskAct,
    TaskDecision,
    TaskIssue,
    TaskRun,
    TaskStatement,
    TaskStatus,
)

SILENT_AFTER = 24 * 3_600_000  # ms after which a task that was taken on counts as abandoned
_SAID: dict[str, str] = {
    "start": "claim",
    "done": "close",
    "reject": "reject",
    "abandon": "abandon",
}
_DECIDES: dict[str, TaskStatus] = {
    "claim": "open",
    "close": "complete",
    "reject": "rejected",
    "abandon": "abandoned",
}
_BY = {"person": "person", "tracker": "tracker"}


class RunFacts(msgspec.Struct, frozen=True):
    """A run, and what is known of its session."""

    run: TaskRun
    session: SessionBrief
    ended: bool = False  # a hook said that the session ended, and nothing came after
    committed: bool = False  # a commit came of the run


class TaskJudgement(msgspec.Struct, frozen=True):
    """A status, and what it rests on."""

    status: TaskStatus
    reason: str
    confidence: str
    decisions: tuple[TaskDecision, ...] = ()  # oldest first


class _Step(msgspec.Struct, frozen=True):
    """An act or a statement, in the order of time."""

    at: int
    action: str
    by: str
    evidence: str
    confidence: str
    act: TaskAct | None = None
    session: SessionBrief | None = None
    text: str = ""


def judge_run(facts: RunFacts, now: int) -> TaskJudgement:
    """Return what became of a task in one session."""
    return judge_task([facts], (), None, now)


def judge_task(
    runs: Sequence[RunFacts], said: Iterable[TaskStatement], issue: TaskIssue | None, now: int
) -> TaskJudgement:
    """Return what became of a task: `said` is what was said about it and not about a session of
    it."""
    steps = sorted([*_run_steps(runs), *_said_steps(said)], key=lambda step: step.at)
    status: TaskStatus = "open"
    decided: list[TaskDecision] = []
    last: _Step | None = None
    for step in steps:
        after = _next_status(status, step)
        if after is None:
            continue
        status, last = after, step
        if after != "open":
            decided.append(_decision(after, step))
    status, last = _with_issue(status, last, decided, issue)
    if status != "open":
        reason = _reason(status, last)
        confidence = last.confidence if last else "high"
        return TaskJudgement(status, reason, confidence, tuple(decided))
    return _judge_open(runs, last, decided, now)


def _run_steps(runs: Iterable[RunFacts]) -> list[_Step]:
    found = []
    for facts in runs:
        for act in facts.run.acts:
            by = _BY.get(act.evidence, "agent")
            where = (act, facts.session)
            found.append(_Step(act.at or 0, act.action, by, act.evidence, act.confidence, *where))
    return found


def _said_steps(said: Iterable[TaskStatement]) -> list[_Step]:
    return [
        _Step(each.at, _SAID[each.action], each.by, "person", "high", text=each.text)
        for each in said
        if each.action in _SAID
    ]


def _next_status(before: TaskStatus, step: _Step) -> TaskStatus | None:
    """Return the status after a step; None if it decides nothing."""
    if step.action == "reopen":
        return "rejected" if before == "complete" else "open"
    if step.action == "unclaim":
        objected = step.act is not None and step.act.objected
        return "rejected" if objected or before == "complete" else "abandoned"
    return _DECIDES.get(step.action)


def _with_issue(
    status: TaskStatus, last: _Step | None, decided: list[TaskDecision], issue: TaskIssue | None
) -> tuple[TaskStatus, _Step | None]:
    """Let the tracker decide what sessions and people left open; a person who spoke later wins."""
    if issue is None:
        return status, last
    spoken = last.at if last and last.by == "person" else 0
    closed, reopened = issue.closed_at or issue.read_at, issue.reopened_at or 0
    if issue.closed and status != "complete" and closed >= spoken:
        status, last = "complete", _Step(closed, "close", "tracker", "tracker", "high")
    elif not issue.closed and status == "complete" and reopened > (last.at if last else 0):
        status, last = "rejected", _Step(reopened, "reopen", "tracker", "tracker", "medium")
    else:
        return status, last
    text = issue.close_reason if status == "complete" else ""
    decided.append(_decision(status, last, text))
    return status, last


def _decision(status: TaskStatus, step: _Step, text: str = "") -> TaskDecision:
    act = step.act
    return TaskDecision(
        *(status, step.at or None, step.by, step.evidence, text or step.text),
        *(act.turn if act else 0, act.prompt if act else 0, step.session),
    )


_REASONS = {
    ("complete", "tracker"): "the tracker says it is closed",
    ("complete", "trailer"): "a commit says it closes it",
    ("complete", "person"): "you said it is done",
    ("rejected", "person"): "you said no to it",
    ("rejected", "tracker"): "it is open again after it was closed",
    ("abandoned", "person"): "you said it was given up",
}


def _reason(status: TaskStatus, last: _Step | None) -> str:
    if last is None:
        return ""
    if known := _REASONS.get((status, last.evidence)):
        return known
    if status == "complete":
        return "it was closed in a session"
    if status == "abandoned":
        return "it was given back" if last.action == "unclaim" else "it was given up in a session"
    if last.action == "unclaim":
        return "it was given back after you said no"
    return "it was opened again" if last.action == "reopen" else "it was refused in a session"


def _judge_open(
    runs: Sequence[RunFacts], last: _Step | None, decided: list[TaskDecision], now: int
) -> TaskJudgement:
    """A task that nobody finished is abandoned when its session ended, or is silent for a day. One
    that was only named was never taken on: then a commit is a sign that it was worked on."""
    newest = _last_active(runs)
    if newest is None and last is None:
        return TaskJudgement("open", "nothing is known of it but its name", "low", tuple(decided))
    heard = max(_heard_at(newest), last.at if last else 0)
    ended = newest is not None and newest.ended and heard == newest.session.ended_at
    over = ended or now - heard >= SILENT_AFTER
    claimed = last is not None
    worked_on = not claimed and any(facts.committed for facts in runs)
    if not over or worked_on:
        why = "it was taken on" if claimed else "sessions have its name, none took it on"
        confidence = last.confidence if last else "medium"
        return TaskJudgement("open", why, confidence, tuple(decided))
    why = "its session ended" if ended else f"silent for {_days(now - heard)}"
    gone = TaskDecision("abandoned", heard or None, "silence", "silence", why)
    return TaskJudgement("abandoned", why, "medium" if claimed else "low", (*decided, gone))


def _last_active(runs: Sequence[RunFacts]) -> RunFacts | None:
    """Return the run whose session was heard of last; None if no session was."""
    active = [facts for facts in runs if facts.session.ended_at is not None]
    return max(active, key=_heard_at, default=None)


def _heard_at(facts: RunFacts | None) -> int:
    """Return when a run's session was last heard of; 0 if never."""
    return (facts.session.ended_at or 0) if facts else 0


def _days(span: int) -> str:
    days = span // (24 * 3_600_000)
    return "a day" if days <= 1 else f"{days} days"


def evidence_of(runs: Iterable[RunFacts], said: Iterable[TaskStatement]) -> tuple[str, ...]:
    """Return where a task is known from, strongest first."""
    found = {act.evidence for facts in runs for act in facts.run.acts}
    found |= {"person" for each in said if each.by == "person"}
    return tuple(each for each in TASK_EVIDENCE if each in found)
