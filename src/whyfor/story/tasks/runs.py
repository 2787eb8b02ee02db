"""The runs of one session: from where it took a task on to where it closed it, with all that says
so. The same material gives the same runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from whyfor.agents.tools import command_of, tool_kind
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.events import StoredEvent
from whyfor.model.memory import WaitingSession
from whyfor.model.tasks import TaskAct, TaskAction, TaskIssue, TaskRun, TaskStatement
from whyfor.story.shell import simple_commands
from whyfor.story.tasks import beads
from whyfor.story.tasks.names import (
    TaskNames,
    branch_tasks,
    keyed_tasks,
    linked_tasks,
    trailer_tasks,
)

_SAID: dict[str, TaskAction] = {
    "start": "claim",
    "done": "close",
    "reject": "reject",
    "abandon": "abandon",
    "add": "name",
}
ENDS = ("close", "unclaim", "reject", "abandon")  # acts that end a run
# How a person begins who does not want what was done.
_OBJECTION = re.compile(
    r"\s*(?:no\b|nope\b|stop\b|wrong\b|don'?t\b|do not\b|undo\b|revert\b|reject|"
    r"take (?:it|that|this) back|that'?s (?:not|wrong)|this is (?:not|wrong)|"
    r"not (?:that|this|like))",
    re.I,
)


class CallResult(msgspec.Struct, frozen=True):
    """How a call ended."""

    seq: int
    text: str
    failed: bool


class TaskMaterial(msgspec.Struct, frozen=True):
    """All that is known of one session and its tasks."""

    session: WaitingSession
    events: list[StoredEvent]  # that may tell of one, in order
    results: Mapping[str, CallResult]  # by the id of their call
    names: TaskNames
    branch: str | None = None
    ended_at: int | None = None
    commits: tuple[Checkpoint, ...] = ()
    said: tuple[TaskStatement, ...] = ()  # about this session
    closed: tuple[TaskIssue, ...] = ()  # that a tracker says it closed


def derive_runs(
    material: TaskMaterial, turns_of: Callable[[int, int], tuple[int, int]]
) -> list[TaskRun]:
    """Return the runs of a session, one for each task. `turns_of` says in which turns a range of
    events begins and ends."""
    by_key: dict[str, list[TaskAct]] = {}
    for key, act in sorted(_acts(material), key=lambda each: (each[1].seq, each[1].action)):
        by_key.setdefault(key, []).append(act)
    left = _removed(material.said)
    ends = sorted(act.seq for acts in by_key.values() for act in acts if act.action == "close")
    runs = []
    for key, acts in by_key.items():
        if key in left:
            continue
        first = _first(acts, material.session, ends)
        last = _last(acts, material.session)
        first_turn, last_turn = turns_of(first, last)
        runs.append(TaskRun(key, first, last, first_turn, last_turn, tuple(acts)))
    return sorted(runs, key=lambda run: (run.first_seq, run.key))


def _removed(said: Iterable[TaskStatement]) -> set[str]:
    """Return the tasks that a person took the session from, and did not give it to again."""
    last = {each.key: each.action for each in said}
    return {key for key, action in last.items() if action == "remove"}


def _first(acts: list[TaskAct], session: WaitingSession, ends: list[int]) -> int:
    """A run begins where the task was taken on; one that was only closed began after what was
    closed before; a name that is no event's holds for the whole session."""
    begun = [act.seq for act in acts if act.action in ("claim", "name")]
    if begun:
        return max(min(begun), session.first_seq)
    closed = acts[0].seq
    before = [seq for seq in ends if seq < closed]
    return max([session.first_seq, *(seq + 1 for seq in before)])


def _last(acts: list[TaskAct], session: WaitingSession) -> int:
    decided = [act for act in acts if act.action != "name"]
    if decided and decided[-1].action in ENDS:
        return min(decided[-1].seq, session.last_seq) or session.last_seq
    return session.last_seq


# -- acts ----------------------------------------------------------------------------------------


def _acts(material: TaskMaterial) -> Iterator[tuple[str, TaskAct]]:
    yield from _of_events(material)
    start = material.session.first_seq
    for key in branch_tasks(material.branch, material.names):
        yield key, TaskAct("name", None, start, 0, "branch", "medium")
    for issue in material.closed:
        place = _place_at(material, issue.closed_at)
        act = TaskAct("close", issue.closed_at, *place, "tracker", "high", source=issue.source)
        yield issue.key, act
    yield from _of_statements(material)
    yield from _of_commits(material)


