"""Setting a team server up, and checking it."""

from __future__ import annotations

import os
import time

import msgspec

from whyfor.model.errors import StoreError, WhyforError
from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.store.shared import (
    TeamDatabase,
    add_owner_invite,
    check_version,
    migrate_team,
    read_state,
)
from whyfor.team.resources import TeamResources
from whyfor.team.settings import TeamSettings
from whyfor.team.tokens import LINK_PREFIX, hash_token, make_token

OWNER_LINK_MS = 15 * 60_000
_CLOCK_MS = 30_000  # that clocks may differ
_NO_PROJECT = 0  # whose folder in the object store no project has


class OwnerLink(msgspec.Struct, frozen=True):
    team: str
    link: str
    expires_at: int


class ServerCheck(msgspec.Struct, frozen=True):
    name: str
    ok: bool
    detail: str


def migrate_server(settings: TeamSettings) -> tuple[int, int]:
    """Bring the database to this version; return its version before and now."""
    return migrate_team(settings.owner_url, settings.db_url)


def make_owner_link(settings: TeamSettings, name: str) -> OwnerLink:
    """Return a link with which somebody becomes an owner of the team, once, within 15 minutes."""
    now = int(time.time() * 1000)
    token = make_token(LINK_PREFIX)
    until = now + OWNER_LINK_MS
    team = add_owner_invite(settings.owner_url, name, hash_token(token), now, until)
    return OwnerLink(team, f"{settings.public_url}/join/{token}", until)


def check_server(settings: TeamSettings) -> list[ServerCheck]:
    """Return what is right and wrong with a server's settings, database and object store."""
    found = [_checked("public URL", lambda: _public(settings))]
    found.append(_checked("database version", lambda: _version(settings)))
    if found[-1].ok:
        found += [
            _checked("database role", lambda: _role(settings)),
            _checked("row-level security", lambda: _policies(settings)),
            _checked("clock", lambda: _clock(settings)),
            _checked("audit log", lambda: _audit(settings)),
        ]
    found.append(_checked("object store", lambda: _objects(settings)))
    return found


def check_ready(team: TeamResources) -> None:
    """Raise unless a server can answer: its database is of a version and a role that it may be
    served from, and its object store answers."""
    state = read_state(team.settings.db_url)
    check_version(state.version)
    if state.above_policies or not state.is_app or state.unforced:
        raise StoreError("the database is not safe to serve from", "whyfor server check")
    team.blobs(_NO_PROJECT).has("0" * 64)


class CheckFailed(Exception):
    """A check found something wrong, in words."""


def _checked(name: str, check: object) -> ServerCheck:
    try:
        return ServerCheck(name, True, check())  # type: ignore[operator]
    except CheckFailed as error:
        return ServerCheck(name, False, str(error))
    except WhyforError as error:
        return ServerCheck(name, False, f"{error.message}. {error.hint}")


def _public(settings: TeamSettings) -> str:
    if settings.public_url.startswith("http://"):
        return f"{settings.public_url}, without TLS: for a trial on this machine only"
    return settings.public_url


def _version(settings: TeamSettings) -> str:
    state = read_state(settings.db_url)
    check_version(state.version)
    return f"version {state.version}"


def _role(settings: TeamSettings) -> str:
    state = read_state(settings.db_url)
    if state.above_policies:
        raise CheckFailed("WHYFOR_DB_URL is a role that policies do not bind; use another one")
    if not state.is_app:
        raise CheckFailed("WHYFOR_DB_URL is a role without rights: whyfor server migrate")
    return "bound by policies"


def _policies(settings: TeamSettings) -> str:
    state = read_state(settings.db_url)
    wrong = [*state.unforced, *state.unpinned]
    if wrong:
        raise CheckFailed(f"not guarded: {', '.join(wrong[:9])}")
    return "forced on every table"


def _clock(settings: TeamSettings) -> str:
    apart = abs(read_state(settings.db_url).now - int(time.time() * 1000))
    if apart > _CLOCK_MS:
        raise CheckFailed(f"the database's clock is {apart // 1000} seconds off")
    return "agrees with the database's"


def _audit(settings: TeamSettings) -> str:
    database = TeamDatabase(settings.db_url, 1)
    database.open()
    try:
        with database.accounts.by(None) as accounts:
            chains = accounts.audit_chains()
    finally:
        database.close()
    broken = [chain.broken for chain in chains if chain.broken is not None]
    if broken:
        raise CheckFailed(f"entry {broken[0]} was changed, or one before it is gone")
    heads = ", ".join(f"{chain.entries} entries, head {chain.head.hex()[:16]}" for chain in chains)
    return heads or "empty"


def _objects(settings: TeamSettings) -> str:
    blobs = ObjectBlobs(
        open_objects(settings.blobs_url, dict(settings.blob_options) or None), _NO_PROJECT
    )
    content = os.urandom(32)
    digest = blobs.put(content)
    try:
        if blobs.get(digest) != content:
            raise CheckFailed("an object came back with other content")
    finally:
        blobs.remove([digest])
    return "writes, reads and deletes"
