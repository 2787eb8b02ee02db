"""All tasks of some projects, put together from runs, statements and issues: on a laptop and on a
server alike, from the store alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from whyfor.agents import AGENTS
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.cost import Cost, cost_of
from whyfor.model.errors import NotFound
from whyfor.model.sessions import SessionBrief
from whyfor.model.stories import CommitFilter
from whyfor.model.tasks import (
    StoredRun,
    TaskCommit,
    TaskDecision,
    TaskIssue,
    TaskSession,
    TaskStatement,
    TaskView,
    TrackedTask,
)
from whyfor.store.protocol import SharedStore
from whyfor.story.tasks.status import (
    RunFacts,
    TaskJudgement,
    evidence_of,
    judge_run,
    judge_task,
)

_LIKE_MAX = 20  # tasks that a beginning of a key may mean
_WORDS_MAX = 400  # characters of what somebody said when a task was decided


class TaskParts(msgspec.Struct, frozen=True):
    """What is known of one task, before it is counted."""

    key: str
    project: str | None
    runs: tuple[RunFacts, ...]
    said: tuple[TaskStatement, ...]
    issue: TaskIssue | None
    judgement: TaskJudgement

    @property
    def mains(self) -> list[str]:
        """The main sessions that worked on it, as agent:id."""
        names = (f"{each.session.agent}:{_main(each.session)}" for each in self.runs)
        return list(dict.fromkeys(names))

    @property
    def last_at(self) -> int | None:
        times = [each.session.ended_at for each in self.runs]
        times += [each.at for each in self.said]
        return max((at for at in times if at is not None), default=None)

    @property
    def title(self) -> str:
        return self.issue.title if self.issue else ""


def _main(session: SessionBrief) -> str:
    return session.parent or session.session_id


def exit_words() -> tuple[str, ...]:
    """Return the words with which the hooks of agents say that a session ended."""
    found = {
        word
        for agent in AGENTS.values()
        for word, meaning in agent.facts.hook_events.items()
        if meaning == "exited"
    }
    return tuple(sorted(found))


def load_tasks(
    store: SharedStore,
    now: int,
    *,
    projects: Iterable[int] | None = None,
    keys: Iterable[str] | None = None,
) -> list[TaskParts]:
    """Return the tasks of these projects (by number), or of these keys, the one worked on last
    first."""
    wanted = None if projects is None else list(projects)
    given = None if keys is None else list(keys)
    runs = store.tasks.runs(projects=wanted, keys=given)
    identities = None if wanted is None else _identities(store, wanted)
    issues = _issues(store, identities)
    said = store.tasks.said(keys=given)
    found = _grouped(store, runs, issues, said, identities, now)
    return sorted(found, key=lambda task: (-(task.last_at or 0), task.key))


def _identities(store: SharedStore, projects: list[int]) -> set[str]:
    return {project.identity for number, project in store.projects.known() if number in projects}


def _issues(store: SharedStore, identities: set[str] | None) -> dict[tuple[str, str], TaskIssue]:
    """Return issues by project and key; of what several people read, the latest."""
    found: dict[tuple[str, str], TaskIssue] = {}
    for issue in store.tasks.issues():
        place = issue.project, issue.key
        if identities is not None and issue.project not in identities:
            continue
        if place not in found or found[place].read_at < issue.read_at:
            found[place] = issue
    return found


def _grouped(
    store: SharedStore,
    runs: Sequence[StoredRun],
    issues: dict[tuple[str, str], TaskIssue],
    said: Sequence[TaskStatement],
    identities: set[str] | None,
    now: int,
) -> list[TaskParts]:
    facts = _facts(store, runs)
    by_task: dict[tuple[str | None, str], list[RunFacts]] = {}
    for each, known in zip(runs, facts, strict=True):
        by_task.setdefault((each.project, each.run.key), []).append(known)
    for spoken in said:  # also of tasks that no session worked on
        chosen = identities is None or spoken.project in identities
        if spoken.project and chosen and not spoken.session_id:
            by_task.setdefault((spoken.project, spoken.key), [])
    found = []
    for (project, key), parts in by_task.items():
        about = [one for one in said if one.key == key and one.project in ("", project)]
        whole = [one for one in about if not one.session_id]
        issue = issues.get((project or "", key))
        judgement = judge_task(parts, whole, issue, now)
        found.append(TaskParts(key, project, tuple(parts), tuple(about), issue, judgement))
    return found


def _facts(store: SharedStore, runs: Sequence[StoredRun]) -> list[RunFacts]:
    numbers = list(dict.fromkeys(each.session for each in runs))
    briefs = {brief.id: brief for brief in store.sessions.briefs(numbers)}
    ended = store.tasks.ended(numbers, exit_words())
    committed = store.checkpoints.committed(numbers)
    return [
        RunFacts(
            each.run,
            briefs[each.session],
            ended=each.session in ended,
            committed=committed.get(each.session, 0) > 0,
        )
        for each in runs
    ]


def spelled_keys(store: SharedStore, key: str) -> list[str]:
    """Return the keys of tasks that are this one but for the case of letters, as it is first."""
    like = store.tasks.keys_like(key, _LIKE_MAX) if key else []
    found = [each for each in like if each.lower() == key.lower()]
    return [key] if key in found else found


def require_key(store: SharedStore, key: str) -> str:
    """Return a task's key as it is stored; raises NotFound if there is no such task."""
    found = spelled_keys(store, key)
    if not found:
        raise NotFound(f"no task is called {key[:80]!r}", "List them: whyfor tasks")
    return found[0]