def _of_statements(material: TaskMaterial) -> Iterator[tuple[str, TaskAct]]:
    for said in material.said:
        action = _SAID.get(said.action)
        if action is None:
            continue
        if said.action == "add":
            place = (material.session.first_seq, 0)
        else:
            place = _place_at(material, said.at)
        evidence = "person" if said.by == "person" else "command"
        evidence = "trailer" if said.by == "trailer" else evidence
        confidence = "medium" if said.by == "trailer" else "high"
        yield said.key, TaskAct(action, said.at, *place, evidence, confidence)


def _of_commits(material: TaskMaterial) -> Iterator[tuple[str, TaskAct]]:
    """Yield what the subjects of linked commits say; the commands that made them say the rest."""
    for commit in material.commits:
        for part in commit.parts:
            own = (part.agent, part.session_id)
            if own != (material.session.agent, material.session.session_id):
                continue
            for key in trailer_tasks(commit.subject, material.names):
                at = commit.committed_at
                yield key, TaskAct("close", at, part.cut, 0, "trailer", "medium")


def _place_at(material: TaskMaterial, at: int | None) -> tuple[int, int]:
    """Return the last event before a time, and its turn; the session's last if it is later."""
    last = (material.session.last_seq, 0)
    if at is None or (material.ended_at is not None and at >= material.ended_at):
        return last
    before = [each for each in material.events if each.created_at and each.created_at <= at]
    if not before:
        return material.session.first_seq, 0
    return before[-1].seq, before[-1].turn


class _Listener:
    """What a person last said, as the events go by."""

    def __init__(self) -> None:
        self.prompt = 0
        self.objected = False

    def hear(self, event: StoredEvent) -> None:
        if event.kind == "user.prompt" and event.actor == "user":
            self.prompt = event.seq
            self.objected = _OBJECTION.match(event.text) is not None
        elif event.kind == "approval.resolved" and event.get("decision") == "denied":
            self.objected = True


def _of_events(material: TaskMaterial) -> Iterator[tuple[str, TaskAct]]:
    listener = _Listener()
    subagent = material.session.subagent
    for event in material.events:
        listener.hear(event)
        if event.kind == "tool.call":
            yield from _of_call(material, event, listener)
        elif event.kind == "user.prompt" and event.actor == "user" and not subagent:
            yield from _of_prompt(event, material.names)


def _of_prompt(event: StoredEvent, names: TaskNames) -> Iterator[tuple[str, TaskAct]]:
    place = (event.created_at, event.seq, event.turn)
    for key in linked_tasks(event.text, names):
        yield key, TaskAct("name", *place, "url", "medium", event.seq)
    for key in keyed_tasks(event.text, names):
        yield key, TaskAct("name", *place, "key", "medium", event.seq)


def _of_call(
    material: TaskMaterial, event: StoredEvent, listener: _Listener
) -> Iterator[tuple[str, TaskAct]]:
    """Yield what a call did with tasks, if it was run and did not fail."""
    result = material.results.get(str(event.get("id") or ""))
    if result is None or result.failed:
        return
    given = event.get("input")
    kind = tool_kind(event.name or "", material.session.agent, given)
    command = command_of(given) if kind in ("shell", "typed") else ""
    yield from _of_beads(event, command, result, listener)
    if "commit" in command:
        place = (event.created_at, result.seq, event.turn)
        for key in trailer_tasks(_message(command), material.names):
            yield key, TaskAct("close", *place, "trailer", "medium", listener.prompt)


def _of_beads(
    event: StoredEvent, command: str, result: CallResult, listener: _Listener
) -> Iterator[tuple[str, TaskAct]]:
    """Yield what a shell command or a tool of beads did with its tasks; nothing if it says that it
    failed."""
    if command:
        calls, evidence = list(beads.shell_calls(command)), "shell"
    else:
        calls, evidence = list(beads.tool_calls(event.name or "", event.get("input"))), "tool"
    if not calls or beads.says_error(result.text):
        return
    for call in calls:
        act = TaskAct(
            *(call.action, event.created_at, result.seq, event.turn, evidence),
            *("medium" if call.hidden else "high", listener.prompt, listener.objected),
            beads.SOURCE,
        )
        if key := call.key or beads.claimed_key(result.text):
            yield key, act


def _message(command: str) -> str:
    """Return the words of a commit message that a command gives to git."""
    found = []
    for one in simple_commands(command):
        if one.name == "git" and "commit" in one.words:
            found += [word for word in one.words if not word.startswith("-") and " " in word]
    if found and "<<" in command:
        found.append(command)
    return "\n".join(found)
