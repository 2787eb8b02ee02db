"""Whether a request may reach its route: asked for every route, by what the route declares.

A route declares who may call it: `opt={"access": READ}`, with a word of team/access.py. A route
that declares nothing is answered to nobody. A route of a project has `{project_id:int}` in its
path. A route whose answer does not end says so: `opt={"access": READ, "stream": True}`. The matrix
in tests/team/test_matrix.py asks every route as everybody.
"""

from __future__ import annotations

import asyncio
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers.base import BaseRouteHandler

from whyfor.model.accounts import Member
from whyfor.model.errors import NotFound, NotSignedIn
from whyfor.server.team.context import RequestContext, context_of
from whyfor.team.access import (
    ANYONE,
    NEEDS,
    OF_PROJECT,
    ProjectAccess,
    check_member,
    project_access,
)
from whyfor.team.resources import TeamResources


def declared_access(handler: BaseRouteHandler) -> str | None:
    """Return what a route declares; None if it declares nothing, or no word that is known."""
    need = handler.opt.get("access")
    return need if need in NEEDS else None


async def decide(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Raise unless the one who asks may call this route."""
    need = declared_access(handler)
    if need is None:
        raise NotFound("nothing is here", "")
    if need == ANYONE:
        return
    context = context_of(connection)
    if context.member is None:
        raise NotSignedIn("nobody is signed in", "Sign in, or send a token: whyfor login")
    if need not in OF_PROJECT:
        check_member(context.member, need)
        return
    number = connection.path_params["project_id"]
    context.project = await asyncio.to_thread(
        project_access, context.resources, context.member, number, need
    )


# -- what handlers may ask for ---------------------------------------------------------------------


def give_member(request: Request[Any, Any, Any]) -> Member:
    """Return who asks. Raises NotSignedIn where anyone may call, and nobody is signed in."""
    member = context_of(request).member
    if member is None:
        raise NotSignedIn("nobody is signed in", "Sign in first.")
    return member


def give_project(request: Request[Any, Any, Any]) -> ProjectAccess:
    """Return the project that the route's path names, with the access that was decided."""
    project = context_of(request).project
    if project is None:
        raise NotFound("nothing is here", "")
    return project


def give_team(request: Request[Any, Any, Any]) -> TeamResources:
    return context_of(request).resources


def give_context(request: Request[Any, Any, Any]) -> RequestContext:
    return context_of(request)
