"""The Model Context Protocol over HTTP: what agents ask of a project, with a token."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, post
from litestar.types import Message

from whyfor.server.team.context import OfProject
from whyfor.team.access import READ
from whyfor.team.places import shared_place

_BODY_MAX = 1 << 20  # bytes


@post(
    "/api/v1/projects/{project_id:int}/mcp",
    opt={"access": READ},
    status_code=200,
    request_max_body_size=_BODY_MAX,
)
async def project_mcp(request: Request[Any, Any, Any], project: OfProject) -> Response[bytes]:
    """A message of the Model Context Protocol, and its answer: tools that read this project."""
    from whyfor.mcp.http import answer_http  # here: it brings much, and few ask

    body = await request.body()
    sent: list[Message] = []
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {**request.scope, "app": None, "state": {}}
    await answer_http(shared_place(project), scope, receive, send)
    return _response(sent)


def _response(sent: list[Message]) -> Response[bytes]:
    """Return what was sent as one answer."""
    status, kind, content = 500, "application/json", b""
    for message in sent:
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = {name.lower(): value for name, value in message["headers"]}
            kind = headers.get(b"content-type", b"application/json").decode("latin-1")
        elif message["type"] == "http.response.body":
            content += message.get("body", b"")
    return Response(content, status_code=status, media_type=kind)


HANDLERS = [project_mcp]
