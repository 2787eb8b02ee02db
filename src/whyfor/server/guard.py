"""What every request must pass before anything else sees it: Host, then Origin, then a key; and
what every answer says. A change must also come from a form of ours (server/forms.py).

It stands around the whole application, so that paths that lead nowhere are guarded like all
others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from urllib.parse import parse_qs

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from whyfor.server.forms import (
    judge_form_headers,
    read_form_body,
    read_form_token,
    replay_body,
    stale_form,
)
from whyfor.server.messages import HEADERS, read_cookie, read_headers, send_answer, with_headers
from whyfor.server.problems import Refusal, broken, refuse
from whyfor.server.refused import SOURCE
from whyfor.server.start import LIFE_SECONDS, Start
from whyfor.server.telemetry import PATH as TELEMETRY_PATH
from whyfor.server.telemetry import TelemetryDoor
from whyfor.service.serve import AccessKeys, same_text

BODY_BYTES = 64 << 10
TARGET_BYTES = 8 << 10  # path and query
OPEN = "/open"
HELLO = "/hello"
AGAIN = "/again"
ANSWERS = "/whyfor/answers/"  # where agents ask for answers from the browser

# Who is refused gets no file of ours: that page has its style in it, let in by its hash, and
# nothing else.
REFUSED = {
    **HEADERS,
    "content-security-policy": f"default-src 'none'; style-src {SOURCE}; frame-ancestors 'none'",
}


UNTIL: ContextVar[int] = ContextVar("until")  # the second at which the key of whoever asks ends


class AgentAnswers(msgspec.Struct, frozen=True):
    """How agents ask for answers from the browser."""

    key: Callable[[], str]
    """Returns what they must show; nothing if none may ask."""
    hold: Callable[[str, bytes], Awaitable[bytes]]
    """Returns the answer to an agent's request."""


async def _disconnected(receive: Receive) -> None:
    """Wait until the other end has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Guard:
    def __init__(self, keys: AccessKeys, port: int, answers: AgentAnswers | None = None) -> None:
        self.keys = keys
        self.answers = answers
        self.telemetry: TelemetryDoor | None = None
        self.start = Start(keys.token, port)
        self.hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        self.cookie = f"whyfor-{port}"  # a browser does not tell ports apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send, app: ASGIApp) -> None:
        bare, send = send, with_headers(scope, send)
        try:
            if scope["type"] != ScopeType.HTTP:
                raise Refusal(403, "forbidden", "only HTTP is spoken here")
            headers = read_headers(scope)
            self._judge_host(headers)
            if self.telemetry and TELEMETRY_PATH.fullmatch(scope["path"]):
                self._judge_origin(headers)
                await self.telemetry.take(scope, headers, receive, send)
                return
            _judge_form(scope, headers)
            if scope["path"] == OPEN:
                await self._open(scope, headers, send)
                return
            self._judge_origin(headers)
            if scope["path"].startswith(ANSWERS):
                await self._answer_agent(scope, headers, receive, send)
                return
            if scope["path"] == HELLO:
                await self._hello(scope, send)
                return
            if scope["path"] == AGAIN:
                await self._again(scope, send)
                return
            until = self._judge_key(headers)
            UNTIL.set(until)
            _show_key(scope)
            if scope["method"] == "POST":
                receive = await self._judge_change(headers, until, receive)
        except Refusal as refusal:
            await refuse(refusal, scope, with_headers(scope, bare, REFUSED))
            return
        began = False

        async def sending(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await app(scope, receive, sending)
        except Exception as error:
            if began:
                raise  # half an answer: the connection is closed
            await refuse(broken(error), scope, with_headers(scope, bare, REFUSED))

    def _judge_host(self, headers: dict[str, list[str]]) -> None:
        """Refuse a Host that is not ours: somebody may have made another name point here (DNS
        rebinding)."""
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise Refusal(421, "forbidden", "this server is not called that")

    def _judge_origin(self, headers: dict[str, list[str]]) -> None:
        """Refuse requests from pages of other sites and other ports."""
        own = {f"http://{host}" for host in headers["host"]}
        if any(origin.lower() not in own for origin in headers.get("origin", [])):
            raise Refusal(403, "forbidden", "another site may not ask")
        if not _from_nowhere(headers):
            raise Refusal(403, "forbidden", "another site may not ask")

    async def _answer_agent(
        self, scope: HTTPScope, headers: dict[str, list[str]], receive: Receive, send: Send
    ) -> None:
        """Let an agent wait for an answer from the browser. This is no route: it has a key of its
        own, which opens nothing else."""
        self._judge_agent(scope, headers)
        assert self.answers is not None
        body = await read_form_body(receive)
        agent = scope["path"].removeprefix(ANSWERS)
        held = asyncio.ensure_future(self.answers.hold(agent, body))
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait((held, gone), return_when=asyncio.FIRST_COMPLETED)
            if held.done():
                headers_sent = [(b"content-type", b"application/json")]
                await send_answer(send, 200, headers_sent, held.result())
        finally:
            for task in (held, gone):
                task.cancel()
            await asyncio.gather(held, gone, return_exceptions=True)

    def _judge_agent(self, scope: HTTPScope, headers: dict[str, list[str]]) -> None:
        """Refuse whoever is not an agent that `init --rules` gave a key to. A browser names an
        origin with what it posts; an agent does not."""
        given = headers.get("authorization", [""])
        scheme, _, key = given[0].partition(" ")
        known = self.answers.key() if self.answers else ""
        if scope["method"] != "POST" or "origin" in headers or "cookie" in headers or not known:
            raise Refusal(403, "forbidden", "only an agent asks here")
        if len(given) != 1 or scheme.lower() != "bearer" or not same_text(key.strip(), known):
            raise Refusal(401, "unauthorized", "this needs the key of an agent's hook")
        _show_key(scope)

    def _judge_key(self, headers: dict[str, list[str]]) -> int:
        """Return until when the request's key is valid; refuse if it has none."""
        until: int | None = None
        if given := headers.get("authorization"):
            scheme, _, token = given[0].partition(" ")
            if len(given) == 1 and scheme.lower() == "bearer" and self.keys.is_token(token.strip()):
                until = _new_end()
        else:
            until = self.start.read_cookie(read_cookie(headers, self.cookie))
        if until is None:
            raise Refusal(
                401, "unauthorized", "this page needs a key", "Open it again: whyfor serve"
            )
        return until

    async def _judge_change(
        self, headers: dict[str, list[str]], until: int, receive: Receive
    ) -> Receive:
        """Refuse a POST that is not one of our forms, sent from a page of the same sign-in; return
        what gives its body to a route."""
        judge_form_headers(headers, [f"http://{host.lower()}" for host in headers["host"]])
        body = await read_form_body(receive)
        if not same_text(read_form_token(body), self.start.make_form_token(until)):
            raise stale_form()
        return replay_body(body, receive)

    async def _open(self, scope: HTTPScope, headers: dict[str, list[str]], send: Send) -> None:
        """Exchange a one-time link for a cookie. The link works from anywhere, but only when a
        person follows it: a preview or an embedded page does not use it up."""
        if scope["method"] != "GET":
            raise Refusal(405, "bad_input", "a link is opened with GET", allow="GET")
        codes = _query(scope).get("once", [])
        if len(codes) != 1 or not _followed(headers) or not self.keys.redeem(codes[0]):
            raise Refusal(
                401,
                "unauthorized",
                "this link was used already, or is too old",
                "Another: whyfor serve",
            )
        _show_key(scope)
        # A redirect alone would still count as the other site's doing, and go without the cookie:
        # the page goes on.
        body = b'<!doctype html><meta http-equiv="refresh" content="0; url=/"><title>Whyfor</title>'
        status = 303 if _from_nowhere(headers) else 200
        answer = [(b"location", b"/")] if status == 303 else []
        answer += [self._set_cookie(_new_end()), (b"content-type", b"text/html; charset=utf-8")]
        await send_answer(send, status, answer, body)

    async def _hello(self, scope: HTTPScope, send: Send) -> None:
        """Prove to a page of this or an earlier start that this is the same server, before the page
        sends anything."""
        page, nonce = _asked(scope, "page", "nonce")
        proof = self.start.answer_page(page, nonce)
        if proof is None:
            raise Refusal(
                401, "unauthorized", "this page is too old", "Open it again: whyfor serve"
            )
        body = msgspec.json.encode({"start": self.start.name, "proof": proof})
        # No key was shown: the connection goes, too.
        answer = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send_answer(send, 200, answer, body)

    async def _again(self, scope: HTTPScope, send: Send) -> None:
        """Give a page that proves itself a cookie of this start; it expires when the page's first
        one would have."""
        until = self.start.admit_page(*_asked(scope, "page", "nonce", "proof"))
        if until is None:
            raise Refusal(
                401, "unauthorized", "this page needs a key", "Open it again: whyfor serve"
            )
        _show_key(scope)
        await send_answer(
            send, 200, [self._set_cookie(until), (b"content-type", b"application/json")], b"{}"
        )

    def _set_cookie(self, until: int) -> tuple[bytes, bytes]:
        cookie = f"{self.cookie}={self.start.make_cookie(until)}; HttpOnly; SameSite=Strict; Path=/"
        return b"set-cookie", cookie.encode()


