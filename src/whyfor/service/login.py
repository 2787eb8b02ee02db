"""login, logout and whoami: the token by which a team server knows this machine."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress

import msgspec

from whyfor.config import Settings
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.sync import REFUSED, WAITS, TokenOwner
from whyfor.store.open import reading_local
from whyfor.sync.client import QUICK, RemoteFault, RemoteRejected, TeamClient
from whyfor.sync.remotes import (
    ServerKey,
    known_servers,
    load_key,
    save_key,
    server_url,
)
from whyfor.sync.worker import change_outbox

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_WAITING = ("authorization_pending", "slow_down")


class DeviceLogin(msgspec.Struct, frozen=True):
    """A device that asks to be let in: what its person has to type where."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: int
    interval: int = 5
    verification_uri_complete: str = ""


class _Granted(msgspec.Struct, frozen=True):
    access_token: str = ""
    error: str = ""
    expires_in: int | None = None


class LoginState(msgspec.Struct, frozen=True):
    """Whom a server knows this machine as."""

    url: str
    name: str
    email: str
    projects: list[str]
    expires_at: int | None


def choose_server(settings: Settings, url: str | None) -> str:
    """Return the server that is meant. Raises BadInput if that is not clear."""
    if url is not None:
        return server_url(url)
    known = known_servers(settings)
    if len(known) == 1:
        return known[0]
    names = ", ".join(known) or "none is known here"
    raise BadInput(f"which server? {names}", "Name it: whyfor login https://whyfor.example")


def begin_login(url: str) -> DeviceLogin:
    """Ask a server to let this machine in. Raises RemoteFault."""
    host = re.sub(r"[^\w .()@-]+", "-", socket.gethostname())[:80] or "machine"
    body = {"client_id": "whyfor", "name": host, "scope": "read write"}
    with closing(TeamClient(url)) as client:
        return client.post_form("/api/v1/device/code", body, DeviceLogin)


def finish_login(
    settings: Settings,
    url: str,
    login: DeviceLogin,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> LoginState:
    """Wait until somebody has let this machine in, and keep the token. Raises BadInput if nobody
    does."""
    body = {"grant_type": _GRANT, "device_code": login.device_code, "client_id": "whyfor"}
    interval, end = login.interval, clock() + login.expires_in
    while clock() < end:
        sleep(interval)
        told = _poll(url, body)
        if told.access_token:
            save_key(settings, url, ServerKey(told.access_token))
            return _known(settings, url, told.access_token)
        if told.error == "slow_down":
            interval += 5
        if told.error not in _WAITING:
            break
    raise BadInput("this machine was not let in", f"Try again: whyfor login {url}")


def _poll(url: str, body: dict[str, str]) -> _Granted:
    """A refusal of the RFC is an answer too, whatever its status."""
    try:
        with closing(TeamClient(url)) as client:
            return client.post_form("/api/v1/device/token", body, _Granted)
    except RemoteRejected as error:
        return _Granted(error=error.message)


def login_with_token(settings: Settings, url: str, token: str) -> LoginState:
    """Keep a token that somebody made on the server's pages, if it is good for something."""
    return _known(settings, url, token.strip())


def _known(settings: Settings, url: str, token: str) -> LoginState:
    owner = _owner(url, token)
    save_key(settings, url, ServerKey(token, owner.name, owner.email, owner.expires_at))
    _try_again(settings)
    return _state(url, owner)


def _try_again(settings: Settings) -> None:
    """Whatever waited for a login is tried at once."""
    if not settings.shares_anything or not settings.database.exists():
        return
    with reading_local(settings) as store:
        refused = [item.id for item in store.outbox.items(states=[REFUSED])]
    if refused:
        change_outbox(settings, lambda outbox: outbox.set_states(refused, WAITS))
    change_outbox(settings, lambda outbox: outbox.try_now())


def logout(settings: Settings, url: str) -> None:
    """Delete the token from this machine, and have the server revoke it if it answers. Raises
    NotFound if there is none."""
    key = load_key(settings, url)
    if key is None:
        raise NotFound(f"nobody is logged in to {url}", "")
    save_key(settings, url, None)
    with suppress(RemoteFault), closing(TeamClient(url, key.token, QUICK)) as client:
        client.ask("DELETE", "/api/v1/me/token")


def who_am_i(settings: Settings, url: str) -> LoginState:
    """Ask a server whom it knows this machine as. Raises NotFound if there is no token."""
    key = load_key(settings, url)
    if key is None:
        raise NotFound(f"nobody is logged in to {url}", f"Log in: whyfor login {url}")
    return _state(url, _owner(url, key.token))


def _owner(url: str, token: str) -> TokenOwner:
    with closing(TeamClient(url, token)) as client:
        return client.get("/api/v1/sync/whoami", TokenOwner)


def _state(url: str, owner: TokenOwner) -> LoginState:
    projects = [each.name for each in owner.projects]
    return LoginState(url, owner.name, owner.email, projects, owner.expires_at)
