"""Parameters of the API with their limits, and the error responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from litestar import get
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter

from whyfor.server.problems import JSON, ProblemDetails
from whyfor.service.agents import AGENT_CHOICE

Limit = Annotated[int, QueryParameter(ge=1, le=200, description="How many at most.")]
After = Annotated[
    str | None, QueryParameter(max_length=400, description="The `next` of the page before.")
]
Seq = Annotated[
    int, QueryParameter(ge=0, le=1 << 24, description="Only what comes after this one.")
]
Name = Annotated[str, PathParameter(min_length=1, max_length=200)]
Project = Annotated[
    str | None, QueryParameter(max_length=1000, description="A project's identity.")
]
Person = Annotated[
    str | None, QueryParameter(max_length=9, description="A person's number; on a team only.")
]
Text = Annotated[str | None, QueryParameter(max_length=400)]
When = Annotated[
    str | None,
    QueryParameter(max_length=40, description="2026-05-31, 2026-05-31T14:00, today, 3d, 2w …"),
]
Agent = Annotated[
    str | None,
    QueryParameter(max_length=40, description=f"{AGENT_CHOICE}."),
]


def _problem(description: str) -> ResponseSpec:
    return ResponseSpec(
        ProblemDetails, generate_examples=False, description=description, media_type=JSON
    )


PROBLEMS = {
    400: _problem("Something asked for cannot be understood."),
    401: _problem("No token, or a wrong one."),
    403: _problem("Another site asks."),
    404: _problem("It is not there, or nothing is kept yet."),
    409: _problem("An abbreviated id fits several sessions."),
    413: _problem("A body, and too big a one."),
    414: _problem("Too long an address."),
    421: _problem("Asked by a name that is not this server's."),
    500: _problem("The store cannot be read, or a bug."),
    503: _problem("Busy."),
}


def reading_route(path: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare a route that reads from the store, in a thread because that blocks; it may answer
    with a problem."""
    return get(path, responses=PROBLEMS, sync_to_thread=True, **options)
