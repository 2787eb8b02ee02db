"""People of the team: invitations, roles, devices, tokens; and one's own account."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect, Template

from whyfor.model.accounts import PROJECT_ROLES, ROLES, TeamPerson, TeamToken
from whyfor.model.errors import BadInput
from whyfor.model.times import DAY
from whyfor.server.forms import FormData
from whyfor.server.page import render_page
from whyfor.server.team.context import Asked, SignedIn
from whyfor.team import entry, people
from whyfor.team.access import MANAGE_TEAM, MEMBER

_LATE = 3 * DAY  # ms
_ENDED_SHOWN = 30 * DAY  # ms that a token is listed after its end
_PAGE: dict[str, Any] = {"include_in_schema": False, "sync_to_thread": True}
_TEAM: dict[str, Any] = {"opt": {"access": MANAGE_TEAM}, **_PAGE}
_OWN: dict[str, Any] = {"opt": {"access": MEMBER}, **_PAGE}
Numbers = Annotated[list[str], msgspec.Meta(max_length=200)]


class PersonForm(msgspec.Struct, frozen=True):
    form: str
    email: str = ""
    role: str = "member"
    projects: Numbers = []
    project_role: str = "member"


class TokenForm(msgspec.Struct, frozen=True):
    form: str
    kind: str = "personal"
    name: str = ""
    scopes: Annotated[list[str], msgspec.Meta(max_length=9)] = []
    projects: Numbers = []
    days: str = "90"
    credential: str = ""


class PersonRow(msgspec.Struct, frozen=True):
    person: TeamPerson
    devices: tuple[TeamToken, ...]
    signs_in: str
    manageable: bool


# -- the team --------------------------------------------------------------------------------------


@get("/people", **_TEAM)
def people_page(context: Asked, q: FromQuery[str] = "") -> Template:
    return _people(context, q)


@post("/people/invite", **_TEAM)
def invite(context: Asked, data: FormData[PersonForm]) -> Template:
    chosen = _numbers(data.projects)
    actor = context.actor
    link = people.invite_person(actor, data.email, data.role, chosen, data.project_role)
    return _people(context, "", link=link, link_for=data.email)


@post("/people/invites/{number:int}/renew", **_TEAM)
def renew(context: Asked, number: FromPath[int], data: FormData[PersonForm]) -> Template:
    return _people(
        context, "", link=people.renew_invite(context.actor, number), link_for=data.email
    )


@post("/people/invites/{number:int}/withdraw", **_TEAM)
def withdraw(context: Asked, number: FromPath[int], data: FormData[PersonForm]) -> Redirect:  # noqa: ARG001 - its token was checked
    people.withdraw_invite(context.actor, number)
    return Redirect("/people", status_code=303)


@post("/people/{person:int}/role", **_TEAM)
def change_role(context: Asked, person: FromPath[int], data: FormData[PersonForm]) -> Redirect:
    people.change_role(context.actor, person, data.role)
    return Redirect("/people", status_code=303)


@post("/people/{person:int}/suspend", **_TEAM)
def suspend(context: Asked, person: FromPath[int], data: FormData[PersonForm]) -> Redirect:  # noqa: ARG001 - its token was checked
    people.suspend_person(context.actor, person, suspended=True)
    return Redirect("/people", status_code=303)


@post("/people/{person:int}/resume", **_TEAM)
def resume(context: Asked, person: FromPath[int], data: FormData[PersonForm]) -> Redirect:  # noqa: ARG001 - its token was checked
    people.suspend_person(context.actor, person, suspended=False)
    return Redirect("/people", status_code=303)


@post("/people/{person:int}/passkey", **_TEAM)
def passkey_link(context: Asked, person: FromPath[int], data: FormData[PersonForm]) -> Template:
    link = people.passkey_link(context.actor, person)
    return _people(context, "", link=link, link_for=data.email)


def _people(context: Asked, q: str, **more: Any) -> Template:
    actor = context.actor
    with actor.reading() as accounts:
        found = accounts.people()
        tokens = accounts.tokens()
        keys = {key.person for key in accounts.passkeys()}
        invites = accounts.invites(actor.now)
        projects = accounts.projects()
    with_oidc = context.resources.settings.oidc is not None
    without_passkey = "organisation" if with_oidc else "nothing: make a link"
    rows = [_row(person, tokens, keys, actor.member, without_passkey) for person in found]
    shown = [row for row in rows if _matches(row, q)]
    shown_tokens = [token for token in tokens if _is_shown(token, actor.now)]
    return render_page(
        "people.html",
        here="people",
        rows=shown,
        q=q,
        invites=invites,
        tokens=shown_tokens,
        total=len(rows),
        devices=sum(len(row.devices) for row in rows),
        projects=projects,
        names={project.id: project.name for project in projects},
        me=actor.member,
        roles=[role for role in ROLES if role != "owner" or actor.member.role == "owner"],
        project_roles=PROJECT_ROLES,
        now=actor.now,
        late_before=actor.now - _LATE,
        **{"link": "", "link_for": "", **more},
    )


def _row(
    person: TeamPerson,
    tokens: list[TeamToken],
    keys: set[int],
    me: SignedIn,
    without_passkey: str,
) -> PersonRow:
    devices = [
        token
        for token in tokens
        if token.person == person.id and token.kind == "device" and token.revoked_at is None
    ]
    above = person.role == "owner" and me.role != "owner"
    signs_in = "passkey" if person.id in keys else without_passkey
    return PersonRow(person, tuple(devices), signs_in, person.id != me.person and not above)


def _matches(row: PersonRow, q: str) -> bool:
    words = [row.person.name, row.person.email, *(device.name for device in row.devices)]
    return any(q.lower() in word.lower() for word in words)


def _is_shown(token: TeamToken, now: int) -> bool:
    ended = token.revoked_at or token.expires_at
    return token.kind in ("personal", "ci") and ended > now - _ENDED_SHOWN


# -- one's own account -----------------------------------------------------------------------------


@get("/account", **_OWN)
def account_page(context: Asked) -> Template:
    return _account(context)


@post("/account/tokens", **_OWN)
def new_token(context: Asked, data: FormData[TokenForm]) -> Template:
    days = int(data.days) if data.days.isascii() and data.days.isdigit() else 0
    token = people.create_token(
        context.actor, data.kind, data.name, data.scopes, _numbers(data.projects), days
    )
    return _account(context, made=token, made_name=data.name)


@post("/account/tokens/{number:int}/revoke", **_OWN)
def revoke(context: Asked, number: FromPath[int], data: FormData[TokenForm]) -> Redirect:
    people.revoke_token(context.actor, number)
    return Redirect("/people" if data.name == "people" else "/account", status_code=303)


@post("/account/passkeys/options", opt={"access": MEMBER}, status_code=200, **_PAGE)
def passkey_options(context: Asked, data: FormData[TokenForm]) -> Response[bytes]:  # noqa: ARG001 - its token was checked
    return Response(entry.add_options(context.actor), media_type="application/json")


@post("/account/passkeys", **_OWN)
def add_passkey(context: Asked, data: FormData[TokenForm]) -> Redirect:
    entry.add_passkey(context.actor, data.credential)
    return Redirect("/account", status_code=303)


@post("/account/passkeys/{number:int}/remove", **_OWN)
def remove_passkey(context: Asked, number: FromPath[int], data: FormData[TokenForm]) -> Redirect:  # noqa: ARG001 - its token was checked
    people.remove_passkey(context.actor, number)
    return Redirect("/account", status_code=303)


def _account(context: Asked, **more: Any) -> Template:
    actor = context.actor
    with actor.reading() as accounts:
        tokens = [each for each in accounts.tokens() if each.person == actor.member.person]
        keys = [each for each in accounts.passkeys() if each.person == actor.member.person]
        projects = accounts.projects()
    return render_page(
        "account.html",
        here="account",
        me=actor.member,
        passkeys=keys,
        now=actor.now,
        devices=[each for each in tokens if each.kind == "device" and each.revoked_at is None],
        tokens=[each for each in tokens if _is_shown(each, actor.now)],
        projects=[project for project in projects if project.role],
        names={project.id: project.name for project in projects},
        late_before=actor.now - _LATE,
        **{"made": "", "made_name": "", **more},
    )


def _numbers(given: list[str]) -> list[int]:
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in given):
        raise BadInput("a project is named by its number", "Choose from the list.")
    return [int(each) for each in given]


HANDLERS = [
    *(people_page, invite, renew, withdraw, change_role, suspend, resume, passkey_link),
    *(account_page, new_token, revoke, passkey_options, add_passkey, remove_passkey),
]
