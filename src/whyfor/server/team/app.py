"""The application of the team server: pages, API and static files behind one guard.

Routes are in server/team/routes.py. Handlers may name `member` (who asks), `project` (the project
of the path, with the access that was decided), `team` (database, objects, settings) and `context`
as parameters; their types are in server/team/context.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader
from litestar import Litestar, Request, Response, Router
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.response import Redirect
from litestar.static_files import create_static_files_router
from litestar.template import TemplateConfig
from litestar.types import ControllerRouterHandler, Receive, Scope, Send

from whyfor import __version__
from whyfor.model.errors import NotSignedIn, StoreError, WhyforError
from whyfor.server import problems
from whyfor.server.page import TEMPLATES
from whyfor.server.render import WEB, environment
from whyfor.server.team import decide
from whyfor.server.team.context import CONTEXT
from whyfor.server.team.guard import FORM_BYTES, TeamGuard
from whyfor.server.team.navigation import PROJECT_PAGES, team_name, team_pages
from whyfor.server.team.places import project_base, project_name, render_shared_project
from whyfor.server.team.routes import HANDLERS
from whyfor.team.access import ANYONE
from whyfor.team.resources import TeamResources
from whyfor.team.settings import TeamSettings


class TeamApp(Litestar):
    """The application behind the guard; unknown paths are guarded too."""

    guard: TeamGuard
    templates: Environment
    resources: TeamResources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # type: ignore[override]
        if scope["type"] == "lifespan":  # type: ignore[comparison-overlap]
            await super().__call__(scope, receive, send)
        else:
            TEMPLATES.set(self.templates)
            await self.guard(scope, receive, send, super().__call__)


def create_team_app(
    settings: TeamSettings, handlers: Sequence[ControllerRouterHandler] = ()
) -> TeamApp:
    """Return the application. `handlers` are more routes, of tests."""
    resources = TeamResources(settings)
    templates = _templates()
    static = create_static_files_router(
        "/static", [WEB / "static"], include_in_schema=False, opt={"access": ANYONE}
    )
    app = TeamApp(
        [*HANDLERS, *handlers, static],
        guards=[decide.decide],
        dependencies={
            "member": Provide(decide.give_member, sync_to_thread=False),
            "project": Provide(decide.give_project, sync_to_thread=False),
            "team": Provide(decide.give_team, sync_to_thread=False),
            "context": Provide(decide.give_context, sync_to_thread=False),
        },
        exception_handlers={
            NotSignedIn: _sign_in_first,
            StoreError: problems.hidden_fault,
            WhyforError: problems.expected,
            HTTPException: problems.from_http,
            Exception: problems.unexpected,
        },
        template_config=TemplateConfig(instance=JinjaTemplateEngine(engine_instance=templates)),
        openapi_config=_openapi(),
        lifespan=[lambda _: _connected(resources)],
        logging_config=None,
        request_max_body_size=FORM_BYTES,
    )
    app.templates = templates
    app.resources = resources
    app.guard = TeamGuard(resources)
    return app


def _templates() -> Environment:
    """Return the laptop's templates, of which web/templates/team replaces those it has too."""
    made = environment()
    made.loader = FileSystemLoader([WEB / "templates" / "team", WEB / "templates"])
    made.globals["form_token"] = lambda: CONTEXT.get().form_token
    made.globals["member"] = lambda: CONTEXT.get().member
    made.globals["team_pages"] = team_pages
    made.globals["team_name"] = team_name
    made.globals["team"] = {"project": project_name}
    made.globals["link_base"] = project_base
    made.filters["project"] = render_shared_project
    made.globals["pages"] = PROJECT_PAGES
    made.globals["approvals"] = lambda: 0
    made.globals["page_key"] = lambda: ""
    return made


@asynccontextmanager
async def _connected(resources: TeamResources) -> AsyncIterator[None]:
    await asyncio.to_thread(resources.open)
    try:
        yield
    finally:
        await asyncio.to_thread(resources.close)


def _sign_in_first(request: Request[Any, Any, Any], error: NotSignedIn) -> Response[Any]:
    """Send a person to the page to sign in, and from there back here."""
    if request.method != "GET" or not problems.for_people(request.scope):
        return problems.expected(request, error)
    query = request.scope["query_string"].decode("latin-1")
    target = request.scope["path"] + (f"?{query}" if query else "")
    return Redirect(f"/signin?next={quote(target, safe='')}", status_code=303)


def _openapi() -> OpenAPIConfig:
    bearer = SecurityScheme(type="http", scheme="bearer", description="A token of a person.")
    return OpenAPIConfig(
        title="Whyfor team server",
        version=__version__,
        path="/api/schema",
        openapi_router=Router(path="/api/schema", route_handlers=[], opt={"access": ANYONE}),
        render_plugins=[JsonRenderPlugin(path="/")],
        components=Components(security_schemes={"token": bearer}),
        security=[{"token": []}],
        use_handler_docstrings=True,
    )
