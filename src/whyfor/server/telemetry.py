"""OTLP over HTTP from agents on this machine: no route, because it has a key of its own, which
opens nothing else, and larger bodies than pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import msgspec
from litestar.types import HTTPScope, Receive, Send

from whyfor.model.errors import BadInput
from whyfor.server.messages import send_answer
from whyfor.server.problems import Refusal
from whyfor.service.serve import same_text
from whyfor.service.telemetry import BODY_MAX, TelemetryBody

PATH = re.compile(r"(?:/(?P<key>[\w-]{20,100}))?/v1/(?P<signal>logs|metrics|traces)")
Headers = dict[str, list[str]]


class TelemetryDoor(msgspec.Struct, frozen=True):
    """How agents' telemetry comes in."""

    key: Callable[[], str]
    """Returns what they must show; nothing if none may send."""
    keep: Callable[[TelemetryBody], object]
    """Writes down what a request tells, and returns when it is on disk."""

    async def take(self, scope: HTTPScope, headers: Headers, receive: Receive, send: Send) -> None:
        """Take a request of OTLP; refuse one without the key."""
        found = PATH.fullmatch(scope["path"])
        assert found is not None
        self._judge(scope, headers, found["key"])
        media_type = headers.get("content-type", [""])[0]
        body = TelemetryBody(
            signal=found["signal"],
            media_type=media_type,
            encoding=headers.get("content-encoding", [""])[0].strip().lower(),
            content=await _read_body(receive),
        )
        try:
            await asyncio.to_thread(self.keep, body)
        except BadInput as error:
            raise Refusal(400, "bad_input", error.message, error.hint) from None
        except OSError:
            # it is asked to send again
            raise Refusal(503, "busy", "it could not be written down") from None
        is_json = media_type.startswith("application/json")
        kind = b"application/json" if is_json else b"application/x-protobuf"
        await send_answer(send, 200, [(b"content-type", kind)], b"{}" if is_json else b"")

    def _judge(self, scope: HTTPScope, headers: Headers, in_path: str | None) -> None:
        known = self.key()
        if scope["method"] != "POST" or "origin" in headers or "cookie" in headers or not known:
            raise Refusal(403, "forbidden", "only an agent sends telemetry here")
        given = headers.get("authorization", [""])
        scheme, _, key = given[0].partition(" ")
        shown = key.strip() if scheme.lower() == "bearer" and len(given) == 1 else in_path or ""
        if not same_text(shown, known):
            raise Refusal(401, "unauthorized", "this needs the key of an agent's telemetry")


async def _read_body(receive: Receive) -> bytes:
    """Return the whole body; refuse one that is too large, however it is sent."""
    parts: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Refusal(400, "bad_input", "the body did not arrive whole")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_MAX:
            raise Refusal(413, "bad_input", f"a body may have {BODY_MAX} bytes")
        more = message.get("more_body", False)
    return b"".join(parts)
