"""How people enter: by a link once, then with a passkey."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Any

import msgspec
from webauthn import (
    base64url_to_bytes,
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from whyfor.model.accounts import (
    SESSION_MS,
    AuditNote,
    NewPasskey,
    NewToken,
    OpenInvite,
)
from whyfor.model.errors import BadInput, Forbidden
from whyfor.store.shared import AccountTransaction
from whyfor.team.actor import TeamActor
from whyfor.team.resources import TeamResources
from whyfor.team.tokens import LINK_PREFIX, SESSION_PREFIX, hash_token, is_token, make_token

_CHALLENGE_MS = 5 * 60_000
_EMAIL = re.compile(r"[^@\s,;<>\"]{1,64}@[^@\s,;<>\"]{1,190}\.[^@\s.,;<>\"]{2,63}")
_USED = "this link was used already, withdrawn, or is too old"
_ASK = "Ask for a new one."
_FAILED = "this passkey was not accepted"


class Entering(msgspec.Struct, frozen=True):
    """Who enters: from where, with which browser."""

    ip: str
    browser: str


def check_name(name: str) -> str:
    """Return a person's name as others see it. Raises BadInput."""
    found = " ".join(name.split())
    if not 1 <= len(found) <= 80 or any(not char.isprintable() for char in found):
        raise BadInput("a name has 1 to 80 characters", "Choose another.")
    return found


def check_email(email: str) -> str:
    """Return an e-mail address. Raises BadInput."""
    found = email.strip()
    if not _EMAIL.fullmatch(found):
        raise BadInput("this is no e-mail address", "It looks like ann@example.com")
    return found


def new_session(accounts: AccountTransaction, person: int, entering: Entering, now: int) -> str:
    """Sign a browser in as somebody who has proved to be that person; return its token."""
    accounts.become(person)
    token = make_token(SESSION_PREFIX)
    accounts.add_token(
        NewToken(
            *(hash_token(token), "web", entering.browser[:80], token[:8]),
            *(("read", "write", "admin"), now + SESSION_MS),
        ),
        now,
    )
    note = AuditNote("signed in", "browser.enter", entering.browser[:80])
    accounts.audit(accounts.own_team(), note, token=None, ip=entering.ip, now=now)
    return token


# -- invitations -----------------------------------------------------------------------------------


def read_invite(team: TeamResources, code: str) -> OpenInvite:
    """Return what a link invites to. Raises BadInput if it cannot be used."""
    if is_token(code, LINK_PREFIX):
        with team.database.accounts.by(None) as accounts:
            found = accounts.open_invite(hash_token(code), team.now())
        if found is not None:
            return found
    raise BadInput(_USED, _ASK)


def join_options(team: TeamResources, code: str, name: str, email: str) -> bytes:
    """Return what a browser needs to make a passkey for somebody who joins."""
    invite = read_invite(team, code)
    address = _address(invite, email) or name
    return _registration(team, f"join {invite.id}", name, address, [])


def join(
    team: TeamResources, code: str, name: str, email: str, credential: str, entering: Entering
) -> str:
    """Use an invitation with a new passkey; return the token of the browser's session. Of two who
    do so at once, one wins. Raises BadInput."""
    invite = read_invite(team, code)
    now = team.now()
    address = _address(invite, email)
    with team.database.accounts.by(None) as accounts:
        passkey = _registered(team, accounts, f"join {invite.id}", credential)
        person = accounts.accept_invite(hash_token(code), now, check_name(name), address)
        if person is None:
            raise BadInput(_USED, _ASK)
        accounts.become(person)
        accounts.add_passkey(passkey, now)
        return new_session(accounts, person, entering, now)


def _address(invite: OpenInvite, email: str) -> str:
    """Return the address of who joins: the invitation's, or what is said; none of who is known."""
    if invite.email or invite.person:
        return invite.email or ""
    return check_email(email)


# -- passkeys --------------------------------------------------------------------------------------


