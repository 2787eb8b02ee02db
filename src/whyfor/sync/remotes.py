"""What a person decided about sharing, and the keys to servers: two files that no repository can
write to, each readable by its owner only."""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Callable
from contextlib import closing

import msgspec
from msgspec.structs import replace

from whyfor import files
from whyfor.config import Settings
from whyfor.locks import hold_lock
from whyfor.model.errors import BadInput, NotFound, StoreError
from whyfor.model.sync import Remote

_TOKENS = "tokens.json"
_LOCK_WAIT = 10.0  # seconds for another process that decides
_LOOPBACK = re.compile(r"http://(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(/|$)")


class RemoteFile(msgspec.Struct, frozen=True):
    """Where projects are shared, and what never is."""

    machine: str = ""  # by which a server tells a person's machines apart
    remotes: tuple[Remote, ...] = ()
    keep_local: tuple[str, ...] = ()  # agent:id, or commits
    shared: tuple[str, ...] = ()  # what `whyfor share` named: agent:id, or commits


class ServerKey(msgspec.Struct, frozen=True):
    """A token for one server."""

    token: str
    who: str = ""
    email: str = ""
    expires_at: int | None = None


def load_remotes(settings: Settings) -> RemoteFile:
    """Return what was decided; raises StoreError if the file is damaged: then nothing is shared."""
    path = settings.remotes
    try:
        return msgspec.json.decode(path.read_bytes(), type=RemoteFile)
    except (FileNotFoundError, NotADirectoryError):
        return RemoteFile()
    except (msgspec.DecodeError, OSError) as error:
        raise StoreError(
            f"cannot read {path}: {error}", "Nothing is shared. Remove it, then: whyfor remote add"
        ) from None


def change_remotes(settings: Settings, change: Callable[[RemoteFile], RemoteFile]) -> RemoteFile:
    """Change what was decided, and return it. Two that decide at once are both heard."""
    files.make_folders(settings.home)
    with closing(hold_lock(settings.home / "remotes.lock", _LOCK_WAIT)):
        after = change(load_remotes(settings))
        if not after.machine:
            after = replace(after, machine=_machine_name())
        files.replace(settings.remotes, msgspec.json.format(msgspec.json.encode(after)) + b"\n")
    return after


def save_remote(settings: Settings, remote: Remote) -> RemoteFile:
    """Add a remote, or replace the one of the same project."""

    def put(before: RemoteFile) -> RemoteFile:
        others = tuple(each for each in before.remotes if each.project != remote.project)
        return replace(before, remotes=(*others, remote))

    return change_remotes(settings, put)


def remote_of(settings: Settings, project: str) -> Remote | None:
    """Return where a project is shared; None if nowhere."""
    found = load_remotes(settings).remotes
    return next((each for each in found if each.project == project), None)


def require_remote(settings: Settings, project: str) -> Remote:
    found = remote_of(settings, project)
    if found is None:
        raise NotFound("this project is not shared", "Share it: whyfor remote add URL")
    return found


def _machine_name() -> str:
    host = re.sub(r"[^\w-]+", "-", socket.gethostname().split(".")[0], flags=re.ASCII)[:40]
    return f"{host.strip('-') or 'machine'}-{secrets.token_hex(3)}"


# -- servers -------------------------------------------------------------------------------------


def server_url(given: str) -> str:
    """Return a server's address as it is stored. Raises BadInput for one that would send a token
    in the clear, or carries one."""
    url = given.strip().rstrip("/")
    if not re.match(r"https?://[^\s@]+$", url):
        raise BadInput(f"{given!r} is not a server's address", "Give e.g. https://whyfor.example")
    if url.startswith("http://") and not _LOOPBACK.match(url + "/"):
        raise BadInput(
            "without TLS, everybody on the way could read your stories",
            f"Give https://{url[7:]}",
        )
    return url


def load_key(settings: Settings, url: str) -> ServerKey | None:
    """Return the token for a server; None if nobody is logged in there."""
    return _keys(settings).get(url)


def save_key(settings: Settings, url: str, key: ServerKey | None) -> None:
    """Keep a token, or delete it."""
    found = _keys(settings)
    found.pop(url, None)
    if key is not None:
        found[url] = key
    files.make_folders(settings.home)
    files.replace(settings.home / _TOKENS, msgspec.json.encode(found))
    (settings.home / _TOKENS).chmod(0o600)


def known_servers(settings: Settings) -> list[str]:
    """Return the servers that somebody is logged in to, or that a project is shared with."""
    shared = [each.url for each in load_remotes(settings).remotes if each.team_project]
    return list(dict.fromkeys([*_keys(settings), *shared]))


def _keys(settings: Settings) -> dict[str, ServerKey]:
    path = settings.home / _TOKENS
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, ServerKey])
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return {}
