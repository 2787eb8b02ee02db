"""The stream of a project: what members shared or took back, as it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from litestar import Request, get
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream

from whyfor.live.feed import Cursor, parse_cursor
from whyfor.model.errors import BadInput, NotSignedIn
from whyfor.model.sync import SharedChange
from whyfor.server.api.params import PROBLEMS
from whyfor.server.messages import read_cookie, read_headers
from whyfor.server.team.context import OfProject
from whyfor.server.team.guard import SESSION
from whyfor.team.access import READ, ProjectAccess, project_access

Names = Annotated[list[str] | None, QueryParameter(max_items=100)]


@get(
    "/api/v1/projects/{project_id:int}/stream",
    opt={"access": READ, "stream": True},
    media_type="text/event-stream",
    responses=PROBLEMS,
)
async def stream(
    request: Request[Any, Any, Any],
    project: OfProject,
    session: Names = None,
    kind: Names = None,  # noqa: ARG001 - the pages of a laptop ask for kinds that are not sent here
    after: Annotated[
        str | None, QueryParameter(max_length=80, description="A cursor; else from now on.")
    ] = None,
    last_event_id: Annotated[
        str | None, HeaderParameter(name="Last-Event-ID", max_length=80)
    ] = None,
) -> Stream:
    """Server-sent events: `change` (a story is new or otherwise, or was taken back), `alive`.
    Resumes after Last-Event-ID or `after`. Ends when the caller's token or membership does."""
    place = _cursor(last_event_id or after)
    start = place if place is not None else project.last_change()
    headers = read_headers(request.scope)
    given = headers.get("authorization", [""])[0].partition(" ")[2].strip()
    token, cookie = given or read_cookie(headers, SESSION), not given

    def ask_again() -> ProjectAccess:
        member = project.resources.look_up(token, cookie=cookie)
        if member is None:
            raise NotSignedIn("this token is unknown, revoked or has ended", "")
        return project_access(project.resources, member, project.id, READ)

    changes = project.resources.changes.changes(project, start, ask_again)
    wanted = frozenset(session or [])
    return Stream(_lines(changes, start, wanted), headers={"x-accel-buffering": "no"})


def _cursor(text: str | None) -> int | None:
    if not text:
        return None
    found = parse_cursor(text)
    if found is None:
        raise BadInput("not a cursor", "Give the id of an event of this stream, or nothing.")
    return found.change


async def _lines(
    changes: AsyncIterator[list[SharedChange]], start: int, wanted: frozenset[str]
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    yield _alive(start)
    last = start
    async for found in changes:
        for change in found:
            last = change.id
            if not wanted or change.name in wanted or ":" not in change.name:
                yield _block(change)
        yield _alive(last)


def _alive(last: int) -> bytes:
    return b"event: alive\nid: %s\ndata: {}\n\n" % str(Cursor(change=last)).encode()


def _block(change: SharedChange) -> bytes:
    place = str(Cursor(change=change.id)).encode()
    return b"event: change\nid: %s\ndata: %s\n\n" % (place, msgspec.json.encode(change))


HANDLERS = [stream]