def sign_in_options(team: TeamResources) -> bytes:
    """Return what a browser needs to sign somebody in with a passkey."""
    challenge = _new_challenge(team, "signin")
    options = generate_authentication_options(
        rp_id=team.settings.domain,
        challenge=challenge,
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    return options_to_json(options).encode()


def sign_in(team: TeamResources, credential: str, entering: Entering) -> str:
    """Sign in with a passkey; return the token of the browser's session. Raises Forbidden."""
    answer = _parsed(credential)
    key = _decoded(answer.get("rawId"))
    now = team.now()
    with team.database.accounts.by(None) as accounts:
        challenge = _take_challenge(accounts, answer, "signin", now)
        proof = accounts.passkey_proof(key)
        if proof is None:
            raise Forbidden(_FAILED, "Nobody who may enter has it.")
        try:
            verified = verify_authentication_response(
                credential=answer,
                expected_challenge=challenge,
                expected_rp_id=team.settings.domain,
                expected_origin=team.settings.public_url,
                credential_public_key=proof.public_key,
                credential_current_sign_count=proof.sign_count,
            )
        except (WebAuthnException, ValueError, KeyError, TypeError):
            raise Forbidden(_FAILED, "Try again.") from None
        accounts.use_passkey(key, verified.new_sign_count, now)
        return new_session(accounts, proof.person, entering, now)


def add_options(actor: TeamActor) -> bytes:
    """Return what a browser needs to make another passkey for who is signed in."""
    with actor.reading() as accounts:
        known = accounts.credential_ids()
    member = actor.member
    return _registration(actor.resources, f"add {member.person}", member.name, member.email, known)


def add_passkey(actor: TeamActor, credential: str) -> None:
    """Add a passkey to who is signed in."""
    note = AuditNote("changed", "passkey.add")
    with actor.changing(note) as accounts:
        passkey = _registered(actor.resources, accounts, f"add {actor.member.person}", credential)
        accounts.add_passkey(passkey, actor.now)


def sign_out(actor: TeamActor) -> None:
    with actor.changing(AuditNote("signed in", "session.end")) as accounts:
        accounts.revoke(actor.member.token, actor.now)
    actor.resources.tokens.drop(actor.member.person)


def _registration(
    team: TeamResources, purpose: str, name: str, email: str, known: list[bytes]
) -> bytes:
    options = generate_registration_options(
        rp_id=team.settings.domain,
        rp_name="Whyfor",
        user_id=secrets.token_bytes(32),
        user_name=email,
        user_display_name=check_name(name),
        challenge=_new_challenge(team, purpose),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=each) for each in known],
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED,
            user_verification=UserVerificationRequirement.PREFERRED,
        ),
    )
    return options_to_json(options).encode()


def _registered(
    team: TeamResources, accounts: AccountTransaction, purpose: str, credential: str
) -> NewPasskey:
    answer = _parsed(credential)
    challenge = _take_challenge(accounts, answer, purpose, team.now())
    try:
        verified = verify_registration_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=team.settings.domain,
            expected_origin=team.settings.public_url,
        )
    except (WebAuthnException, ValueError, KeyError, TypeError):
        raise BadInput(_FAILED, "Try again.") from None
    return NewPasskey(
        verified.credential_id, verified.credential_public_key, verified.sign_count, "passkey"
    )


def _new_challenge(team: TeamResources, purpose: str) -> bytes:
    challenge = secrets.token_bytes(32)
    with team.database.accounts.by(None) as accounts:
        until = team.now() + _CHALLENGE_MS
        accounts.put_challenge(hashlib.sha256(challenge).digest(), purpose, until)
    return challenge


def _take_challenge(
    accounts: AccountTransaction, answer: dict[str, Any], purpose: str, now: int
) -> bytes:
    """Return the challenge that a passkey answers, which is then used up."""
    response = answer.get("response")
    inner = response if isinstance(response, dict) else {}
    said = _parsed(_decoded(inner.get("clientDataJSON")).decode("utf-8", "replace"))
    challenge = _decoded(said.get("challenge"))
    if not accounts.take_challenge(hashlib.sha256(challenge).digest(), purpose, now):
        raise BadInput("this took too long, or was answered already", "Try again.")
    return challenge


def _parsed(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise BadInput(_FAILED, "Try again.") from None


def _decoded(value: object) -> bytes:
    try:
        return base64url_to_bytes(value if isinstance(value, str) else "")
    except ValueError:
        raise BadInput(_FAILED, "Try again.") from None
