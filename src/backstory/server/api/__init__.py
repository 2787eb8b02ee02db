"""The API, version 1: read-only, paginated by cursor, errors as problem+json."""

from __future__ import annotations

from litestar import Router

from backstory.server.api import commits, sessions, state, stream

HANDLERS = [
    Router(
        "/api/v1",
        route_handlers=[*sessions.HANDLERS, *commits.HANDLERS, *state.HANDLERS, *stream.HANDLERS],
    )
]
