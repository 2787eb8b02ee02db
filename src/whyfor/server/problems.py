"""Errors: as problem+json for programs and as a page for people, with kind, message and next
step."""

from __future__ import annotations

import asyncio
import traceback
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException, ValidationException
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from whyfor.model.errors import StoreError, TooMany, WhyforError
from whyfor.server.page import rendered
from whyfor.server.refused import refused

API = "/api/"
JSON = "application/problem+json"
RETRY_SECONDS = 5  # when what is busy now may be asked again
_BUG = "This is a bug; the server's terminal shows where."
STATUS = {
    "not_found": 404,
    "ambiguous": 409,
    "bad_input": 400,
    "busy": 503,
    "unauthorized": 401,
    "forbidden": 403,
    "outdated_upload": 409,
    "too_many": 429,
    "withdrawn": 410,
    "unprocessable": 422,
    "quota": 507,
}


class ProblemDetails(msgspec.Struct, frozen=True):
    """A problem as in RFC 9457, with our kind and the next command."""

    title: str
    status: int
    detail: str
    kind: str
    hint: str = ""
    type: str = "about:blank"


class Refusal(Exception):
    """The guard refuses a request; the message says nothing about stored data."""

    def __init__(
        self, status: int, kind: str, message: str, hint: str = "", allow: str = ""
    ) -> None:
        super().__init__(message)
        self.problem = _problem(status, kind, message, hint)
        self.allow = allow
        self.retry_after = 0  # seconds


async def refuse(refusal: Refusal, scope: Scope, send: Send) -> None:
    if scope["type"] == ScopeType.WEBSOCKET:
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    problem = refusal.problem
    if for_people(scope):
        body = refused(problem.status, problem.title, problem.detail, problem.hint)
        kind = b"text/html; charset=utf-8"
    else:
        body, kind = msgspec.json.encode(problem), JSON.encode()
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if problem.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="whyfor"'))
    if refusal.retry_after:
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    if refusal.allow:
        headers.append((b"allow", refusal.allow.encode()))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def expected(request: Request[Any, Any, Any], error: WhyforError) -> Response[Any]:
    status = STATUS.get(error.kind, 500)
    headers = {"retry-after": str(RETRY_SECONDS)} if status == 503 else {}
    if isinstance(error, TooMany):
        headers = {"retry-after": str(error.retry_after)}
    return _answer(request, _problem(status, error.kind, error.message, error.hint), headers)


def from_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    """Return the problem for an error of Litestar; several invalid parameters are listed in one
    line."""
    status = error.status_code
    kind = "not_found" if status == 404 else "bad_input" if status < 500 else "internal"
    detail = error.detail if status != 404 else f"nothing is at {request.url.path}"
    if isinstance(error, ValidationException) and isinstance(error.extra, list):
        detail = "; ".join(
            f"{item.get('key', '')}: {item.get('message', '')}" for item in error.extra
        )
    return _answer(request, _problem(status, kind, detail), error.headers)


def unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    return _answer(request, broken(error).problem)


def hidden_fault(request: Request[Any, Any, Any], error: StoreError) -> Response[Any]:
    """Return the problem for a fault of the database: what it said may name rows and statements,
    and is for nobody who asks over the network."""
    return _answer(request, broken(error).problem)


def broken(error: Exception) -> Refusal:
    """Return the problem for a bug of ours, and print where it is to the person who runs the
    server."""
    traceback.print_exception(error)
    return Refusal(500, "internal", f"unexpected: {type(error).__name__}", _BUG)


def _problem(status: int, kind: str, message: str, hint: str = "") -> ProblemDetails:
    return ProblemDetails(HTTPStatus(status).phrase, status, message, kind, hint)


def _answer(
    request: Request[Any, Any, Any], problem: ProblemDetails, headers: dict[str, str] | None = None
) -> Response[Any]:
    kept = {
        name: value
        for name, value in (headers or {}).items()
        if name.lower() in ("allow", "retry-after")
    }
    if for_people(request.scope):
        return _Page(problem, status_code=problem.status, headers=kept)
    return Response(problem, status_code=problem.status, media_type=JSON, headers=kept)


class _Page(Response[ProblemDetails]):
    def to_asgi_response(self, *_: Any, **__: Any) -> ASGIResponse:
        return _Later(self.content, self.headers)


class _Later(ASGIResponse):
    """An error page that is rendered in a thread, like all pages."""

    def __init__(self, problem: ProblemDetails, headers: dict[str, str]) -> None:
        super().__init__(status_code=problem.status, headers=headers)
        self.problem, self.given = problem, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await asyncio.to_thread(
            rendered, "error.html", {"problem": self.problem, "here": ""}
        )
        answer = ASGIResponse(
            body=body, status_code=self.problem.status, headers=self.given, media_type="text/html"
        )
        await answer(scope, receive, send)


def for_people(scope: Scope) -> bool:
    """Return whether a page is wanted: browsers accept text/html, scripts and streams do not."""
    if scope["path"].startswith(API):
        return False
    accepts = b",".join(value for name, value in scope["headers"] if name.lower() == b"accept")
    return b"text/html" in accepts
