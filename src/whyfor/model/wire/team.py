"""What a team server tells devices (RFC 8628, RFC 6749) and those who run it."""

from __future__ import annotations

import msgspec


class WireDeviceCode(msgspec.Struct, frozen=True):
    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int  # seconds
    interval: int  # seconds


class WireDeviceToken(msgspec.Struct, frozen=True):
    access_token: str
    scope: str
    expires_in: int  # seconds, after the last use
    token_type: str = "Bearer"


class WireDeviceError(msgspec.Struct, frozen=True):
    error: str  # authorization_pending, slow_down, access_denied, expired_token or invalid_grant


class WireMember(msgspec.Struct, frozen=True):
    """Who a token is of, and what it may."""

    name: str
    email: str
    role: str
    kind: str
    scopes: tuple[str, ...]
    expires_at: str | None


class WireOwnerLink(msgspec.Struct, frozen=True):
    """What `whyfor server init` made."""

    team: str
    link: str
    expires_at: str | None
    version: int  # of the database


class WireMigration(msgspec.Struct, frozen=True):
    before: int
    version: int


class WireProjectExport(msgspec.Struct, frozen=True):
    """A project that was exported or imported."""

    project: str
    number: int
    sessions: int
    stories: int
    objects: int
    people: int


class WireErasedMember(msgspec.Struct, frozen=True):
    """A member who was erased: the number that is left, and what became of their sessions."""

    person: int
    sessions: int
    kept: bool
    objects: int  # deleted


class WireServerBackup(msgspec.Struct, frozen=True):
    """A backup: when it was made, and what it has."""

    made_at: str
    objects: int
    bytes: int
    new: int


class WireServerCheck(msgspec.Struct, frozen=True):
    name: str
    ok: bool
    detail: str


class WireTeamServer(msgspec.Struct, frozen=True):
    address: str
    public_url: str
