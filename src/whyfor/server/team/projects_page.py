"""The first page of the team server: the projects somebody is a member of."""

from __future__ import annotations

import msgspec
from litestar import get, post
from litestar.params import FromQuery
from litestar.response import Redirect, Template

from whyfor.model.accounts import ProjectFigures, ProjectStanding, TeamToken
from whyfor.model.times import DAY
from whyfor.server.forms import FormData
from whyfor.server.page import render_page
from whyfor.server.team.context import Asked, SignedIn
from whyfor.team.access import MANAGE_TEAM, MEMBER
from whyfor.team.projects import create_project

_LATE = 3 * DAY  # ms without a word from a device
_STORIES = 10
_SORTS = {"last": "Last change", "name": "Name"}


class ProjectRow(msgspec.Struct, frozen=True):
    project: ProjectStanding
    week: tuple[int, ...]  # commits with a story, the oldest day first
    agents: tuple[str, ...]
    people: tuple[str, ...]
    last_at: int | None
    late: bool


class NewProjectForm(msgspec.Struct, frozen=True):
    form: str
    name: str = ""


@get("/projects", opt={"access": MEMBER}, include_in_schema=False, sync_to_thread=True)
def projects_page(
    context: Asked, member: SignedIn, q: FromQuery[str] = "", sort: FromQuery[str] = "last"
) -> Template:
    now = context.resources.now()
    with context.actor.reading() as accounts:
        projects = accounts.projects()
        figures = {each.project: each for each in accounts.figures(now - 30 * DAY)}
        commits = accounts.commits_by_day(now - 7 * DAY)
        names = accounts.names()
        stories = accounts.stories(_STORIES)
        devices = accounts.tokens() if member.is_manager else []
    rows = [_row(project, figures, commits, names, now) for project in projects]
    shown = [row for row in rows if q.lower() in row.project.name.lower()]
    if sort != "name":
        shown.sort(key=lambda row: row.last_at or 0, reverse=True)
    return render_page(
        "projects.html",
        here="projects",
        rows=shown,
        asked={"q": q, "sort": sort if sort in _SORTS else "last"},
        sorts=list(_SORTS.items()),
        total=sum(1 for project in projects if project.role),
        commits=sum(commits.values()),
        authors=len({name for row in rows for name in row.people}),
        stories=stories,
        names={project.id: project.name for project in projects},
        late=_late(devices, now),
        may_create=member.is_manager and member.projects is None,
    )


@post("/projects/new", opt={"access": MANAGE_TEAM}, include_in_schema=False, sync_to_thread=True)
def new_project(context: Asked, data: FormData[NewProjectForm]) -> Redirect:
    number = create_project(context.actor, data.name)
    return Redirect(f"/projects/{number}/settings", status_code=303)


def _row(
    project: ProjectStanding,
    figures: dict[int, ProjectFigures],
    commits: dict[tuple[int, int], int],
    names: dict[int, str],
    now: int,
) -> ProjectRow:
    known = figures.get(project.id)
    today = now // DAY
    week = tuple(commits.get((project.id, day), 0) for day in range(today - 6, today + 1))
    if known is None:
        return ProjectRow(project, week, (), (), None, False)
    people = tuple(names[person] for person in known.people if person in names)
    late = known.last_at is not None and known.last_at < now - _LATE
    return ProjectRow(project, week, known.agents, people, known.last_at, late)


def _late(tokens: list[TeamToken], now: int) -> list[TeamToken]:
    """Return the devices that have not been heard of for days."""
    devices = [token for token in tokens if token.kind == "device" and token.revoked_at is None]
    return [
        device for device in devices if (device.last_used_at or device.created_at) < now - _LATE
    ]


@get("/", opt={"access": MEMBER}, include_in_schema=False, sync_to_thread=False)
def first_page() -> Redirect:
    return Redirect("/projects", status_code=303)


HANDLERS = [first_page, projects_page, new_project]
