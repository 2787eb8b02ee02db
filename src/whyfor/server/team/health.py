"""Whether the server runs, and whether it can answer."""

from __future__ import annotations

from litestar import Response, get

from whyfor.model.errors import WhyforError
from whyfor.server.team.context import Team
from whyfor.team.access import ANYONE
from whyfor.team.setup import check_ready


@get("/healthz", opt={"access": ANYONE}, include_in_schema=False, sync_to_thread=False)
def alive() -> dict[str, str]:
    """The process runs."""
    return {"status": "ok"}


@get("/readyz", opt={"access": ANYONE}, include_in_schema=False, sync_to_thread=True)
def ready(team: Team) -> Response[dict[str, str]]:
    """The database and the object store answer, and the database may be served from."""
    try:
        check_ready(team)
    except WhyforError:
        return Response({"status": "not ready"}, status_code=503)
    return Response({"status": "ok"})


HANDLERS = [alive, ready]