def task_commits(store: SharedStore, key: str) -> set[str]:
    """Return the commits that came of work on a task; raises NotFound if there is no such task."""
    found: set[str] = set()
    for task in load_tasks(store, 0, keys=[require_key(store, key)]):
        found |= {commit.commit for commit in _commits(store, task)}
    return found


def with_task(store: SharedStore, which: CommitFilter) -> CommitFilter:
    """Return a filter that knows the commits of the task it names; raises NotFound if there is no
    such task."""
    if not which.task:
        return which
    return msgspec.structs.replace(which, commits=frozenset(task_commits(store, which.task)))


# -- one task, counted ---------------------------------------------------------------------------


def count_task(store: SharedStore, task: TaskParts) -> TrackedTask:
    """Return a task with its commits, turns and cost."""
    spans = [(each.session.id, each.run.first_seq, each.run.last_seq) for each in _own(task.runs)]
    costs = [cost_of(store.checkpoints.spent([span])) for span in spans]
    known = [cost.usd for cost in costs if cost.usd is not None]
    issue = task.issue
    first = [act.at for each in task.runs for act in each.run.acts if act.at]
    return TrackedTask(
        key=task.key,
        project=task.project,
        title=task.title,
        source=issue.source if issue else _source(task.runs),
        status=task.judgement.status,
        reason=task.judgement.reason,
        confidence=task.judgement.confidence,
        evidence=evidence_of(task.runs, task.said),
        who=issue.assignee if issue else "",
        agents=tuple(sorted({each.session.agent for each in task.runs})),
        sessions=len(task.mains),
        commits=len(_commits(store, task)),
        turns=sum(each.run.turns for each in _own(task.runs)),
        cost=Cost(sum(known) if known else None, sum(cost.unpriced for cost in costs)),
        unknown_cost=sum(1 for cost in costs if cost.usd is None),
        first_at=min(first, default=None),
        last_at=task.last_at,
    )


def _own(runs: Sequence[RunFacts]) -> list[RunFacts]:
    """Return the runs without those of subagents whose callers have one: theirs counts both."""
    mains = {(each.session.agent, each.session.session_id) for each in runs}
    return [
        each
        for each in runs
        if each.session.parent is None or (each.session.agent, each.session.parent) not in mains
    ]


def _source(runs: Sequence[RunFacts]) -> str:
    return next((act.source for each in runs for act in each.run.acts if act.source), "")


def _commits(store: SharedStore, task: TaskParts) -> list[Checkpoint]:
    """Return the commits that have something of the task's runs, newest first."""
    linked = store.checkpoints.of_sessions([each.session.id for each in task.runs])
    found = [
        commit
        for commit in linked.values()
        if commit.superseded_by is None and any(_overlaps(commit, each) for each in task.runs)
    ]
    return sorted(found, key=lambda commit: (-commit.committed_at, commit.commit))


def _overlaps(commit: Checkpoint, facts: RunFacts) -> bool:
    own = (facts.session.agent, facts.session.session_id)
    for part in commit.parts:
        if (part.agent, part.session_id) != own:
            continue
        for first, last in part.ranges:
            if first <= facts.run.last_seq and last >= facts.run.first_seq:
                return True
    return False


# -- one task, whole -----------------------------------------------------------------------------


def view_task(store: SharedStore, task: TaskParts, now: int) -> TaskView:
    """Return a task with its sessions, commits and decisions, each newest first."""
    commits = [
        TaskCommit(
            *(commit.commit, commit.subject, commit.committed_at),
            *(commit.evidence or "", commit.confidence or ""),
        )
        for commit in _commits(store, task)
    ]
    decisions = [_with_words(store, each) for each in reversed(task.judgement.decisions)]
    return TaskView(
        task=count_task(store, task),
        sessions=_sessions(store, task, now),
        commits=commits,
        decisions=decisions,
        said=list(task.said),
        worked=sum(_worked(store, each) for each in _own(task.runs)),
        issue=task.issue,
    )


def _sessions(store: SharedStore, task: TaskParts, now: int) -> list[TaskSession]:
    known = store.sessions.by_number([each.session.id for each in task.runs])
    found = []
    for each in task.runs:
        run = each.run
        judged = judge_run(each, now)
        found.append(
            TaskSession(
                known[each.session.id],
                run,
                judged.status,
                evidence_of([each], ())[0],
                judged.confidence,
                cost_of(store.checkpoints.spent([(each.session.id, run.first_seq, run.last_seq)])),
            )
        )
    return sorted(found, key=lambda each: -(each.session.ended_at or 0))


def _with_words(store: SharedStore, decision: TaskDecision) -> TaskDecision:
    """Return a decision with the prompt that led to it, if there is one."""
    session = decision.session
    if session is None or not decision.seq or decision.text:
        return decision
    words = store.conversation.openings(session.id, [decision.seq], _WORDS_MAX)
    return msgspec.structs.replace(decision, text=words.get(decision.seq, ""))


def _worked(store: SharedStore, facts: RunFacts) -> int:
    """Return in how much of a run something was said or done, in ms."""
    number, run = facts.session.id, facts.run
    until = store.conversation.time_from(number, run.last_seq)
    if until is None:
        return 0
    times = store.conversation.active_times(number, until, run.first_seq)
    return sum(min(last, until) - first for first, last in times if last > first)
