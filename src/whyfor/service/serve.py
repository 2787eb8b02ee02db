"""serve: one server per home, who may look, and the links that let a browser in."""

from __future__ import annotations

import hmac
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from whyfor import files
from whyfor.config import Settings
from whyfor.live.serve_lock import PORT, Running, serve_file
from whyfor.locks import hold_lock
from whyfor.model.errors import Busy, StoreError
from whyfor.processes import exists

__all__ = [
    "PORT",
    "AccessKeys",
    "AlreadyServed",
    "Running",
    "announce_server",
    "hold_server",
    "running_server",
    "same_text",
]

ONCE_SECONDS = 60
_SPACE = "Check its permissions and free space."
_WAIT = 5.0  # for a server that has just begun to say where it is


class AlreadyServed(Busy):
    """Another server has this home."""


class AccessKeys:
    """What a client must show: scripts the token, a browser a cookie that a one-time link gave
    it.

    The token outlives the server; what a start of the server makes from it for browsers does not
    (server/start.py). A link is a file named by its code's hash: whoever takes the file away has
    used it.
    """

    def __init__(self, settings: Settings) -> None:
        self._links = settings.home / "serve.links"
        self.token = _token(settings.home / "serve.token")

    def is_token(self, given: str) -> bool:
        return same_text(given, self.token)

    def link(self, running: Running) -> str:
        """An address that lets one browser in, once, within a minute."""
        self.tidy()
        code = secrets.token_urlsafe(32)
        self._links.mkdir(mode=0o700, exist_ok=True)
        files.replace(self._links / _name(code), b"")
        return f"{running.address}/open?once={code}"

    def redeem(self, code: str) -> bool:
        path = self._links / _name(code)
        try:
            made = path.stat().st_mtime
            path.unlink()
        except FileNotFoundError:  # never made, or somebody was first
            return False
        return abs(time.time() - made) <= ONCE_SECONDS

    def tidy(self, seconds: int = ONCE_SECONDS) -> None:
        """Away with links nobody used in time."""
        for path in self._links.glob("*"):
            try:
                if abs(time.time() - path.stat().st_mtime) >= seconds:
                    path.unlink()
            except FileNotFoundError:  # used meanwhile
                continue


def same_text(given: str, wanted: str) -> bool:
    """Whether they are alike; how long it takes does not tell how much of them is."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def _name(code: str) -> str:
    return sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


def _token(path: Path) -> str:
    """256 bits, made once; two processes that make it at once end up with the same."""
    with _usable(path.parent):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(fd, "w") as file:
                file.write(secrets.token_urlsafe(32))
        deadline = time.monotonic() + _WAIT
        while len(found := path.read_text(encoding="ascii").strip()) < 43:
            if time.monotonic() > deadline:
                raise StoreError(f"{path} holds no token", "Delete it, then: whyfor serve")
            time.sleep(0.01)
        return found


# -- one per home --------------------------------------------------------------------------------


@contextmanager
def hold_server(settings: Settings) -> Iterator[None]:
    """Hold the lock that the system drops when its holder dies; AlreadyServed if another has it."""
    with _usable(settings.home):
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        lock = hold_lock(settings.home / "serve.lock", hint=_SPACE)
    except Busy:
        raise AlreadyServed("a server is running already", "Open its page: whyfor serve") from None
    with closing(lock):
        with _usable(settings.home):
            serve_file(settings).unlink(missing_ok=True)  # of one that was killed
        yield


@contextmanager
def announce_server(settings: Settings, port: int) -> Iterator[Running]:
    """While it runs, others find it."""
    path = serve_file(settings)
    running = Running(os.getpid(), port)
    with _usable(settings.home):
        files.replace(path, msgspec.json.encode(running) + b"\n")
    try:
        yield running
    finally:
        path.unlink(missing_ok=True)


def running_server(settings: Settings) -> Running:
    """The server that holds the lock, as soon as it says where it is."""
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline:
        try:
            found = msgspec.json.decode(serve_file(settings).read_bytes(), type=Running)
        except (FileNotFoundError, msgspec.DecodeError):
            found = None
        if found and exists(found.pid, 0) is not False:
            return found
        time.sleep(0.05)
    raise Busy("a server is starting or stopping", "Try again in a moment: whyfor serve")


@contextmanager
def _usable(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write to {home}: {error.strerror}", _SPACE) from None
