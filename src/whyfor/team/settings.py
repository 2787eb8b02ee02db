"""Settings of a team server, from its environment. A secret may be in a file: `NAME_FILE`."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from whyfor.model.errors import BadInput

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class OidcSettings(msgspec.Struct, frozen=True):
    """Where people sign in, if that is not here."""

    issuer: str
    client_id: str
    client_secret: str = ""
    domains: tuple[str, ...] = ()  # of e-mail addresses that may join without an invitation


class TeamSettings(msgspec.Struct, frozen=True):
    db_url: str  # as the server's own role
    blobs_url: str
    public_url: str  # without a slash at its end
    owner_url: str = ""  # as the role that migrates; the same database
    oidc: OidcSettings | None = None
    listen: str = "127.0.0.1:8080"
    metrics_port: int = 9464  # on loopback; 0: none
    proxies: tuple[str, ...] = ()  # networks whose X-Forwarded-For is believed
    rate_limit: int = 600  # requests of a token, or of an address without one, in a minute
    entry_limit: int = 10  # attempts to enter, of an address in a minute
    blob_options: dict[str, str] = {}  # of tests

    @property
    def host(self) -> str:
        """Return what a request's Host must be."""
        return urlsplit(self.public_url).netloc

    @property
    def domain(self) -> str:
        """Return the host without its port, which passkeys are bound to."""
        return urlsplit(self.public_url).hostname or ""

    @property
    def networks(self) -> tuple[Network, ...]:
        return tuple(ipaddress.ip_network(each, strict=False) for each in self.proxies)


def load_team_settings(env: Mapping[str, str]) -> TeamSettings:
    """Read the settings of a team server. Raises BadInput that names the variable."""
    database = _required(env, "WHYFOR_DB_URL")
    return TeamSettings(
        db_url=_database(database, "WHYFOR_DB_URL"),
        blobs_url=_required(env, "WHYFOR_BLOBS_URL"),
        public_url=_public(_required(env, "WHYFOR_PUBLIC_URL")),
        owner_url=_database(_value(env, "WHYFOR_DB_OWNER_URL") or database, "WHYFOR_DB_OWNER_URL"),
        oidc=_oidc(env),
        listen=_listen(env.get("WHYFOR_LISTEN_ADDRESS", "") or "127.0.0.1:8080"),
        metrics_port=_port(env.get("WHYFOR_METRICS_PORT", "") or "9464"),
        rate_limit=_count(env, "WHYFOR_RATE_LIMIT", 600),
        entry_limit=_count(env, "WHYFOR_ENTRY_LIMIT", 10),
        proxies=_proxies(env.get("WHYFOR_TRUSTED_PROXIES", "")),
    )


def _value(env: Mapping[str, str], name: str) -> str:
    """Return a setting, or what the file named by NAME_FILE has; empty if there is neither."""
    path = env.get(f"{name}_FILE", "")
    if env.get(name) and path:
        raise BadInput(f"{name} and {name}_FILE are both set", "Keep one of them.")
    if not path:
        return env.get(name, "").strip()
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{name}_FILE cannot be read: {path}: {error}", "Check its path and rights."
        ) from None


def _required(env: Mapping[str, str], name: str) -> str:
    found = _value(env, name)
    if not found:
        raise BadInput(f"{name} is not set", "Set it, or name a file: see docs/server.md.")
    return found


def _database(url: str, name: str) -> str:
    if not url.startswith(("postgresql://", "postgres://")):
        raise BadInput(f"{name} is no PostgreSQL address", "It begins with postgresql://")
    return url


def _public(url: str) -> str:
    parts = urlsplit(url)
    bare = parts.path in ("", "/") and not parts.query and not parts.fragment
    local = parts.scheme == "http" and (parts.hostname or "") in ("localhost", "127.0.0.1", "::1")
    if not parts.netloc or not bare or "@" in parts.netloc:
        raise BadInput(
            "WHYFOR_PUBLIC_URL is a scheme and a host, without a path",
            "For example: https://whyfor.example.com",
        )
    if parts.scheme != "https" and not local:
        raise BadInput(
            "WHYFOR_PUBLIC_URL begins with https://", "Without TLS only on localhost, for a trial."
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _oidc(env: Mapping[str, str]) -> OidcSettings | None:
    issuer = env.get("WHYFOR_OIDC_ISSUER", "").strip()
    if not issuer:
        return None
    domains = env.get("WHYFOR_OIDC_DOMAINS", "").replace(",", " ").lower().split()
    return OidcSettings(
        issuer,
        _required(env, "WHYFOR_OIDC_CLIENT_ID"),
        _value(env, "WHYFOR_OIDC_CLIENT_SECRET"),
        tuple(domain.removeprefix("@") for domain in domains),
    )


def _listen(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise BadInput(
            "WHYFOR_LISTEN_ADDRESS is an address and a port", "For example: 127.0.0.1:8080"
        )
    return f"{host}:{_port(port, 'WHYFOR_LISTEN_ADDRESS')}"


def _port(text: str, name: str = "WHYFOR_METRICS_PORT") -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise BadInput(f"{name} has a port from 0 to 65535", f"It is {text!r} now.")
    return int(text)


def _count(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name, "").strip()
    if text and not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
        raise BadInput(f"{name} is a whole number above 0", f"It is {text!r} now.")
    return int(text) if text else default


def _proxies(text: str) -> tuple[str, ...]:
    found = tuple(text.replace(",", " ").split())
    for each in found:
        try:
            ipaddress.ip_network(each, strict=False)
        except ValueError:
            raise BadInput(
                f"WHYFOR_TRUSTED_PROXIES: {each!r} is no address or network",
                "For example: 127.0.0.1 10.0.0.0/8",
            ) from None
    return found
