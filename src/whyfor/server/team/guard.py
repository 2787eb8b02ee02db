"""What every request to the team server must pass before anything else sees it.

Host and size first, then who asks: a token in a header, or a browser's session in a cookie. A
change from a browser must come from a form of ours (server/forms.py). It stands around the whole
application, so that paths that lead nowhere are guarded like all others; which routes somebody may
call is decided by server/team/decide.py.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
from typing import Any
from urllib.parse import quote

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from whyfor.model.accounts import Member
from whyfor.model.errors import TooMany, WhyforError
from whyfor.server.forms import (
    judge_form_headers,
    read_form_body,
    read_form_token,
    replay_body,
    stale_form,
)
from whyfor.server.messages import HEADERS, STATIC, read_cookie, read_headers, with_headers
from whyfor.server.problems import API, STATUS, Refusal, broken, refuse
from whyfor.server.refused import SOURCE
from whyfor.server.team.context import RequestContext, context_of_scope, set_context
from whyfor.server.team.metrics import RequestLog
from whyfor.team.access import READ
from whyfor.team.looks import LookLog
from whyfor.team.resources import TeamResources

SESSION = "__Host-whyfor"  # the cookie of who is signed in
VISIT = "__Host-whyfor-visit"  # of who is not: forms are bound to it
BODY_MAX = 9 << 20  # bytes of any request; routes allow less
FORM_BYTES = 64 << 10  # of a form
TARGET_BYTES = 8 << 10  # path and query
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_SAFE = ("GET", "HEAD")
_REFUSED = {
    **HEADERS,
    "content-security-policy": f"default-src 'none'; style-src {SOURCE}; frame-ancestors 'none'",
}
_TLS = {"strict-transport-security": "max-age=31536000"}
Headers = dict[str, list[str]]


class TeamGuard:
    def __init__(self, resources: TeamResources) -> None:
        self.resources = resources
        self.settings = resources.settings
        self.journal = RequestLog(resources)
        self.looks = LookLog()
        secure = self.settings.public_url.startswith("https://")
        self.headers = {**HEADERS, **(_TLS if secure else {})}
        self.refused = {**_REFUSED, **(_TLS if secure else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send, app: ASGIApp) -> None:
        await self._guarded(scope, receive, self.journal.watching(scope, send), app)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, app: ASGIApp) -> None:
        bare, send = send, with_headers(scope, send, self.headers)
        try:
            if scope["type"] != ScopeType.HTTP:
                raise Refusal(403, "forbidden", "only HTTP is spoken here")
            headers = read_headers(scope)
            self._judge_form(scope, headers)
            context = RequestContext(self.resources, self._client(scope, headers))
            set_context(scope, context)
            visit = await self._identify(scope, headers, context)
            await self._count(scope, context)
            if scope["method"] not in _SAFE:
                receive = await self._judge_change(scope, headers, context, receive)
        except Refusal as refusal:
            await refuse(refusal, scope, with_headers(scope, bare, self.refused))
            return
        except TooMany as error:
            later = Refusal(429, error.kind, error.message, error.hint)
            later.retry_after = error.retry_after
            await refuse(later, scope, with_headers(scope, bare, self.refused))
            return
        except WhyforError as error:  # the database cannot say whose a token is
            status = STATUS.get(error.kind, 503)
            later = Refusal(status, error.kind, "the server cannot answer now", "Try again.")
            await refuse(later, scope, with_headers(scope, bare, self.refused))
            return
        await self._answer(scope, receive, _with_visit(send, visit), bare, app)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, bare: Send, app: ASGIApp
    ) -> None:
        began = 0

        async def sending(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = message["status"]
            await send(message)

        try:
            await app(scope, receive, sending)
            await self._write_down(scope, began)
        except Exception as error:
            if began:
                raise  # half an answer: the connection is closed
            await refuse(broken(error), scope, with_headers(scope, bare, self.refused))

    async def _write_down(self, scope: Scope, status: int) -> None:
        """Write into the audit log who read a story, and who was refused."""
        context = context_of_scope(scope)
        if context.member is None or status not in (200, 403, 404):
            return
        known: Any = scope
        params = known.get("path_params", {})
        project = context.project
        if status == 200 and project is not None and project.need == READ:
            what = (context.actor, project.id, params)
            await asyncio.to_thread(self.looks.looked, *what)
        elif status == 403 or (status == 404 and project is None and "project_id" in params):
            asked = (known.get("path_template") or "none", params.get("project_id"), status)
            await asyncio.to_thread(self.looks.refused, context.actor, *asked)

    # -- the request as such -----------------------------------------------------------------------

    def _judge_form(self, scope: HTTPScope, headers: Headers) -> None:
        """Refuse a foreign Host, a method or an address that no route has, and a large body."""
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() != self.settings.host:
            raise Refusal(421, "forbidden", "this server is not called that")
        if scope["method"] not in _METHODS:
            raise Refusal(405, "bad_input", "this method is not known here", allow="GET, POST")
        if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET_BYTES:
            raise Refusal(414, "bad_input", f"an address may have {TARGET_BYTES} bytes")
        if any(ord(char) < 32 for char in scope["path"]):
            raise Refusal(400, "bad_input", "an address holds no control characters")
        lengths = headers.get("content-length", ["0"])
        whole = all(length.isascii() and length.isdigit() for length in lengths)
        if "transfer-encoding" in headers or not whole or len(lengths) != 1:
            raise Refusal(411, "bad_input", "a request says how long it is")
        if int(lengths[0]) > BODY_MAX:
            raise Refusal(413, "bad_input", f"a request may have {BODY_MAX} bytes")

    def _client(self, scope: HTTPScope, headers: Headers) -> str:
        """Return the address that asks: the last one that no proxy of ours wrote down."""
        client = scope.get("client")
        address = client[0] if client else "unknown"
        chain = [
            part.strip() for line in headers.get("x-forwarded-for", []) for part in line.split(",")
        ]
        while chain and self._is_proxy(address):
            address = chain.pop()
        return address[:64]

    def _is_proxy(self, address: str) -> bool:
        try:
            known = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(known in network for network in self.settings.networks)

    # -- who asks ----------------------------------------------------------------------------------

    async def _identify(self, scope: HTTPScope, headers: Headers, context: RequestContext) -> str:
        """Find out who asks; return the name of a new visit, if the browser has none yet."""
        if given := headers.get("authorization"):
            scheme, _, token = given[0].partition(" ")
            if len(given) == 1 and scheme.lower() == "bearer":
                context.member = await self._member(token.strip(), cookie=False)
            if context.member is None:
                raise Refusal(
                    401,
                    "unauthorized",
                    "this token is unknown, revoked or has ended",
                    "whyfor login",
                )
            return ""
        self._judge_site(headers)
        if session := read_cookie(headers, SESSION):
            context.member = await self._member(session, cookie=True)
        if context.member is not None:
            context.form_token = form_token(session)
            return ""
        if scope["path"].startswith(API):
            return ""
        known = read_cookie(headers, VISIT)
        visit = known or secrets.token_urlsafe(24)
        context.form_token = form_token(visit)
        return "" if known else visit

    async def _count(self, scope: HTTPScope, context: RequestContext) -> None:
        """Raise TooMany if somebody asks too often. Files of ours are free."""
        if scope["path"].startswith(STATIC) or scope["path"] in ("/healthz", "/readyz"):
            return
        member = context.member
        key = f"token {member.token}" if member else f"address {context.ip}"
        await asyncio.to_thread(self.resources.limits.request, key, self.resources.now())

    async def _member(self, token: str, *, cookie: bool) -> Member | None:
        return await asyncio.to_thread(self.resources.member, token, cookie=cookie)

    def _judge_site(self, headers: Headers) -> None:
        """Refuse requests of other sites' pages, but for a link that somebody follows."""
        origins = [origin.lower() for origin in headers.get("origin", [])]
        if any(origin != self.settings.public_url for origin in origins):
            raise Refusal(403, "forbidden", "another site may not ask")
        sites = headers.get("sec-fetch-site", [])
        own = all(site in ("same-origin", "none") for site in sites)
        followed = headers.get("sec-fetch-mode") == ["navigate"]
        shown = headers.get("sec-fetch-dest") == ["document"]
        if not own and not (followed and shown):
            raise Refusal(403, "forbidden", "another site may not ask")

    async def _judge_change(
        self, scope: HTTPScope, headers: Headers, context: RequestContext, receive: Receive
    ) -> Receive:
        """Refuse a change by a browser that is not one of our forms. Programs change things through
        the API, with a token; there a cookie counts for nothing."""
        if scope["path"].startswith(API):
            if "authorization" not in headers:
                context.member = None
            return receive
        judge_form_headers(headers, [self.settings.public_url])
        if int(headers.get("content-length", ["0"])[0]) > FORM_BYTES:
            raise Refusal(413, "bad_input", f"a form may have {FORM_BYTES} bytes")
        body = await read_form_body(receive)
        if not hmac.compare_digest(read_form_token(body).encode(), context.form_token.encode()):
            raise stale_form()
        return replay_body(body, receive)


def form_token(secret: str) -> str:
    """Return what forms hold: only pages of the same session or visit can have it."""
    return hmac.new(secret.encode(), b"form", "sha256").hexdigest()


def session_cookie(token: str) -> str:
    """Return the header that signs a browser in; an empty token signs it out."""
    ending = "" if token else "; Max-Age=0"
    return f"{SESSION}={token}; Path=/; Secure; HttpOnly; SameSite=Lax{ending}"


def _with_visit(send: Send, visit: str) -> Send:
    """Give a browser that is not signed in a cookie with its first page."""
    if not visit:
        return send
    cookie = f"{VISIT}={quote(visit)}; Path=/; Secure; HttpOnly; SameSite=Lax".encode()

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), (b"set-cookie", cookie)]
        await send(message)

    return sending
