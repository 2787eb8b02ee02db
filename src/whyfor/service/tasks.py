"""tasks: list them with what became of each, look at one, and say what is so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture.recover import writing
from whyfor.capture.spool import named_sessions
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.locks import LOCK_WAIT
from whyfor.model.cursor import open_cursor, seal_cursor
from whyfor.model.errors import Ambiguous, BadInput, NotFound
from whyfor.model.listing import ListFilter
from whyfor.model.query import SessionFilter
from whyfor.model.tasks import (
    KEY_MAX,
    TASK_STATUSES,
    TaskCounts,
    TaskSaying,
    TaskStatement,
    TaskView,
    TrackedTask,
)
from whyfor.model.times import parse_when, wall_clock
from whyfor.store.journal import TaskEntry
from whyfor.store.open import OpenStore, journal, reading
from whyfor.store.protocol import SharedStore, Store
from whyfor.story.repositories import ensure_project
from whyfor.story.session_lookup import parse_filters
from whyfor.story.tasks.board import (
    TaskParts,
    count_task,
    load_tasks,
    spelled_keys,
    view_task,
)
from whyfor.story.tasks.scan import scan_tasks

PAGE = 50
ANY_TASK = "*"  # in place of a task: any
_At = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Text = Annotated[str, msgspec.Meta(max_length=500)]
_LIKE_MAX = 20  # tasks that a beginning of a key may mean


class TaskRequest(msgspec.Struct, frozen=True):
    """Which tasks are asked for, as in the page's address."""

    project: str = ""  # as people give it
    identity: str = ""  # a project's, exactly
    q: str = ""  # words of its key or title
    status: str = ""  # of TASK_STATUSES
    who: str = ""
    agent: str = ""
    since: str = ""
    after: str = ""

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set, in the order in which one would drop them."""
        names = ("q", "status", "who", "agent", "since")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


class TaskList(msgspec.Struct, frozen=True):
    """A page of tasks, the one worked on last first."""

    rows: list[TrackedTask]
    fits: int  # how many fit the filters
    counts: TaskCounts  # of those in the period
    next: str | None  # cursor of the page after
    sources: tuple[str, ...]  # trackers that were read
    people: tuple[str, ...]
    known: int  # tasks there are at all


def task_list(settings: Settings, asked: TaskRequest, limit: int = PAGE) -> TaskList:
    """Return a page of tasks; raises BadInput for a filter that makes no sense, NotFound for a
    project that is not known."""
    with reading(settings) as store:
        return list_tasks(store, asked, wall_clock(), limit)


def list_tasks(store: OpenStore, asked: TaskRequest, now: int, limit: int = PAGE) -> TaskList:
    """Return a page of the tasks of a store."""
    _check(asked)
    where = SessionFilter(project=asked.project or None, identity=asked.identity or None)
    projects = parse_filters(store, where).projects
    since = _since(asked.since)
    known = load_tasks(store, now, projects=projects)
    within = [task for task in known if since is None or (task.last_at or 0) >= since]
    fitting = [task for task in within if _fits(task, asked)]
    place = open_cursor(asked.after, tuple[_At, _Text, _Text]) if asked.after else None
    after = [task for task in fitting if place is None or _place(task) > _order(place)]
    page = after[:limit]
    sources = {task.issue.source for task in known if task.issue}
    people = {task.issue.assignee for task in known if task.issue and task.issue.assignee}
    return TaskList(
        rows=[count_task(store, task) for task in page],
        fits=len(fitting),
        counts=_counts(store, within, projects, since),
        next=_cursor(page[-1]) if len(after) > limit else None,
        sources=tuple(sorted(sources)),
        people=tuple(sorted(people)),
        known=len(known),
    )


def _check(asked: TaskRequest) -> None:
    if asked.status and asked.status not in TASK_STATUSES:
        raise BadInput(f"no task is {asked.status[:40]!r}", f"One of: {', '.join(TASK_STATUSES)}.")
    if asked.agent and asked.agent not in AGENTS:
        raise BadInput(f"no such agent: {asked.agent[:40]}", f"Agents: {', '.join(AGENTS)}.")


def _since(text: str) -> int | None:
    return parse_when(text, datetime.now().astimezone()) if text else None


def _fits(task: TaskParts, asked: TaskRequest) -> bool:
    words = asked.q.lower().split()
    text = f"{task.key} {task.title}".lower()
    if not all(word in text for word in words):
        return False
    if asked.status and task.judgement.status != asked.status:
        return False
    if asked.who and (task.issue is None or task.issue.assignee != asked.who):
        return False
    return not asked.agent or any(each.session.agent == asked.agent for each in task.runs)


def _place(task: TaskParts) -> tuple[int, str, str]:
    return -(task.last_at or 0), task.key, task.project or ""


def _order(place: tuple[int, str, str]) -> tuple[int, str, str]:
    return -place[0], place[1], place[2]


def _cursor(task: TaskParts) -> str:
    return seal_cursor((task.last_at or 0, task.key, task.project or ""))


def _counts(
    store: SharedStore,
    tasks: Iterable[TaskParts],
    projects: tuple[int, ...] | None,
    since: int | None,
) -> TaskCounts:
    of_status = dict.fromkeys(TASK_STATUSES, 0)
    for task in tasks:
        of_status[task.judgement.status] += 1
    which = ListFilter(projects=projects, since=since)
    rows = store.listing.count(which)
    with_task = store.listing.count(msgspec.structs.replace(which, task=ANY_TASK))
    return TaskCounts(**of_status, sessions=rows, without=rows - with_task)


# -- one task ------------------------------------------------------------------------------------


def task_view(settings: Settings, key: str, project: str = "") -> TaskView:
    """Return the task with this key, or the only one whose key begins so. Raises NotFound, or
    Ambiguous if several fit; `project` (an identity) chooses among projects."""
    with reading(settings) as store:
        return one_task(store, key, wall_clock(), project)


def one_task(store: SharedStore, key: str, now: int, project: str = "") -> TaskView:
    """Return a task of a store, as `task_view` does."""
    return view_task(store, _find(store, key, now, project), now)


def _find(store: SharedStore, key: str, now: int, project: str) -> TaskParts:
    like = spelled_keys(store, key) or store.tasks.keys_like(key, _LIKE_MAX)
    found = load_tasks(store, now, keys=like) if key and like else []
    if project:
        found = [task for task in found if task.project == project]
    if not found:
        raise NotFound(f"no task is called {key[:80]!r}", "List them: whyfor tasks")
    if len({task.key for task in found}) > 1:
        names = ", ".join(sorted({task.key for task in found})[:5])
        raise Ambiguous(f"several tasks begin with {key!r}: {names}", "Give more of it.")
    return found[0]


# -- what people say -----------------------------------------------------------------------------


class SpokenTask(msgspec.Struct, frozen=True):
    """What somebody says of a task, as given."""

    key: str
    action: TaskSaying
    session: str = ""  # a session, as people name it
    text: str = ""  # why
    project: str = ""  # identity


def say_task(settings: Settings, spoken: SpokenTask, cwd: Path | None = None) -> TaskStatement:
    """Keep what was said of a task. It is about the session that is given, else about the one
    that this runs in, else about the task in the project of a folder."""
    key = _clean_key(spoken.key)
    own = next(iter(named_sessions(settings.env)), None)
    with writing(settings, LOCK_WAIT) as store:
        name = _session_name(store, spoken.session) or own or ("", "")
        project = spoken.project
        if not project and name == ("", "") and cwd is not None:
            project = ensure_project(store, journal(settings), name_place(cwd), wall_clock())
        said = TaskStatement(
            key=_known_spelling(store, key),
            at=wall_clock(),
            action=spoken.action,
            project=project,
            agent=name[0],
            session_id=name[1],
            by=own[0] if own and not spoken.session else "person",
            text=spoken.text.strip(),
        )
        return _record(settings, store, [said])[0]


def add_to_task(settings: Settings, key: str, sessions: Sequence[str]) -> list[TaskStatement]:
    """Put sessions (agent:id) into a task, as a person says."""
    return _say_of_sessions(settings, key, "add", sessions)


def remove_from_task(settings: Settings, key: str, sessions: Sequence[str]) -> list[TaskStatement]:
    """Take sessions (agent:id) out of a task, as a person says."""
    return _say_of_sessions(settings, key, "remove", sessions)


def _say_of_sessions(
    settings: Settings, key: str, action: TaskSaying, sessions: Sequence[str]
) -> list[TaskStatement]:
    key = _clean_key(key)
    if not sessions:
        raise BadInput("no session is chosen", "Choose some in the list.")
    with writing(settings, LOCK_WAIT) as store:
        key = _known_spelling(store, key)
        at = wall_clock()
        names = [name for each in sessions if (name := _session_name(store, each))]
        said = [
            TaskStatement(key=key, at=at, action=action, agent=agent, session_id=session_id)
            for agent, session_id in names
        ]
        return _record(settings, store, said)


def _record(settings: Settings, store: Store, said: list[TaskStatement]) -> list[TaskStatement]:
    record = journal(settings)
    with store.transaction(record):
        for each in said:
            record.add(TaskEntry(each))
            store.tasks.state(each)
    scan_tasks(store, settings.tasks.keys)
    return said


def _clean_key(key: str) -> str:
    key = key.strip()
    if (
        not key
        or len(key) > KEY_MAX
        or any(char.isspace() or not char.isprintable() for char in key)
    ):
        raise BadInput("a task's id is one word", "E.g.: whyfor task start SHOP-12")
    return key


def _known_spelling(store: SharedStore, key: str) -> str:
    return next(iter(spelled_keys(store, key)), key)


def _session_name(store: Store, session: str) -> tuple[str, str] | None:
    if not session:
        return None
    agent, _, rest = session.partition(":")
    found = store.sessions.find(rest, agent) if agent in AGENTS else store.sessions.find(session)
    return found.agent, found.session_id
