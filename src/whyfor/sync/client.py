"""Asking a team server, over the standard library's HTTP client: sharing needs nothing that is not
installed with Whyfor anyway, and the eight kinds of answers below are all there is to understand.

No redirect is followed, because the token would go along. The number of tries and the pauses
between them are here; when to try again after that is the outbox's.
"""

from __future__ import annotations

import http.client
import random
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from whyfor import __version__
from whyfor.model.errors import WhyforError

PAUSES = (1.0, 4.0, 16.0)  # seconds before the next try, half more or less
CONNECT = 5.0  # seconds
IDLE = 30.0
ANSWER_MAX = 80 << 20  # bytes
_TRANSIENT = frozenset((408, 500, 502, 503, 504))
T = TypeVar("T")


class RemoteFault(WhyforError):
    """A server did not do what it was asked."""

    kind = "remote"
    retried = False  # whether time alone may help


class RemoteDown(RemoteFault):
    """It cannot be reached, or not now."""

    kind = "remote_down"
    retried = True

    def __init__(
        self, message: str, hint: str = "", wait: float | None = None, *, reached: bool = False
    ) -> None:
        super().__init__(message, hint)
        self.wait = wait  # seconds, if the server said so
        self.reached = reached  # the server is there: it may be this request alone


class NeedsLogin(RemoteFault):
    kind = "needs_login"


class NotMember(RemoteFault):
    kind = "not_member"


class Outdated(RemoteFault):
    kind = "outdated"


class RemoteTooLarge(RemoteFault):
    kind = "too_large"


class RemoteRejected(RemoteFault):
    kind = "unprocessable"


class RemoteFull(RemoteFault):
    kind = "quota"


class RemoteWithdrawn(RemoteFault):
    """Somebody forgot it everywhere."""

    kind = "withdrawn"


_FAULTS: dict[int, tuple[type[RemoteFault], str]] = {
    400: (RemoteRejected, "Upgrade Whyfor, here or on the server."),
    401: (NeedsLogin, "Log in: whyfor login"),
    403: (NotMember, "Ask an admin of the project, then: whyfor sync"),
    404: (NotMember, "Ask to be invited, then: whyfor sync"),
    409: (Outdated, "It is planned again."),
    410: (RemoteWithdrawn, "It was forgotten everywhere, and stays so."),
    413: (RemoteTooLarge, "It is sent in smaller pieces."),
    422: (RemoteRejected, "Please report it."),
    507: (RemoteFull, "Ask an admin of the project for more room, then: whyfor sync"),
}


