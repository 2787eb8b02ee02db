"""The API, version 1: read-only, paginated by cursor, errors as problem+json."""

from __future__ import annotations

from typing import Any

from litestar import Request, Router

from whyfor.model.errors import BadInput
from whyfor.server.api import commits, memory, sessions, state, stream, tasks


def known_parameters(request: Request[Any, Any, Any]) -> None:
    """Refuse unknown parameters: a misspelt filter would otherwise be ignored unnoticed."""
    fields = {
        getattr(field.kwarg_definition, "name", None) or name
        for name, field in request.route_handler.parsed_fn_signature.parameters.items()
    }
    if unknown := set(request.query_params) - fields:
        known = sorted(
            fields - {"settings", "hub", "request", "last_event_id", *request.path_params}
        )
        raise BadInput(
            f"no such parameter: {min(unknown)[:40]!r}", f"There are: {', '.join(known) or 'none'}."
        )


HANDLERS = [
    Router(
        "/api/v1",
        before_request=known_parameters,
        route_handlers=[
            *sessions.HANDLERS,
            *commits.HANDLERS,
            *memory.HANDLERS,
            *tasks.HANDLERS,
            *state.HANDLERS,
            *stream.HANDLERS,
        ],
    )
]
