"""What an OpenID provider says is believed only if all of it fits; keys may change at any time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from tests.cases import check_each
from tests.team.served import PUBLIC
from whyfor.model.errors import Forbidden
from whyfor.team.oidc_provider import OidcAttempt, OidcPerson, OidcProvider
from whyfor.team.settings import OidcSettings

ATTEMPT = OidcAttempt("state", "nonce", "verifier", "/")
SECRET = "a-secret-that-both-sides-know-of-32"
UNKNOWN_KEY = {"kty": "FUTURE", "kid": "next-year", "use": "sig"}


class Provider:
    """A provider that says whatever it is told to."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
        self.published: list[dict[str, Any]] = [self.key.as_dict(private=False)]
        self.token = ""
        self.issuer = ""

    def claims(self, **changed: object) -> dict[str, Any]:
        """What fits, with something changed; None leaves it out."""
        now = int(time.time())
        plain: dict[str, object] = {
            "iss": self.issuer,
            "aud": "whyfor",
            "sub": "robin",
            "nonce": "nonce",
        }
        plain |= {"email": "robin@harbour.example", "email_verified": True}
        made = {**plain, "iat": now, "exp": now + 60, **changed}
        return {name: value for name, value in made.items() if value is not None}

    def say(self, claims: dict[str, Any], key: Any = None, alg: str = "RS256") -> None:
        key = key or self.key
        self.token = jwt.encode({"alg": alg, "kid": key.kid}, claims, key, algorithms=[alg])

    def answer(self, path: str) -> dict[str, Any]:
        if path.endswith("openid-configuration"):
            names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            return {"issuer": self.issuer, **{name: f"{self.issuer}/{name}" for name in names}}
        return {"keys": self.published} if path == "/jwks_uri" else {"id_token": self.token}


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(made.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def finished(provider: Provider, state: str = "state") -> OidcPerson:
    settings = OidcSettings(provider.issuer, "whyfor", SECRET)
    return OidcProvider(settings, PUBLIC).finish(ATTEMPT, "code", state)


def test_only_a_token_that_fits_in_everything_is_believed(provider: Provider) -> None:
    past = int(time.time()) - 3600
    cases: dict[str, dict[str, object]] = {
        "another audience": {"aud": "another"},
        "no audience": {"aud": None},
        "ours among others": {"aud": ["whyfor", "another"]},
        "ours among others, made for another": {"aud": ["whyfor", "another"], "azp": "another"},
        "another issuer": {"iss": "https://evil.example"},
        "no issuer": {"iss": None},
        "another sign-in's nonce": {"nonce": "another"},
        "no nonce": {"nonce": None},
        "no subject": {"sub": None},
        "over": {"exp": past},
        "without an end": {"exp": None},
    }

    def check(changed: dict[str, object]) -> None:
        provider.say(provider.claims(**changed))
        with pytest.raises(Forbidden):
            finished(provider)

    check_each(cases.items(), check)
    provider.say(provider.claims(aud=["whyfor", "another"], azp="whyfor"))
    assert finished(provider).subject == "robin"
    with pytest.raises(Forbidden, match="not begun in this browser"):
        finished(provider, "another state")


def test_only_a_published_key_counts_and_keys_may_change(provider: Provider) -> None:
    stranger = RSAKey.generate_key(2048, {"kid": "first"})
    with_secret = OctKey.import_key(SECRET, {"kid": "first"})

    def check(forged: tuple[Any, str]) -> None:
        provider.say(provider.claims(), *forged)
        with pytest.raises(Forbidden):
            finished(provider)

    check_each(
        [("another key of that name", (stranger, "RS256")), ("ours", (with_secret, "HS256"))], check
    )
    head, body, _ = jwt.encode(
        {"alg": "RS256", "kid": "first"}, provider.claims(), provider.key
    ).split(".")
    provider.token = f"eyJhbGciOiJub25lIn0.{body}."
    with pytest.raises(Forbidden):
        finished(provider)
    provider.token = f"{head}.{body}."
    with pytest.raises(Forbidden):
        finished(provider)
    new = ECKey.generate_key("P-256", {"kid": "second", "use": "sig"})
    provider.published = [UNKNOWN_KEY, new.as_dict(private=False)]
    provider.say(provider.claims(), new, "ES256")
    assert finished(provider).email == "robin@harbour.example"
    provider.say(provider.claims())
    with pytest.raises(Forbidden):
        finished(provider)


def test_an_address_counts_as_verified_only_if_the_provider_says_so(provider: Provider) -> None:
    said = {"yes": True, "no": False, "a word": "true", "a number": 1, "nothing": None}
    found = {}
    for name, value in said.items():
        provider.say(provider.claims(email_verified=value))
        found[name] = finished(provider).verified
    assert [name for name, is_verified in found.items() if is_verified] == ["yes"]
