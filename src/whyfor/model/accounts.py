"""People of a team, the tokens by which they are known, and their projects."""

from __future__ import annotations

import msgspec

ROLES = ("owner", "admin", "member")  # in the organisation
PROJECT_ROLES = ("admin", "member", "viewer")
VISIBILITIES = ("stories", "metrics")
SCOPES = ("read", "write", "admin")  # of a token
SESSION_MS = 7 * 86_400_000  # how long a browser stays signed in
FRESH_MS = 30 * 60_000
TOKEN_KINDS = ("web", "device", "personal", "ci")


class Member(msgspec.Struct, frozen=True):
    """Who asks: a person of the organisation, and the token that says so."""

    person: int
    name: str
    email: str
    organisation: int
    role: str  # in the organisation
    token: int
    kind: str  # of the token
    scopes: tuple[str, ...]
    projects: tuple[int, ...] | None  # that the token is good for; None is all of the person's
    expires_at: int

    @property
    def is_manager(self) -> bool:
        """Return whether the person manages people and projects. It gives no right to read."""
        return self.role in ("owner", "admin")

    def is_fresh(self, now: int) -> bool:
        """Return whether the person signed in with a browser in the last half hour."""
        return self.kind == "web" and now - (self.expires_at - SESSION_MS) < FRESH_MS


class ProjectStanding(msgspec.Struct, frozen=True):
    """A project of the team, and what somebody is in it."""

    id: int
    name: str
    visibility: str
    role: str | None  # None: manages it as an admin of the organisation, and is no member
    taking: bool  # takes uploads
    retention_days: int | None
    quota_bytes: int | None
    delete_at: int | None  # when it will be deleted
    retention_from: int | None = None  # from when on retention_days holds; None: it does


class OpenInvite(msgspec.Struct, frozen=True):
    """An invitation that somebody has the link of, and that can still be used."""

    id: int
    organisation: int
    team: str
    people: int
    inviter: str  # empty: the one who runs the server
    person: int | None  # who is known already, and gets a new passkey
    email: str | None  # the only address it is for
    role: str
    projects: tuple[str, ...]
    project_role: str | None
    expires_at: int


class Invite(msgspec.Struct, frozen=True):
    """An invitation as admins see it: its link is shown once, when it is made."""

    id: int
    email: str | None
    person: str | None  # for whom a new passkey is
    role: str
    projects: tuple[str, ...]
    project_role: str | None
    inviter: str | None
    created_at: int
    expires_at: int


class DeviceRequest(msgspec.Struct, frozen=True):
    """A device that waits to be let in."""

    name: str
    ip: str
    scopes: tuple[str, ...]
    created_at: int
    expires_at: int


class DevicePoll(msgspec.Struct, frozen=True):
    """What a device is told: pending, approved, denied, slow_down or expired."""

    state: str
    person: int | None
    scopes: tuple[str, ...] | None
    name: str | None


class TeamToken(msgspec.Struct, frozen=True):
    """A token as its person and admins see it."""

    id: int
    person: int
    owner: str  # the person's name
    kind: str
    name: str
    beginning: str
    scopes: tuple[str, ...]
    projects: tuple[int, ...] | None
    created_at: int
    expires_at: int
    last_used_at: int | None
    revoked_at: int | None


class Passkey(msgspec.Struct, frozen=True):
    id: int
    person: int
    name: str
    created_at: int
    last_used_at: int | None


class PasskeyProof(msgspec.Struct, frozen=True):
    """What a passkey's answer is checked against."""

    person: int
    public_key: bytes
    sign_count: int


class TeamPerson(msgspec.Struct, frozen=True):
    """A person of the organisation, as admins see them."""

    id: int
    name: str
    email: str
    state: str
    role: str
    projects: int
    created_at: int


class ProjectMember(msgspec.Struct, frozen=True):
    """A person in one project."""

    id: int
    name: str
    email: str
    state: str
    role: str
    since: int


class ProjectFigures(msgspec.Struct, frozen=True):
    """What a project's numbers of the last days are."""

    project: int
    sessions: int
    last_at: int | None
    agents: tuple[str, ...]
    people: tuple[int, ...]


class TeamStory(msgspec.Struct, frozen=True):
    """A commit with a story, in a list over all projects."""

    project: int
    sha: str
    subject: str
    author: str
    agents: tuple[str, ...]
    committed_at: int
    asked: str | None = None  # what a person said first for it


class AuditEntry(msgspec.Struct, frozen=True):
    id: int
    at: int
    person: int | None
    name: str | None
    token: int | None
    token_kind: str | None
    token_name: str | None
    ip: str
    did: str
    action: str
    project: int | None
    project_name: str | None
    object: str
    outcome: str


class AuditQuery(msgspec.Struct, frozen=True):
    """Which entries of the audit log are asked for; None is any."""

    text: str = ""
    person: int | None = None
    project: int | None = None
    since: int | None = None
    did: str | None = None
    before: int | None = None  # an entry's number


class AuditChain(msgspec.Struct, frozen=True):
    """Whether the audit log of an organisation is whole."""

    organisation: int
    entries: int
    head: bytes
    broken: int | None  # the first entry that does not fit


class NewInvite(msgspec.Struct, frozen=True):
    hash: bytes
    organisation: int
    role: str
    expires_at: int
    email: str | None = None
    person: int | None = None
    projects: tuple[int, ...] = ()
    project_role: str | None = None


class NewToken(msgspec.Struct, frozen=True):
    hash: bytes
    kind: str
    name: str
    beginning: str
    scopes: tuple[str, ...]
    expires_at: int
    projects: tuple[int, ...] | None = None


class NewPasskey(msgspec.Struct, frozen=True):
    credential_id: bytes
    public_key: bytes
    sign_count: int
    name: str


class AuditNote(msgspec.Struct, frozen=True):
    """An entry to write: `did` is looked, sent, changed, refused or signed in."""

    did: str
    action: str
    object: str = ""
    project: int | None = None
    outcome: str = "ok"


class ProjectChange(msgspec.Struct, frozen=True):
    """New values of a project's settings."""

    name: str
    visibility: str
    retention_days: int | None
    quota_bytes: int | None
    taking: bool
    delete_at: int | None
    retention_from: int | None = None


class ExpiredSession(msgspec.Struct, frozen=True):
    """A session that its project keeps no longer."""

    project: int
    person: int
    agent: str
    session_id: str


class CopiedProject(msgspec.Struct, frozen=True):
    """A project that is exported or imported."""

    id: int
    organisation: int
    name: str
    visibility: str
    retention_days: int | None
    quota_bytes: int | None


class CopiedPerson(msgspec.Struct, frozen=True):
    """Somebody who sent something to such a project, or is a member of it."""

    id: int
    name: str
    email: str
    state: str  # active | suspended | erased
    role: str | None  # in the project; None: not any more


class CopiedTombstone(msgspec.Struct, frozen=True):
    """What nobody may send again."""

    person: int
    kind: str
    name: str
    at: int
