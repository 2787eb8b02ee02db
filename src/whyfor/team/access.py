"""Who may do what: the one place where a request's rights are decided.

Rights come from three things at once: what the person is in the project or the organisation, what
the token allows, and what the request needs. Being an admin of the organisation gives the right to
manage a project, never to read it. PostgreSQL decides about each row again (store/postgres).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from whyfor.model.accounts import Member, ProjectStanding
from whyfor.model.errors import Forbidden, NotFound
from whyfor.model.sync import SharedChange
from whyfor.store.objects import ObjectBlobs
from whyfor.store.protocol import SharedStore
from whyfor.team.resources import TeamResources

# What a route may need, and the scope that a token must have for it.
ANYONE = "anyone"  # nobody has to be signed in
MEMBER = "member"  # anybody of the organisation
MANAGE_TEAM = "manage_team"  # owner or admin of the organisation
OWN_TEAM = "own_team"  # owner
FIGURES = "figures"  # a project's numbers: any role in it
READ = "read"  # a project's stories: any role in it; others' words only where `stories` are shown
WRITE = "write"  # upload to a project: its admins and members
MANAGE = "manage"  # a project's settings: its admins, and those of the organisation
SCOPE = {
    MEMBER: "read",
    FIGURES: "read",
    READ: "read",
    WRITE: "write",
    MANAGE: "admin",
    MANAGE_TEAM: "admin",
    OWN_TEAM: "admin",
}
OF_PROJECT = (FIGURES, READ, WRITE, MANAGE)
NEEDS = (ANYONE, *SCOPE)
_LARGEST = (1 << 31) - 1  # number of a project


class ProjectAccess:
    """One member's access to one project, for one request."""

    def __init__(
        self, resources: TeamResources, member: Member, standing: ProjectStanding, need: str
    ) -> None:
        self.resources = resources
        self.member = member
        self.standing = standing
        self.need = need
        self.id = standing.id
        self.name = standing.name
        self.role = standing.role
        self.visibility = standing.visibility

    @property
    def manages(self) -> bool:
        """Return whether the member may manage the project."""
        return self.role == "admin" or self.member.is_manager

    @contextmanager
    def reader(self) -> Iterator[SharedStore]:
        """Lend a store with what the member may read of the project."""
        with self.resources.database.store(self.member, self.id) as store:
            yield store

    @contextmanager
    def writer(self) -> Iterator[SharedStore]:
        """Lend a store with the member's own rows of the project, which may be written. Raises
        Forbidden if the request was not allowed to write."""
        if self.need != WRITE:
            raise Forbidden("this request may not write", "")
        with self.resources.database.store(self.member, self.id, writing=True) as store:
            yield store

    @property
    def person(self) -> int:
        return self.member.person

    def changes(self, after: int, limit: int) -> list[SharedChange]:
        """Return up to `limit` changes of the project after a number, in order."""
        with self.resources.database.store(self.member, self.id) as store:
            return store.uploads.changes(after, limit)

    def last_change(self) -> int:
        """Return the number of the project's latest change; 0 if there is none."""
        with self.resources.database.store(self.member, self.id) as store:
            return store.uploads.last_change()

    @property
    def blobs(self) -> ObjectBlobs:
        """Return the project's segments. Raises Forbidden if the request reads no stories."""
        if self.need not in (READ, WRITE):
            raise Forbidden("this request may not read segments", "")
        return self.resources.blobs(self.id)


def no_such_project() -> NotFound:
    """Return the one answer to whoever asks for a project that is not there, or not theirs."""
    return NotFound("no such project, or not yours", "Ask its admin to add you.")


def check_member(member: Member, need: str) -> None:
    """Raise Forbidden unless a member may do what is not about one project."""
    _check_scope(member, need)
    if need == OWN_TEAM and member.role != "owner":
        raise Forbidden("this is for owners of the organisation", "Ask one of them.")
    if need == MANAGE_TEAM and not member.is_manager:
        raise Forbidden("this is for admins of the organisation", "Ask one of them.")
    if need == MANAGE_TEAM and member.projects is not None:
        raise Forbidden("this token is good for some projects only", "Use another token.")


def project_access(
    resources: TeamResources, member: Member, project_id: int, need: str
) -> ProjectAccess:
    """Decide about one request of one project. Raises NotFound, always the same one, if the project
    is not there or nothing to this member; Forbidden if the member may do less with it."""
    known = 0 < project_id <= _LARGEST
    standing = resources.database.accounts.project(member, project_id) if known else None
    if standing is None or (standing.role is None and need != MANAGE):
        raise no_such_project()
    _check_scope(member, need)
    access = ProjectAccess(resources, member, standing, need)
    if need == WRITE and standing.role not in ("admin", "member"):
        raise Forbidden("viewers do not write to this project", "Ask its admin.")
    if need == MANAGE and not access.manages:
        raise Forbidden("this is for admins of the project", "Ask one of them.")
    return access


def _check_scope(member: Member, need: str) -> None:
    if SCOPE[need] not in member.scopes:
        raise Forbidden(f"this token has no scope {SCOPE[need]}", "Use another token.")
