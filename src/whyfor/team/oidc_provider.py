"""Signing in with an organisation's own OpenID provider: code flow with PKCE and nonce.

Who somebody is there is known by issuer and subject alone. An e-mail address counts only if the
provider has verified it, and only to join: with an invitation, or from a domain that is allowed.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from whyfor.model.errors import Forbidden, StoreError
from whyfor.team.settings import OidcSettings

CALLBACK = "/signin/callback"
_TIMEOUT = httpx.Timeout(10.0, connect=5.0)
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
_LEEWAY = 60  # seconds that clocks may differ


class OidcAttempt(msgspec.Struct, frozen=True):
    """What a browser keeps in a cookie while its person is at the provider."""

    state: str
    nonce: str
    verifier: str
    next: str
    invite: str = ""


class OidcPerson(msgspec.Struct, frozen=True):
    issuer: str
    subject: str
    name: str
    email: str
    verified: bool


class OidcProvider:
    """An organisation's provider: where it is asked, and with which keys it signs."""

    def __init__(self, settings: OidcSettings, public_url: str) -> None:
        self.settings = settings
        self.redirect = f"{public_url}{CALLBACK}"
        self._lock = threading.Lock()
        self._facts: dict[str, Any] = {}

    def begin(self, next_path: str, invite: str) -> tuple[str, OidcAttempt]:
        """Return where a browser goes to sign in, and what it keeps meanwhile."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = OidcAttempt(state, nonce, verifier, next_path, invite)
        digest = hashlib.sha256(attempt.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.redirect,
            "scope": "openid email profile",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        where = self._fact("authorization_endpoint")
        return f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}", attempt

    def finish(self, attempt: OidcAttempt, code: str, state: str) -> OidcPerson:
        """Return who signed in. Raises Forbidden if what the provider says does not fit."""
        if not secrets.compare_digest(state.encode(), attempt.state.encode()):
            raise Forbidden("this sign-in was not begun in this browser", "Begin again.")
        claims = self._claims(self._exchange(code, attempt.verifier))
        if not secrets.compare_digest(str(claims.get("nonce")).encode(), attempt.nonce.encode()):
            raise Forbidden("this sign-in is another one's", "Begin again.")
        email = str(claims.get("email") or "")
        return OidcPerson(
            self.settings.issuer,
            str(claims["sub"]),
            str(claims.get("name") or email.partition("@")[0] or claims["sub"]),
            email,
            claims.get("email_verified") is True,
        )

    def _exchange(self, code: str, verifier: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect,
            "client_id": self.settings.client_id,
            "code_verifier": verifier,
        }
        secret = self.settings.client_secret
        auth = httpx.BasicAuth(self.settings.client_id, secret) if secret else None
        answer = self._ask("POST", self._fact("token_endpoint"), data=form, auth=auth)
        if answer.status_code != 200:
            raise Forbidden("the organisation did not confirm this sign-in", "Begin again.")
        token = _decoded(answer).get("id_token")
        if not isinstance(token, str):
            raise Forbidden("the organisation did not say who you are", "Tell your admin.")
        return token

    def _claims(self, token: str) -> dict[str, Any]:
        keys = KeySet.import_key_set(_decoded(self._ask("GET", self._fact("jwks_uri"))))  # type: ignore[arg-type]
        rules = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY,
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": self.settings.client_id},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            nonce={"essential": True},
        )
        try:
            found = jwt.decode(token, keys, algorithms=_ALGORITHMS)
            rules.validate(found.claims)
        except (JoseError, ValueError, KeyError, TypeError):
            raise Forbidden(
                "the organisation's word could not be checked", "Begin again."
            ) from None
        claims: dict[str, Any] = found.claims
        audience = claims["aud"]
        several = isinstance(audience, list) and len(audience) > 1
        if several and claims.get("azp") != self.settings.client_id:
            raise Forbidden("this sign-in was made for another program", "Begin again.")
        return claims

    def _fact(self, name: str) -> str:
        with self._lock:
            if not self._facts:
                issuer = self.settings.issuer.rstrip("/")
                found = _decoded(self._ask("GET", f"{issuer}/.well-known/openid-configuration"))
                if found.get("issuer") != self.settings.issuer:
                    raise StoreError(
                        "the OpenID provider calls itself otherwise", "Check WHYFOR_OIDC_ISSUER."
                    )
                self._facts = found
            return str(self._facts[name])

    def _ask(self, method: str, url: str, **more: Any) -> httpx.Response:
        try:
            with httpx.Client(timeout=_TIMEOUT, follow_redirects=False) as client:
                return client.request(method, url, **more)
        except httpx.HTTPError:
            raise StoreError("the organisation's sign-in does not answer", "Try again.") from None


def _decoded(answer: httpx.Response) -> dict[str, Any]:
    try:
        return msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.DecodeError:
        raise StoreError("the organisation's sign-in cannot be understood", "Try again.") from None
