"""A project of the team as the pages and the API of a laptop read a place: the same handlers and
services answer for both."""

from __future__ import annotations

from typing import Any

from litestar import Request

from whyfor.config import Settings
from whyfor.live.feed import Cursor
from whyfor.live.hub import Hub
from whyfor.server.render import render_project
from whyfor.server.team.context import CONTEXT
from whyfor.server.team.decide import give_project
from whyfor.team.places import shared_place


class QuietHub(Hub):
    """What runs now does not leave a laptop: nothing stands here. Pages begin to listen after the
    project's latest change."""

    def __init__(self, settings: Settings, latest: int) -> None:
        super().__init__(settings)
        self.cursor = Cursor(change=latest)


def project_base() -> str:
    """Return where the pages of the project are that is shown; empty on other pages."""
    context = CONTEXT.get(None)
    if context is None or context.project is None:
        return ""
    return f"/projects/{context.project.id}"


def project_name() -> str:
    """Return the name of the project that is shown; empty on other pages."""
    context = CONTEXT.get(None)
    return context.project.name if context is not None and context.project else ""


def render_shared_project(identity: str | None) -> str:
    """Return what a project is called: the one that is shown by its name in the team."""
    context = CONTEXT.get(None)
    shown = context.project if context is not None else None
    if shown is not None and identity == f"team:{shown.id}":
        return shown.name
    return render_project(identity)


# -- what the handlers of a laptop name ------------------------------------------------------------


def give_place(request: Request[Any, Any, Any]) -> Settings:
    """Return the place that handlers name `settings`."""
    return shared_place(give_project(request))


def give_asked_project(request: Request[Any, Any, Any]) -> str | None:
    """Return what a request of the API asks as `project`, which is an identity there; here the
    name is the project's of the path."""
    given: str | None = request.query_params.get("project")
    return given[:1000] if given else None


def give_own_identity(request: Request[Any, Any, Any]) -> str:
    """The same for handlers that need one: by default that of the project itself."""
    return give_asked_project(request) or f"team:{give_project(request).id}"


def give_shown_project(request: Request[Any, Any, Any]) -> str:
    """The same for pages."""
    return give_asked_project(request) or ""


def give_hub(request: Request[Any, Any, Any]) -> Hub:
    """Return what handlers name `hub`."""
    project = give_project(request)
    return QuietHub(shared_place(project), project.last_change())
