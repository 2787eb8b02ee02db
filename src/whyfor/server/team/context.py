"""What is known about one request of the team server, and how routes get it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import msgspec
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.types import Scope

from whyfor.model.accounts import Member
from whyfor.model.errors import NotSignedIn
from whyfor.team.access import ProjectAccess
from whyfor.team.actor import TeamActor
from whyfor.team.resources import TeamResources

_KEY = "whyfor"


class RequestContext(msgspec.Struct):
    """Who asks, from where; set by the guard. `project` is set when access was decided."""

    resources: TeamResources
    ip: str
    member: Member | None = None
    form_token: str = ""  # what a form on the answered page must send back
    project: ProjectAccess | None = None

    @property
    def actor(self) -> TeamActor:
        """Return as whom a change is made. Raises NotSignedIn."""
        if self.member is None:
            raise NotSignedIn("nobody is signed in", "Sign in first.")
        return TeamActor(self.resources, self.member, self.ip)


CONTEXT: ContextVar[RequestContext] = ContextVar("request")  # for templates

# What handlers name as parameters: `member`, `project`, `team`, `context`.
SignedIn = NamedDependency[Member]
OfProject = NamedDependency[ProjectAccess]
Team = NamedDependency[TeamResources]
Asked = NamedDependency[RequestContext]


def set_context(scope: Scope, context: RequestContext) -> None:
    extended: Any = scope
    extended[_KEY] = context
    CONTEXT.set(context)


def context_of_scope(scope: Scope) -> RequestContext:
    extended: Any = scope
    found: RequestContext = extended[_KEY]
    return found


def context_of(connection: ASGIConnection[Any, Any, Any, Any]) -> RequestContext:
    return context_of_scope(connection.scope)
