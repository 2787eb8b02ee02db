"""Tasks: a list, and one of them."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from whyfor.model.tasks import TASK_STATUSES
from whyfor.model.wire.tasks import WireTasks, WireTaskView, wire_task_view, wire_tasks
from whyfor.server.api.params import After, Agent, Limit, Project, Text, When, reading_route
from whyfor.server.page import Kept
from whyfor.service.tasks import TaskRequest, task_list, task_view

Status = Annotated[
    str | None,
    QueryParameter(max_length=40, name="status", description=f"{', '.join(TASK_STATUSES)}."),
]
Key = Annotated[str, QueryParameter(min_length=1, max_length=200, description="A task's id.")]


@reading_route("/tasks")
def list_tasks(
    settings: Kept,
    project: Project = None,
    status_name: Status = None,
    agent: Agent = None,
    who: Text = None,
    since: When = None,
    q: Text = None,
    limit: Limit = 50,
    after: After = None,
) -> WireTasks:
    """Tasks, the one worked on last first."""
    asked = TaskRequest(
        identity=project or "",
        q=q or "",
        status=status_name or "",
        who=who or "",
        agent=agent or "",
        since=since or "",
        after=after or "",
    )
    found = task_list(settings, asked, limit)
    return wire_tasks(found.rows, found.fits, found.counts, found.next)


@reading_route("/task")
def one_task(settings: Kept, key: Key, project: Project = None) -> WireTaskView:
    """One task: its sessions, commits and decisions."""
    return wire_task_view(task_view(settings, key, project or ""))


HANDLERS = [list_tasks, one_task]
