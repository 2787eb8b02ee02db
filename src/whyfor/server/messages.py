"""What requests say and answers carry, as plain headers: for the guards of both servers."""

from __future__ import annotations

from typing import Any

from litestar.types import Message, Scope, Send

STATIC = "/static/"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
        "'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # "no-referrer" would have browsers send "Origin: null" with our own forms
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


def read_headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def read_cookie(headers: dict[str, list[str]], name: str) -> str:
    """Return our cookie among those that a browser sends to all ports of this machine."""
    for line in headers.get("cookie", []):
        for pair in line.split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                return value
    return ""


async def send_answer(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def with_headers(scope: Scope, send: Send, headers: dict[str, str] = HEADERS) -> Send:
    """Add the security headers to a response."""
    static = scope.get("path", "").startswith(STATIC)
    always = {**headers, "cache-control": "no-cache" if static else "no-store"}

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = [
                (name, value)
                for name, value in message.get("headers", [])
                if name.decode().lower() not in always
            ]
            ours = [(name.encode(), value.encode()) for name, value in always.items()]
            rest: Any = {**message, "headers": [*given, *ours]}
            message = rest
        await send(message)

    return sending
