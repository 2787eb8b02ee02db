"""Letting a device in: RFC 8628, against our own server.

A device asks for a pair of codes. Its person signs in with a browser, compares the short one and
lets the device in. The device, which asks again and again with the long one, then gets its token.
"""

from __future__ import annotations

import re
import secrets

import msgspec

from whyfor.model.accounts import AuditNote, DeviceRequest, NewToken
from whyfor.model.errors import BadInput, NotFound
from whyfor.team.actor import TeamActor
from whyfor.team.resources import TeamResources
from whyfor.team.tokens import CODE_PREFIX, hash_token, is_token, make_token

CODE_MS = 10 * 60_000
DEVICE_MS = 90 * 86_400_000  # after its last use
INTERVAL = 5  # seconds between two questions of a device
SCOPES = ("read", "write")
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no words, nothing that looks like another
_NAME = re.compile(r"[\w .()@-]{1,80}")


class DeviceCodes(msgspec.Struct, frozen=True):
    device_code: str
    user_code: str


class IssuedToken(msgspec.Struct, frozen=True):
    """What a device is told: an error of the RFC, or its token."""

    error: str = ""
    token: str = ""
    scopes: tuple[str, ...] = ()


def start_device(team: TeamResources, name: str, scopes: list[str], ip: str) -> DeviceCodes:
    """Begin to let a device in. Raises BadInput, TooMany."""
    now = team.now()
    team.limits.enter(ip, now)
    wanted = tuple(scope for scope in SCOPES if scope in scopes) if scopes else SCOPES
    if not wanted or set(scopes) - set(SCOPES):
        raise BadInput("a device may have the scopes read and write", "Ask for these.")
    if not _NAME.fullmatch(name):
        raise BadInput("a device's name has up to 80 letters and digits", "Rename it.")
    codes = DeviceCodes(make_token(CODE_PREFIX), _user_code())
    asked = DeviceRequest(name, ip, wanted, now, now + CODE_MS)
    with team.database.accounts.by(None) as accounts:
        accounts.start_device(hash_token(codes.device_code), codes.user_code, asked)
    return codes


def read_code(text: str) -> str:
    """Return a code as it was shown, however it was typed."""
    letters = "".join(char for char in text.upper() if char.isalnum())
    return f"{letters[:4]}-{letters[4:8]}" if len(letters) == 8 else ""


def waiting_device(actor: TeamActor, code: str) -> DeviceRequest:
    """Return the device that waits with a code. Raises NotFound, after five wrong ones TooMany."""
    limits, person = actor.resources.limits, actor.member.person
    limits.check_codes(person, actor.now)
    with actor.reading() as accounts:
        found = accounts.waiting_device(code, actor.now)
    if found is None:
        limits.wrong_code(person, actor.now)
        raise NotFound("no device waits with this code", "Compare it with the terminal's.")
    return found


def answer_device(actor: TeamActor, code: str, *, allowed: bool) -> DeviceRequest:
    """Let a device in, or refuse it. Raises NotFound if none waits with this code."""
    found = waiting_device(actor, code)
    action = "device.allow" if allowed else "device.deny"
    did = "signed in" if allowed else "refused"
    with actor.changing(AuditNote(did, action, found.name)) as accounts:
        if not accounts.answer_device(code, allowed, actor.now):
            raise NotFound("no device waits with this code", "It may have been answered already.")
    return found


def poll_device(team: TeamResources, code: str) -> IssuedToken:
    """Answer a device that asks for its token."""
    if not is_token(code, CODE_PREFIX):
        return IssuedToken("invalid_grant")
    now = team.now()
    with team.database.accounts.by(None) as accounts:
        found = accounts.poll_device(hash_token(code), now)
        if found.state != "approved" or found.person is None:
            return IssuedToken(_ERRORS[found.state])
        token = make_token()
        accounts.become(found.person)
        scopes = found.scopes or ()
        new = NewToken(
            *(hash_token(token), "device", found.name or "", token[:8]), *(scopes, now + DEVICE_MS)
        )
        accounts.add_token(new, now)
    return IssuedToken("", token, scopes)


_ERRORS = {
    "pending": "authorization_pending",
    "approved": "expired_token",
    "denied": "access_denied",
    "slow_down": "slow_down",
    "expired": "expired_token",
}


def _user_code() -> str:
    letters = "".join(secrets.choice(_LETTERS) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"
