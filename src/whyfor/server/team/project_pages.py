"""The pages and the API of each project: those of a laptop, with the project in their address.

Another page of a project is one more line in `PAGES`, and its word in `OF_PROJECT` of
server/page.py, so that links to it lead to the project.
"""

from __future__ import annotations

from litestar import Router, get
from litestar.di import Provide
from litestar.response import Redirect

from whyfor.server.api import commits as api_commits
from whyfor.server.api import known_parameters
from whyfor.server.api import memory as api_memory
from whyfor.server.api import sessions as api_sessions
from whyfor.server.api import state as api_state
from whyfor.server.api import tasks as api_tasks
from whyfor.server.pages import (
    commit,
    file,
    insights,
    map,
    memory,
    search,
    session,
    sessions,
    tasks,
    timeline,
)
from whyfor.server.team import context_api
from whyfor.server.team.context import Asked
from whyfor.server.team.places import (
    give_asked_project,
    give_hub,
    give_own_identity,
    give_place,
    give_shown_project,
)
from whyfor.team.access import READ


@get("/", include_in_schema=False, sync_to_thread=False)
def first_page(context: Asked) -> Redirect:
    """A project's address alone leads to its timeline."""
    number = context.project.id if context.project else 0
    return Redirect(f"/projects/{number}/timeline", status_code=303)


_DEPENDENCIES = {
    "settings": Provide(give_place, sync_to_thread=False),
    "hub": Provide(give_hub, sync_to_thread=True),
}
PAGES = [
    first_page,
    *(sessions.show, sessions.peek),
    *session.router,
    *(timeline.show, timeline.panel),
    *commit.router,
    *file.router,
    *map.router,
    *search.router,
    *insights.router,
    *memory.READING,
    tasks.show,
]
API = [
    *api_sessions.HANDLERS,
    *(api_commits.one, api_commits.conversation),
    *(api_memory.list_notes, api_memory.one),
    *(api_state.find, api_state.figures),
    *context_api.HANDLERS,
    *api_tasks.HANDLERS,
]
API_OF_ONE = [api_commits.list_commits, api_memory.block]  # need to know of which project
HANDLERS = [
    Router(
        "/projects/{project_id:int}",
        route_handlers=PAGES,
        dependencies={
            **_DEPENDENCIES,
            "project": Provide(give_shown_project, sync_to_thread=False),
        },
        opt={"access": READ},
    ),
    Router(
        "/api/v1/projects/{project_id:int}",
        route_handlers=API,
        dependencies={
            **_DEPENDENCIES,
            "project": Provide(give_asked_project, sync_to_thread=False),
        },
        before_request=known_parameters,
        opt={"access": READ},
    ),
    Router(
        "/api/v1/projects/{project_id:int}",
        route_handlers=API_OF_ONE,
        dependencies={
            **_DEPENDENCIES,
            "project": Provide(give_own_identity, sync_to_thread=False),
        },
        before_request=known_parameters,
        opt={"access": READ},
    ),
]
