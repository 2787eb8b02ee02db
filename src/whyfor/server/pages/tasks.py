"""Tasks: what sessions were for, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from litestar import get, post
from litestar.params import QueryParameter
from litestar.response import Redirect, Template

from whyfor.config import Settings
from whyfor.model.errors import BadInput, NotFound, WhyforError
from whyfor.model.tasks import TASK_STATUSES, TaskCounts, TaskSaying, TaskView
from whyfor.model.text import one_line
from whyfor.server.forms import FormData, go_to
from whyfor.server.page import Kept, render_page
from whyfor.server.pages.sessions import SINCE, Short, Word
from whyfor.service.agents import agent_title, agents_shown
from whyfor.service.session_list import chosen_rows
from whyfor.service.tasks import (
    SpokenTask,
    TaskList,
    TaskRequest,
    add_to_task,
    remove_from_task,
    say_task,
    task_list,
    task_view,
)

STATUSES = {
    "": "All",
    "open": "In progress",
    "complete": "Complete",
    "rejected": "Rejected",
    "abandoned": "Abandoned",
}
MARKS = {
    "open": ("is-yours", "o-half", "In progress"),
    "complete": ("is-fine", "s-ok", "Complete"),
    "rejected": ("is-wrong", "o-no", "Rejected"),
    "abandoned": ("", "o-left", "Abandoned"),
}
_DECIDED = {"complete": "Accepted", "rejected": "Rejected", "abandoned": "Abandoned"}
_TOLD = {
    "person": "you",
    "tracker": "beads",
    "command": "whyfor task",
    "tool": "beads’ tools",
    "shell": "bd commands",
    "trailer": "commit message",
    "branch": "branch name",
    "url": "a link in a prompt",
    "key": "a prompt",
}
_SAYINGS: dict[str, TaskSaying] = {
    "open": "start",
    "complete": "done",
    "rejected": "reject",
    "abandoned": "abandon",
}
_DEFAULT_SINCE = "90d"
_MOST = 300  # sessions at once
_NAMES = {"q": "words", "status": "status", "who": "person", "agent": "agent", "since": "since"}
Status = Annotated[str, QueryParameter(max_length=40, name="status")]
Chosen = Annotated[list[str] | None, QueryParameter(name="s", max_items=_MOST)]


class StatusForm(msgspec.Struct, frozen=True):
    """What a person says a task is."""

    status: str
    key: str
    project: str = ""
    text: str = ""
    back: str = ""


class MoveForm(msgspec.Struct, frozen=True):
    """A session that belongs to another task, or to none."""

    key: str
    session: str
    to: str = ""
    back: str = ""


class AddForm(msgspec.Struct, frozen=True):
    """Sessions for a task, as agent:id, one in a line."""

    key: str
    sessions: str


@get("/tasks", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    project: Word = "",
    q: Short = "",
    status_name: Status = "",
    who: Short = "",
    agent: Short = "",
    since: Short = _DEFAULT_SINCE,
    after: Short = "",
    at: Short = "",
    of: Word = "",
    did: Short = "",
) -> Template:
    asked = TaskRequest(
        identity=project,
        q=q.strip(),
        status=status_name,
        who=who,
        agent=agent,
        since="" if since == "all" else since,
        after=after,
    )
    link = _linker(asked, {"at": at, "of": of})
    found = _found(settings, asked)
    if found and found.rows and not at:
        at, of = found.rows[0].key, found.rows[0].project or ""
    view = _chosen(settings, at, of)
    return render_page(
        "tasks.html",
        here="tasks",
        asked=asked,
        found=found,
        view=view,
        took=_took(view) if view else "",
        told=_told(view) if view else "",
        bars=_bars(found.counts) if found else [],
        choices=_choices(settings, found),
        statuses=STATUSES,
        marks=MARKS,
        decided=_DECIDED,
        link=link,
        back=link(at=view.task.key, of=view.task.project or "") if view else link(),
        clear=_linker(TaskRequest(identity=project), {})(since="all"),
        drops=_drops(asked, link),
        did={"status": "Saved. The old status is in its history.", "move": "Moved."}.get(did, ""),
    )


def _found(settings: Settings, asked: TaskRequest) -> TaskList | None:
    """Return a page of tasks; None if nothing is kept at all."""
    try:
        return task_list(settings, asked)
    except NotFound:
        if asked.identity:
            raise
        return None


def _chosen(settings: Settings, key: str, project: str) -> TaskView | None:
    try:
        return task_view(settings, key, project) if key else None
    except WhyforError:
        return None  # its last session was forgotten since


# -- actions -------------------------------------------------------------------------------------


@post("/tasks/status", include_in_schema=False, sync_to_thread=True)
def change_status(settings: Kept, data: FormData[StatusForm]) -> Redirect:
    if data.status not in TASK_STATUSES:
        raise BadInput("no such status", f"One of: {', '.join(TASK_STATUSES)}.")
    spoken = SpokenTask(data.key, _SAYINGS[data.status], text=data.text, project=data.project)
    say_task(settings, spoken)
    return _done("status", data.back)


@post("/tasks/move", include_in_schema=False, sync_to_thread=True)
def move_session(settings: Kept, data: FormData[MoveForm]) -> Redirect:
    """Take a session out of a task, and put it into another if one is named."""
    remove_from_task(settings, data.key, [data.session])
    if data.to.strip():
        add_to_task(settings, data.to, [data.session])
    return _done("move", data.back)


@get("/sessions/task", include_in_schema=False, sync_to_thread=True)
def choose_task(settings: Kept, chosen: Chosen = None) -> Template:
    """Ask which task the selected sessions worked on."""
    if not chosen:
        raise BadInput("no session is chosen", "Choose some in the list.")
    rows = chosen_rows(settings, chosen)
    tasks = task_list(settings, TaskRequest(), limit=_MOST).rows
    return render_page("sessions/task.html", here="sessions", rows=rows, tasks=tasks)


@post("/sessions/added", include_in_schema=False, sync_to_thread=True)
def add_chosen(settings: Kept, data: FormData[AddForm]) -> Redirect:
    said = add_to_task(settings, data.key, data.sessions.splitlines())
    return go_to("/tasks?" + urlencode({"since": "all", "at": said[0].key}), "/tasks")


def _done(did: str, back: str) -> Redirect:
    path, _, query = back.partition("?")
    kept = [part for part in query.split("&") if part and not part.startswith("did=")]
    return go_to(f"{path}?{'&'.join([*kept, f'did={did}'])}", "/tasks")


# -- parts of the page ---------------------------------------------------------------------------


def _linker(asked: TaskRequest, more: dict[str, str]) -> Callable[..., str]:
    def link(**changed: str) -> str:
        """This page with something changed."""
        given = msgspec.structs.asdict(asked) | {"since": asked.since or "all"}
        given["project"] = given.pop("identity")
        if given["since"] == _DEFAULT_SINCE:
            given["since"] = ""
        given |= more | changed
        return "/tasks?" + urlencode({name: value for name, value in given.items() if value})

    return link


def _choices(settings: Settings, found: TaskList | None) -> dict[str, list[tuple[str, str]]]:
    people = found.people if found else ()
    since = {**{name: word for name, word in SINCE.items() if name}, _DEFAULT_SINCE: "90 days"}
    return {
        "who": [("", "Anyone"), *((name, one_line(name)) for name in people)],
        "agent": [("", "Any"), *((name, agent_title(name)) for name in agents_shown(settings))],
        "since": [*since.items(), ("all", "Any time")],
    }


def _drops(asked: TaskRequest, link: Callable[..., str]) -> list[tuple[str, str]]:
    """Return which filter to drop, and where that leads."""
    found = []
    for name, value in asked.filters.items():
        without = "all" if name == "since" else ""
        words = f"Without {_NAMES[name]} {one_line(value)}"
        found.append((words, link(**{name: without, "after": ""})))
    return found


def _bars(counts: TaskCounts) -> list[tuple[str, float, float]]:
    """Return the class, place and width of each part of the bar, of 270."""
    numbers = (counts.complete, counts.rejected, counts.abandoned, counts.open)
    total = max(1, sum(numbers))
    found, at = [], 0.0
    for name, number in zip(("1", "2", "3", "0"), numbers, strict=True):
        width = 270 * number / total
        if number:
            found.append((name, round(at, 1), round(max(width - 1, 1), 1)))
        at += width
    return found


def _took(view: TaskView) -> str:
    task = view.task
    parts = [f"{task.turns:,} turn{'' if task.turns == 1 else 's'}"]
    if view.worked:
        parts.append(f"{max(1, round(view.worked / 60_000)):,} min of work")
    if task.first_at and task.last_at:
        days = (task.last_at - task.first_at) // 86_400_000 + 1
        parts.append(f"{days:,} day{'' if days == 1 else 's'}")
    return ", ".join(parts)


def _told(view: TaskView) -> str:
    names = list(dict.fromkeys(_TOLD[each] for each in view.task.evidence)) or ["unknown"]
    listed = " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
    return f"{listed}, {view.task.confidence}"


router = [show, change_status, move_session, choose_task, add_chosen]