class RemoteAnswer(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    skew: float = 0.0  # seconds by which the server's clock is ahead of ours


class Patience(msgspec.Struct, frozen=True):
    """How long and how often a server is asked."""

    pauses: tuple[float, ...] = PAUSES
    connect: float = CONNECT
    idle: float = IDLE


USUAL = Patience()
QUICK = Patience((), 0.8, 0.8)  # for who waits at a terminal


class TeamClient:
    """One server, asked as one person."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        patience: Patience = USUAL,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.url = url
        self.token = token
        self.patience = patience
        self.skew = 0.0
        self.tries = 0  # requests that were sent, repeated ones too
        self._sleep = sleep
        self._parts = urlsplit(url)
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def get(self, path: str, kind: type[T]) -> T:
        """Return what the server answers, as this type. Raises RemoteFault."""
        return self._decoded(self.ask("GET", path), kind)

    def post(self, path: str, body: object, kind: type[T]) -> T:
        data = msgspec.json.encode(body)
        return self._decoded(self.ask("POST", path, data), kind)

    def post_form(self, path: str, fields: dict[str, str], kind: type[T]) -> T:
        """As a browser's form does: for the endpoints of RFC 8628."""
        data = urlencode(fields).encode()
        form = "application/x-www-form-urlencoded"
        return self._decoded(self.ask("POST", path, data, form), kind)

    def put(self, path: str, packed: bytes) -> None:
        self.ask("PUT", path, packed, "application/zstd")

    def _decoded(self, answer: RemoteAnswer, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise RemoteDown(f"{self.url} did not answer as a Whyfor server does") from None

    def ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> RemoteAnswer:
        """Ask, and again if that may help. Raises RemoteFault."""
        for pause in (*self.patience.pauses, None):
            try:
                return self._checked(self._once(method, path, body, kind))
            except RemoteDown as fault:
                if pause is None or (fault.wait is not None and fault.wait > 2 * PAUSES[-1]):
                    raise
                wished = pause if fault.wait is None else fault.wait
                self._sleep(wished * random.uniform(0.5, 1.5))
        raise AssertionError

    def _checked(self, answer: RemoteAnswer) -> RemoteAnswer:
        self.skew = answer.skew
        if answer.status < 300:
            return answer
        message, wait = _told(answer)
        if answer.status == 429:
            raise RemoteDown(message or "the server wants us to slow down", "", wait)
        if answer.status in _TRANSIENT:
            words = message or f"the server answered {answer.status}"
            raise RemoteDown(words, "", wait, reached=True)
        fault, hint = _FAULTS.get(answer.status, (RemoteRejected, "Is it a Whyfor server?"))
        raise fault(message or f"the server answered {answer.status}", hint)

    def _once(self, method: str, path: str, body: bytes | None, kind: str) -> RemoteAnswer:
        headers = {"user-agent": f"whyfor/{__version__}", "accept": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["content-type"] = kind
        self.tries += 1
        reached = False
        try:
            connection = self._connected()
            reached = True
            connection.request(method, self._parts.path + path, body, headers)
            response = connection.getresponse()
            content = response.read(ANSWER_MAX + 1)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            reached = reached and not isinstance(error, TimeoutError)
            words = f"{self._parts.netloc}: {_reason(error)}"
            raise RemoteDown(words, reached=reached) from None
        if len(content) > ANSWER_MAX:
            self.close()
            raise RemoteDown(f"{self._parts.netloc} answered too much")
        if response.will_close:
            self.close()
        wait = response.headers.get("retry-after")
        answer = RemoteAnswer(response.status, content, _skew(response.headers.get("date")))
        if wait is not None and wait.isdigit() and response.status >= 400:
            raise_wait(answer, float(wait))
        return answer

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is not None:
            return self._connection
        made = self._made()
        made.timeout = self.patience.connect
        made.connect()
        if made.sock is not None:
            made.sock.settimeout(self.patience.idle)
            made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = made
        return made

    def _made(self) -> http.client.HTTPConnection:
        secure = self._parts.scheme == "https"
        host, port = self._parts.hostname or "", self._parts.port
        proxy = urllib.request.getproxies().get(self._parts.scheme)
        if not proxy or urllib.request.proxy_bypass(host):
            if secure:
                return http.client.HTTPSConnection(host, port, context=_context())
            return http.client.HTTPConnection(host, port)
        at = urlsplit(proxy)
        if not secure:
            raise OSError("a proxy is used for https only")
        tunnel = http.client.HTTPSConnection(at.hostname or "", at.port or 3128, context=_context())
        tunnel.set_tunnel(host, port or 443)
        return tunnel


def raise_wait(answer: RemoteAnswer, wait: float) -> None:
    """Raise RemoteDown if the server says when to come again."""
    if answer.status == 429 or answer.status in _TRANSIENT:
        message, _ = _told(answer)
        raise RemoteDown(message or "the server wants us to slow down", "", wait)


def _context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _told(answer: RemoteAnswer) -> tuple[str, float | None]:
    """Return the server's words, if it has any."""
    try:
        found: Any = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", None
    if not isinstance(found, dict):
        return "", None
    told = found.get("error")
    if isinstance(told, dict):
        told = told.get("message")
    told = told or found.get("message") or found.get("detail")
    return (told[:300] if isinstance(told, str) else ""), None


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, socket.gaierror):
        return "its name is not known"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _skew(date: str | None) -> float:
    """Return by how many seconds the server's clock is ahead."""
    if not date:
        return 0.0
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return 0.0
