"""The stream: every event, story and change of status as it happens. A client that reconnects
continues where it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from litestar import Request, get
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream

from whyfor.live.feed import Cursor, FeedItem, parse_cursor
from whyfor.live.hub import StreamFilter
from whyfor.model.errors import BadInput
from whyfor.model.events import KINDS
from whyfor.server.api.params import PROBLEMS
from whyfor.server.page import Live

Names = Annotated[list[str] | None, QueryParameter(max_items=100)]


@get("/stream", media_type="text/event-stream", responses=PROBLEMS)
async def stream(
    request: Request[Any, Any, Any],  # noqa: ARG001 - Litestar gives a route what it names
    hub: Live,
    session: Names = None,
    project: Names = None,
    kind: Names = None,
    after: Annotated[
        str | None, QueryParameter(max_length=80, description="A cursor; else from now on.")
    ] = None,
    last_event_id: Annotated[
        str | None, HeaderParameter(name="Last-Event-ID", max_length=80)
    ] = None,
) -> Stream:
    """Server-sent events: `event`, `commit`, `status`, `attention`, `reset`, `alive`. Resumes after
    Last-Event-ID or `after`."""
    kinds = frozenset(kind or [])
    if unknown := kinds - {*KINDS, "commit", "status", "attention"}:
        raise BadInput(
            f"no such kind: {min(unknown)[:40]!r}",
            "Kinds: commit, status, attention, " + ", ".join(KINDS),
        )
    wanted = StreamFilter(frozenset(session or []), frozenset(project or []), kinds)
    place = _cursor(last_event_id or after)
    items = hub.subscribe(wanted, place)
    first = await anext(items)  # whoever is one too many is told so before an answer has begun
    return Stream(_lines(first, items), headers={"x-accel-buffering": "no"})


def _cursor(text: str | None) -> Cursor | None:
    if not text:
        return None
    found = parse_cursor(text)
    if found is None:
        raise BadInput("not a cursor", "Give the id of an event of this stream, or nothing.")
    return found


async def _lines(
    first: FeedItem | Cursor, items: AsyncIterator[FeedItem | Cursor]
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    yield _block(first)
    async for item in items:
        yield _block(item)


def _block(item: FeedItem | Cursor) -> bytes:
    # nothing new; but the place may have moved past what was not wanted
    if isinstance(item, Cursor):
        return b"event: alive\nid: %s\ndata: {}\n\n" % str(item).encode()
    place = b"id: %s\n" % str(item.cursor).encode() if item.cursor else b""
    return b"event: %s\n%sdata: %s\n\n" % (item.type.encode(), place, item.data)


HANDLERS = [stream]
