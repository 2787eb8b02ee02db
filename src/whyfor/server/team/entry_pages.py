"""The pages by which people enter: sign in, join by a link, let a device in."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from litestar import Request, Response, get, post
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect, Template

from whyfor.model.accounts import OpenInvite
from whyfor.model.errors import BadInput, Forbidden, NotFound, WhyforError
from whyfor.server.forms import FormData, go_to
from whyfor.server.messages import read_cookie, read_headers
from whyfor.server.page import render_page
from whyfor.server.team.context import Asked, SignedIn, Team
from whyfor.server.team.guard import session_cookie
from whyfor.team import entry
from whyfor.team.access import ANYONE, MEMBER
from whyfor.team.devices import answer_device, read_code, waiting_device
from whyfor.team.entry import Entering
from whyfor.team.oidc import enter_with_identity
from whyfor.team.oidc_provider import CALLBACK, OidcAttempt
from whyfor.team.tokens import LINK_PREFIX, is_token

_ATTEMPT = "__Host-whyfor-oidc"  # the cookie of somebody who is at the provider
_ENTRY: dict[str, Any] = {"opt": {"access": ANYONE}, "include_in_schema": False}
_BROWSERS = ("Firefox", "Edg", "Chrome", "Safari")
_SYSTEMS = ("Windows", "Android", "iPhone", "Mac OS", "Linux")
_NAMES = {"Edg": "Edge", "Mac OS": "macOS"}


class EntryForm(msgspec.Struct, frozen=True):
    form: str
    next: str = ""
    name: str = ""
    email: str = ""
    credential: str = ""
    code: str = ""
    answer: str = ""


def _entering(request: Request[Any, Any, Any], context: Asked) -> Entering:
    """Return from where and with what somebody enters, in words."""
    agent = request.headers.get("user-agent", "")
    browser = next((name for name in _BROWSERS if name in agent), "a browser")
    system = next((name for name in _SYSTEMS if name in agent), "")
    words = [_NAMES.get(word, word) for word in (browser, system) if word]
    return Entering(context.ip, " on ".join(words))


def _signed_in(token: str, next_path: str) -> Redirect:
    answer = go_to(next_path or "/", "/")
    answer.headers["set-cookie"] = session_cookie(token)
    return answer


@get("/signin", sync_to_thread=True, **_ENTRY)
def sign_in_page(team: Team, next: FromQuery[str] = "", error: FromQuery[str] = "") -> Template:
    return render_page(
        "signin.html",
        here="signin",
        host=team.settings.host,
        with_oidc=team.settings.oidc is not None,
        next=next,
        error=error[:200],
    )


@post("/signin/options", status_code=200, sync_to_thread=True, **_ENTRY)
def sign_in_options(team: Team, context: Asked, data: FormData[EntryForm]) -> Response[bytes]:  # noqa: ARG001 - its token was checked
    team.limits.enter(context.ip, team.now())
    return Response(entry.sign_in_options(team), media_type="application/json")


@post("/signin/passkey", sync_to_thread=True, **_ENTRY)
def sign_in_with_passkey(
    request: Request[Any, Any, Any], team: Team, context: Asked, data: FormData[EntryForm]
) -> Redirect:
    team.limits.enter(context.ip, team.now())
    try:
        token = entry.sign_in(team, data.credential, _entering(request, context))
    except (BadInput, Forbidden) as error:
        return _again(error, data.next)
    return _signed_in(token, data.next)


@post("/signout", sync_to_thread=True, opt={"access": MEMBER}, include_in_schema=False)
def sign_out(context: Asked) -> Redirect:
    entry.sign_out(context.actor)
    answer = Redirect("/signin", status_code=303)
    answer.headers["set-cookie"] = session_cookie("")
    return answer


# -- the organisation's provider -------------------------------------------------------------------


@post("/signin/oidc", sync_to_thread=True, **_ENTRY)
def begin_oidc(team: Team, context: Asked, data: FormData[EntryForm]) -> Redirect:
    team.limits.enter(context.ip, team.now())
    where, attempt = team.provider.begin(data.next, data.code)
    kept = base64.urlsafe_b64encode(msgspec.json.encode(attempt)).decode()
    answer = Redirect(where, status_code=303)
    answer.headers["set-cookie"] = _attempt_cookie(kept, 600)
    return answer


@get(CALLBACK, sync_to_thread=True, **_ENTRY)
def finish_oidc(request: Request[Any, Any, Any], team: Team, context: Asked) -> Redirect:
    """Come back from the provider; `state` and `code` are in the address."""
    team.limits.enter(context.ip, team.now())
    kept = read_cookie(read_headers(request.scope), _ATTEMPT)
    said = request.query_params
    try:
        attempt = msgspec.json.decode(base64.urlsafe_b64decode(kept), type=OidcAttempt)
        who = team.provider.finish(attempt, said.get("code", ""), said.get("state", ""))
        entering = _entering(request, context)
        token = enter_with_identity(team, who, attempt.invite, entering)
    except (msgspec.DecodeError, ValueError):
        return _again(BadInput("this sign-in was not begun in this browser", ""), "")
    except WhyforError as error:
        return _again(error, "")
    return _signed_in(token, attempt.next)


def _attempt_cookie(value: str, seconds: int) -> str:
    return f"{_ATTEMPT}={value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={seconds}"


def _again(error: WhyforError, next_path: str) -> Redirect:
    said = urlencode({"error": f"{error.message}. {error.hint}", "next": next_path})
    return Redirect(f"/signin?{said}", status_code=303)


# -- an invitation ---------------------------------------------------------------------------------


@get("/join/{code:str}", sync_to_thread=True, **_ENTRY)
def join_page(team: Team, context: Asked, code: FromPath[str]) -> Template:
    team.limits.enter(context.ip, team.now())
    invite: OpenInvite | None = None
    if is_token(code, LINK_PREFIX):
        try:
            invite = entry.read_invite(team, code)
        except BadInput:
            invite = None
    return render_page(
        "join.html",
        here="join",
        invite=invite,
        code=code,
        with_oidc=team.settings.oidc is not None,
    )


@post("/join/{code:str}/options", status_code=200, sync_to_thread=True, **_ENTRY)
def join_options(
    team: Team, context: Asked, code: FromPath[str], data: FormData[EntryForm]
) -> Response[bytes]:
    team.limits.enter(context.ip, team.now())
    found = entry.join_options(team, code, data.name, data.email)
    return Response(found, media_type="application/json")


@post("/join/{code:str}/accept", sync_to_thread=True, **_ENTRY)
def join(
    request: Request[Any, Any, Any],
    team: Team,
    context: Asked,
    code: FromPath[str],
    data: FormData[EntryForm],
) -> Redirect:
    team.limits.enter(context.ip, team.now())
    entering = _entering(request, context)
    token = entry.join(team, code, data.name, data.email, data.credential, entering)
    return _signed_in(token, "/")


# -- a device --------------------------------------------------------------------------------------


@get("/device", opt={"access": MEMBER}, include_in_schema=False, sync_to_thread=True)
def device_page(context: Asked, member: SignedIn, code: FromQuery[str] = "") -> Response[Any]:
    """Show the device that waits with a code, and ask; without one, ask for the code."""
    wanted = read_code(code)
    if not member.is_fresh(context.resources.now()):
        back = f"/device?code={wanted}" if wanted else "/device"
        said = "Sign in again to let a device in."
        return Redirect(f"/signin?next={quote(back, safe='')}&error={quote(said)}", status_code=303)
    found, said = None, ""
    if wanted or code:
        try:
            found = waiting_device(context.actor, wanted)
        except NotFound as error:
            said = error.message
    with context.actor.reading() as accounts:
        projects = sum(1 for project in accounts.projects() if project.role)
    shown = {"device": found, "code": wanted, "error": said, "projects": projects}
    return render_page("device.html", here="device", now=context.resources.now(), **shown)


@post("/device/answer", opt={"access": MEMBER}, include_in_schema=False, sync_to_thread=True)
def answer(context: Asked, member: SignedIn, data: FormData[EntryForm]) -> Template:
    """Let a device in, or not."""
    if not member.is_fresh(context.resources.now()):
        raise Forbidden("you signed in too long ago", "Sign in again, then let the device in.")
    allowed = data.answer == "allow"
    found = answer_device(context.actor, read_code(data.code), allowed=allowed)
    return render_page("device_done.html", here="device", device=found, allowed=allowed)


HANDLERS = [
    *(sign_in_page, sign_in_options, sign_in_with_passkey, sign_out, begin_oidc, finish_oidc),
    *(join_page, join_options, join, device_page, answer),
]
