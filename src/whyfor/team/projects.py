"""Projects of the team: making them, their members, and their settings."""

from __future__ import annotations

from msgspec.structs import replace

from whyfor.model.accounts import (
    PROJECT_ROLES,
    VISIBILITIES,
    AuditNote,
    ProjectChange,
    ProjectStanding,
)
from whyfor.model.errors import BadInput
from whyfor.team.access import ProjectAccess
from whyfor.team.actor import TeamActor
from whyfor.team.entry import check_email
from whyfor.team.resources import TeamResources

UNDO_MS = 7 * 86_400_000  # until a project is deleted, or kept for a shorter time
_QUOTA_MOST = 1 << 50
_DAYS_MOST = 36_500


def create_project(actor: TeamActor, name: str) -> int:
    """Make a project whose admin is the one who makes it. Raises BadInput if the name is taken."""
    title = _check_title(name)
    with actor.reading() as accounts:
        number = accounts.create_project(actor.member.organisation, title, actor.now)
        actor.write(accounts, AuditNote("changed", "project.create", title, number))
    return number


def add_member(actor: TeamActor, project: ProjectAccess, email: str, role: str) -> None:
    """Add somebody of the team to a project. Nobody adds themselves."""
    address = check_email(email)
    _check_role(role)
    note = AuditNote("changed", "member.add", f"{address} as {role}", project.id)
    with actor.changing(note) as accounts:
        accounts.add_member(project.id, address, role, actor.now)


def change_member(actor: TeamActor, project: ProjectAccess, person: int, role: str) -> None:
    _check_role(role)
    with actor.reading() as accounts:
        name = accounts.names().get(person, "")
        accounts.set_project_role(project.id, person, role)
        note = AuditNote("changed", "member.role", f"{name}: {role}", project.id)
        actor.write(accounts, note)


def remove_member(actor: TeamActor, project: ProjectAccess, person: int) -> None:
    with actor.reading() as accounts:
        name = accounts.names().get(person, "")
        accounts.remove_member(project.id, person)
        actor.write(accounts, AuditNote("changed", "member.remove", name, project.id))


def set_visibility(actor: TeamActor, project: ProjectAccess, visibility: str) -> None:
    """Show the team stories, or figures alone."""
    if visibility not in VISIBILITIES:
        raise BadInput("a project shows stories or metrics", "Choose one of them.")
    _change(actor, project, "project.visibility", visibility, visibility=visibility)


def set_quota(actor: TeamActor, project: ProjectAccess, megabytes: int | None) -> None:
    """Limit what a project may hold; None is no limit."""
    if megabytes is not None and not 1 <= megabytes << 20 <= _QUOTA_MOST:
        raise BadInput("a quota has 1 MB or more", "Leave it empty for no limit.")
    size = None if megabytes is None else megabytes << 20
    said = f"{megabytes} MB" if megabytes else "no limit"
    _change(actor, project, "project.quota", said, quota_bytes=size)


def is_shorter(project: ProjectAccess, days: int | None) -> bool:
    """Return whether a project would keep things for a shorter time than now."""
    now = project.standing.retention_days
    return days is not None and (now is None or days < now)


def set_retention(actor: TeamActor, project: ProjectAccess, days: int | None) -> None:
    """Keep sessions for so many days after their last event; None is for good. What is shorter
    holds in seven days, so that it can be undone."""
    if days is not None and not 1 <= days <= _DAYS_MOST:
        raise BadInput("a project keeps sessions for 1 day to 100 years", "Choose another number.")
    start = project.standing.retention_from
    if is_shorter(project, days):
        start = actor.now + UNDO_MS
    elif days is None or (start is not None and start <= actor.now):
        start = None
    said = f"{days} days" if days else "for good"
    _change(actor, project, "project.retention", said, retention_days=days, retention_from=start)


def set_taking(actor: TeamActor, project: ProjectAccess, typed: str, *, taking: bool) -> None:
    """Stop or begin to take uploads. To stop, the project's name has to be typed."""
    if not taking:
        _check_typed(project, typed)
    action = "project.take" if taking else "project.stop"
    _change(actor, project, action, project.name, taking=taking)


def delete_project(actor: TeamActor, project: ProjectAccess, typed: str) -> None:
    """Delete a project in seven days. Its name has to be typed."""
    _check_typed(project, typed)
    at = actor.now + UNDO_MS
    _change(actor, project, "project.delete", project.name, taking=False, delete_at=at)


def keep_project(actor: TeamActor, project: ProjectAccess) -> None:
    """Take the deletion of a project back."""
    _change(actor, project, "project.keep", project.name, taking=True, delete_at=None)


def delete_due_projects(team: TeamResources) -> list[int]:
    """Delete projects whose seven days are over: their objects, then their rows. If it breaks off
    in between, the next turn does the rest. Return which are gone."""
    with team.database.accounts.by(None) as accounts:
        due = accounts.due_projects()
    for project in due:
        team.blobs(project).keep_only(())
        with team.database.accounts.by(None) as accounts:
            accounts.purge_project(project)
    return due


def _change(
    actor: TeamActor, project: ProjectAccess, action: str, said: str, **new: object
) -> None:
    with actor.changing(AuditNote("changed", action, said, project.id)) as accounts:
        accounts.change_project(project.id, replace(_now(project.standing), **new))


def _now(standing: ProjectStanding) -> ProjectChange:
    return ProjectChange(
        standing.name,
        standing.visibility,
        standing.retention_days,
        standing.quota_bytes,
        standing.taking,
        standing.delete_at,
        standing.retention_from,
    )


def _check_title(name: str) -> str:
    title = " ".join(name.split())
    if not 1 <= len(title) <= 100 or not title.isprintable():
        raise BadInput("a project's name has 1 to 100 characters", "Choose another.")
    return title


def _check_role(role: str) -> None:
    if role not in PROJECT_ROLES:
        raise BadInput("a member is admin, member or viewer", "Choose one of them.")


def _check_typed(project: ProjectAccess, typed: str) -> None:
    if typed.strip() != project.name:
        raise BadInput("this is not the project's name", f"Type it: {project.name}")
