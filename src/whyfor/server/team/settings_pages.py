"""Settings of one project: members, visibility, quota, and what is dangerous."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
from litestar import get, post
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect, Template

from whyfor.model.accounts import PROJECT_ROLES
from whyfor.model.errors import BadInput, Forbidden
from whyfor.model.times import DAY
from whyfor.server.forms import FormData
from whyfor.server.page import render_page
from whyfor.server.team.context import Asked, OfProject
from whyfor.team import projects
from whyfor.team.access import MANAGE, ProjectAccess
from whyfor.team.actor import AccountTransaction, TeamActor

_PLACE = "/projects/{project_id:int}/settings"
_PAGE: dict[str, Any] = {
    "opt": {"access": MANAGE},
    "include_in_schema": False,
    "sync_to_thread": True,
}
_ASKS = ("metrics", "stories", "stop", "delete", "remove")
_KEPT = {"": "for good", "30": "30 days", "90": "90 days", "180": "180 days", "365": "1 year"}
_KEPT |= {"730": "2 years"}


class SettingsForm(msgspec.Struct, frozen=True):
    form: str
    email: str = ""
    role: str = "member"
    visibility: str = ""
    megabytes: str = ""
    days: str = ""
    typed: str = ""
    sure: str = ""


@get(_PLACE, **_PAGE)
def settings_page(context: Asked, project: OfProject, ask: FromQuery[str] = "") -> Template:
    """Show the settings; `ask` names what has to be confirmed first."""
    actor = context.actor
    with actor.reading() as accounts:
        members = accounts.members(project.id)
        sessions, stories = accounts.sizes(project.id)
        tokens = accounts.tokens()
        older = _older(actor, accounts, project, ask)
    devices = {
        member.id: [
            token.name
            for token in tokens
            if token.person == member.id and token.kind == "device" and token.revoked_at is None
        ]
        for member in members
    }
    return render_page(
        "settings.html",
        here="projects",
        project=project.standing,
        me=actor.member,
        members=members,
        sessions=sessions,
        stories=stories,
        devices=devices,
        roles=PROJECT_ROLES,
        kept=_kept(project),
        older=older,
        soon=actor.now + projects.UNDO_MS,
        now=actor.now,
        ask=ask if ask in _ASKS or ask.isdigit() or _asked_days(ask) else "",
        asked_days=_asked_days(ask),
    )


@post(f"{_PLACE}/members", **_PAGE)
def add_member(context: Asked, project: OfProject, data: FormData[SettingsForm]) -> Redirect:
    projects.add_member(context.actor, project, data.email, data.role)
    return _back(project, "#members")


@post(f"{_PLACE}/members/{{person:int}}/role", **_PAGE)
def change_member(
    context: Asked, project: OfProject, person: FromPath[int], data: FormData[SettingsForm]
) -> Redirect:
    projects.change_member(context.actor, project, person, data.role)
    return _back(project, "#members")


@post(f"{_PLACE}/members/{{person:int}}/remove", **_PAGE)
def remove_member(
    context: Asked, project: OfProject, person: FromPath[int], data: FormData[SettingsForm]
) -> Redirect:
    if not data.sure:
        return _back(project, f"?ask={person}#members")
    projects.remove_member(context.actor, project, person)
    if person == context.actor.member.person:
        return Redirect("/projects", status_code=303)
    return _back(project, "#members")


@post(f"{_PLACE}/visibility", **_PAGE)
def set_visibility(context: Asked, project: OfProject, data: FormData[SettingsForm]) -> Redirect:
    wider = data.visibility == "stories" and project.visibility != "stories"
    if wider and not data.sure:
        return _back(project, "?ask=stories#see")
    projects.set_visibility(context.actor, project, data.visibility)
    return _back(project, "#see")


@post(f"{_PLACE}/keep", **_PAGE)
def set_keeping(context: Asked, project: OfProject, data: FormData[SettingsForm]) -> Redirect:
    megabytes = _number(data.megabytes)
    old = project.standing.quota_bytes
    if megabytes != (old >> 20 if old else None):
        projects.set_quota(context.actor, project, megabytes)
    days = _number(data.days)
    if days == project.standing.retention_days:
        return _back(project, "#keep")
    if projects.is_shorter(project, days) and not data.sure:
        return _back(project, f"?ask=keep-{days}#keep")
    projects.set_retention(context.actor, project, days)
    return _back(project, "#keep")


@post(f"{_PLACE}/stop", **_PAGE)
def stop(context: Asked, project: OfProject, data: FormData[SettingsForm]) -> Redirect:
    _check_fresh(context)
    projects.set_taking(context.actor, project, data.typed, taking=False)
    return _back(project, "#danger")


@post(f"{_PLACE}/take", **_PAGE)
def take(context: Asked, project: OfProject, data: FormData[SettingsForm]) -> Redirect:  # noqa: ARG001 - its token was checked
    projects.set_taking(context.actor, project, "", taking=True)
    return _back(project, "#danger")


@post(f"{_PLACE}/delete", **_PAGE)
def delete(context: Asked, project: OfProject, data: FormData[SettingsForm]) -> Redirect:
    _check_fresh(context)
    projects.delete_project(context.actor, project, data.typed)
    return _back(project, "#danger")


@post(f"{_PLACE}/undelete", **_PAGE)
def undelete(context: Asked, project: OfProject, data: FormData[SettingsForm]) -> Redirect:  # noqa: ARG001 - its token was checked
    projects.keep_project(context.actor, project)
    return _back(project, "#danger")


def _kept(project: ProjectAccess) -> list[tuple[str, str]]:
    """Return how long a project may keep things: some lengths, and what it is now."""
    now = str(project.standing.retention_days or "")
    return list({**_KEPT, **({now: f"{now} days"} if now not in _KEPT else {})}.items())


def _asked_days(ask: str) -> int | None:
    """Return for how many days a project would keep things, if that has to be confirmed."""
    word, _, days = ask.partition("-")
    known = word == "keep" and days.isascii() and days.isdigit() and len(days) < 6
    return int(days) if known else None


def _older(actor: TeamActor, accounts: AccountTransaction, project: ProjectAccess, ask: str) -> int:
    """Return how many sessions would go."""
    days = _asked_days(ask) or project.standing.retention_days
    return accounts.count_older(project.id, actor.now - days * DAY) if days else 0


def _back(project: ProjectAccess, where: str) -> Redirect:
    return Redirect(f"/projects/{project.id}/settings{quote(where, safe='?=#&')}", status_code=303)


def _check_fresh(context: Asked) -> None:
    if not context.actor.member.is_fresh(context.resources.now()):
        raise Forbidden("you signed in too long ago for this", "Sign out and in again, then do it.")


def _number(text: str) -> int | None:
    found = text.strip()
    if not found:
        return None
    if not found.isascii() or not found.isdigit() or len(found) > 9:
        raise BadInput("this is no whole number", "Leave it empty for no limit.")
    return int(found)


HANDLERS = [
    *(settings_page, add_member, change_member, remove_member, set_visibility, set_keeping),
    *(stop, take, delete, undelete),
]