def _new_end() -> int:
    return int(time.time()) + LIFE_SECONDS


def _show_key(scope: Scope) -> None:
    """Tell the connection that its client has a key (server/connections.py)."""
    show = scope.get("state", {}).get("show_key")
    if show is not None:
        show()


def _query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode("latin-1"))


def _asked(scope: HTTPScope, *names: str) -> list[str]:
    """Return the parameters of these names; refuse if one is missing or there twice."""
    if scope["method"] != "GET":
        raise Refusal(405, "bad_input", "this is asked with GET", allow="GET")
    query = _query(scope)
    found = [query.get(name, []) for name in names]
    if any(len(values) != 1 for values in found):
        raise Refusal(400, "bad_input", f"this takes {' and '.join(names)}, once each")
    return [values[0] for values in found]


def _followed(headers: dict[str, list[str]]) -> bool:
    ahead = any(
        "prefetch" in value
        for name in ("sec-purpose", "purpose")
        for value in headers.get(name, [])
    )
    embedded = headers.get("sec-fetch-dest", ["document"]) != ["document"]
    return not ahead and not embedded and "origin" not in headers


def _from_nowhere(headers: dict[str, list[str]]) -> bool:
    """Return whether the address was typed or opened by a program, not followed from a link in
    another page."""
    return all(site in ("same-origin", "none") for site in headers.get("sec-fetch-site", []))


def _judge_form(scope: Scope, headers: dict[str, list[str]]) -> None:
    """Refuse a long address, control characters in it, and a large body."""
    if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET_BYTES:
        raise Refusal(414, "bad_input", f"an address may have {TARGET_BYTES} bytes")
    if any(ord(char) < 32 for char in scope["path"]):
        raise Refusal(400, "bad_input", "an address holds no control characters")
    lengths = headers.get("content-length", ["0"])
    whole = all(length.isascii() and length.isdigit() for length in lengths)
    if "transfer-encoding" in headers or not whole or max(map(int, lengths)) > BODY_BYTES:
        raise Refusal(413, "bad_input", f"a request may have {BODY_BYTES} bytes")
