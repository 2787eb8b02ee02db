"""People of the team: inviting them, their roles, their tokens."""

from __future__ import annotations

from whyfor.model.accounts import (
    PROJECT_ROLES,
    ROLES,
    SCOPES,
    AuditNote,
    NewInvite,
    NewToken,
    TeamToken,
)
from whyfor.model.errors import BadInput, Forbidden
from whyfor.team.actor import TeamActor
from whyfor.team.entry import check_email
from whyfor.team.tokens import LINK_PREFIX, hash_token, make_token

INVITE_MS = 7 * 86_400_000
PASSKEY_LINK_MS = 86_400_000
TOKEN_DAYS_MOST = 365
_DAY = 86_400_000


def invite_person(
    actor: TeamActor, email: str, role: str, projects: list[int], project_role: str
) -> str:
    """Invite somebody; return the link, which is shown once. Raises BadInput, Forbidden."""
    address = check_email(email)
    _check_word(role, ROLES)
    _check_word(project_role, PROJECT_ROLES)
    token = make_token(LINK_PREFIX)
    with actor.changing(AuditNote("changed", "person.invite", f"{address} as {role}")) as accounts:
        known = {project.id for project in accounts.projects()}
        if set(projects) - known:
            raise BadInput("no such project, or not yours", "Choose from the list.")
        new = NewInvite(
            hash_token(token),
            actor.member.organisation,
            role,
            actor.now + INVITE_MS,
            email=address,
            projects=tuple(projects),
            project_role=project_role,
        )
        accounts.add_invite(new, actor.now)
    return _link(actor, token)


def renew_invite(actor: TeamActor, number: int) -> str:
    """Withdraw an invitation and make the same again; return its link."""
    token = make_token(LINK_PREFIX)
    with actor.changing(AuditNote("changed", "person.invite", "a new link")) as accounts:
        old = accounts.withdraw_invite(number, actor.now)
        new = NewInvite(
            hash_token(token),
            old.organisation,
            old.role,
            actor.now + INVITE_MS,
            old.email,
            old.person,
            old.projects,
            old.project_role,
        )
        accounts.add_invite(new, actor.now)
    return _link(actor, token)


def withdraw_invite(actor: TeamActor, number: int) -> None:
    with actor.reading() as accounts:
        old = accounts.withdraw_invite(number, actor.now)
        actor.write(accounts, AuditNote("changed", "person.uninvite", old.email or ""))


def passkey_link(actor: TeamActor, person: int) -> str:
    """Return a link with which somebody who lost theirs registers a new passkey."""
    token = make_token(LINK_PREFIX)
    with actor.reading() as accounts:
        name = accounts.names().get(person, "")
        new = NewInvite(
            hash_token(token),
            actor.member.organisation,
            "member",
            actor.now + PASSKEY_LINK_MS,
            person=person,
        )
        accounts.add_invite(new, actor.now)
        actor.write(accounts, AuditNote("changed", "person.passkey_link", name))
    return _link(actor, token)


def change_role(actor: TeamActor, person: int, role: str) -> None:
    """Give somebody another role in the team. Raises BadInput if no owner would be left."""
    _check_word(role, ROLES)
    with actor.reading() as accounts:
        accounts.set_role(person, role)
        name = accounts.names().get(person, "")
        actor.write(accounts, AuditNote("changed", "person.role", f"{name}: {role}"))
    actor.resources.tokens.drop(person)


def suspend_person(actor: TeamActor, person: int, *, suspended: bool) -> None:
    """Keep somebody out at once, with all their tokens; or let them in again, with new ones."""
    with actor.reading() as accounts:
        name = accounts.names().get(person, "")
        accounts.set_state(person, "suspended" if suspended else "active")
        if suspended:
            accounts.revoke_all(person, actor.now)
        action = "person.suspend" if suspended else "person.resume"
        actor.write(accounts, AuditNote("changed", action, name))
    actor.resources.tokens.drop(person)


def create_token(
    actor: TeamActor, kind: str, name: str, scopes: list[str], projects: list[int], days: int
) -> str:
    """Make a token for a program; return it, which is shown once. A CI token is for projects."""
    title = " ".join(name.split())[:80]
    if not title:
        raise BadInput("a token has a name", "Say what it is for.")
    if not scopes or set(scopes) - set(SCOPES):
        raise BadInput("a token has one scope or more", f"Choose from {', '.join(SCOPES)}.")
    if not 1 <= days <= TOKEN_DAYS_MOST:
        raise BadInput("a token lives for 1 to 365 days", "Choose fewer.")
    _check_word(kind, ("personal", "ci"))
    if kind == "ci" and (not projects or "admin" in scopes):
        raise BadInput("a CI token is for projects, and manages nothing", "Choose the projects.")
    if set(scopes) - set(actor.member.scopes):
        raise Forbidden("a token gives no more than the one that makes it", "Choose less.")
    token = make_token()
    with actor.changing(AuditNote("changed", "token.create", title)) as accounts:
        known = {project.id for project in accounts.projects()}
        if set(projects) - known:
            raise BadInput("no such project, or not yours", "Choose from the list.")
        given = tuple(projects) or actor.member.projects
        ends = actor.now + days * _DAY
        new = NewToken(hash_token(token), kind, title, token[:8], tuple(scopes), ends, given)
        accounts.add_token(new, actor.now)
    return token


def revoke_token(actor: TeamActor, number: int) -> TeamToken:
    """Revoke a token at once."""
    with actor.reading() as accounts:
        found = accounts.revoke(number, actor.now)
        actor.write(accounts, AuditNote("changed", "token.revoke", found.name))
    actor.resources.tokens.drop(found.person)
    return found


def remove_passkey(actor: TeamActor, number: int) -> None:
    with actor.changing(AuditNote("changed", "passkey.remove")) as accounts:
        own = [key for key in accounts.passkeys() if key.person == actor.member.person]
        if len(own) == 1 and own[0].id == number:
            raise BadInput("this is your only passkey", "Add another one first.")
        accounts.remove_passkey(number)


def _link(actor: TeamActor, token: str) -> str:
    return f"{actor.resources.settings.public_url}/join/{token}"


def _check_word(word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise BadInput(f"{word[:20]!r} is none of {', '.join(known)}", "Choose one of them.")
