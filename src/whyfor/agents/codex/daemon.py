"""Answers a request of Codex through the socket of its daemon, which its terminal program starts.

An experimental protocol: JSON messages in WebSocket frames over a Unix socket. Whatever is not as
it was when this was written means that no answer is given.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from whyfor.agents.base import AnswerRequest, as_dict, get_str
from whyfor.agents.codex.facts import HOOKS

_SOCKET = "app-server-control/app-server-control.sock"
_PATIENCE = 3.0  # seconds for all of it
_LARGEST = 8 << 20  # bytes of a message
_ASKED = "item/commandExecution/requestApproval"
_DONE = "serverRequest/resolved"
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


def daemon_answers(home: Path, env: Mapping[str, str]) -> AnswerRequest | None:
    """Return what answers requests of Codex here; None if no daemon of ours has its socket."""
    try:
        # Codex links to a short path, because a socket's path has at most 107 bytes.
        path = (HOOKS.folder(home, env) / _SOCKET).resolve(strict=True)
        found = path.stat()
    except OSError:
        return None
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        return None
    return lambda thread, action, allowed: _answer(path, thread, action, allowed)


def _answer(path: Path, thread: str, action: str, allowed: bool) -> bool:
    try:
        with closing(_Connection(path)) as daemon:
            daemon.call("initialize", _HELLO)
            daemon.send({"method": "initialized"})
            daemon.call("thread/resume", {"threadId": thread, "excludeTurns": True})
            for message in daemon.messages():
                if message.get("method") == _ASKED and _is_meant(message, thread, action):
                    decision = "accept" if allowed else "decline"
                    daemon.send({"id": message["id"], "result": {"decision": decision}})
                elif message.get("method") == _DONE:
                    return True
    except (OSError, ValueError, KeyError, TypeError, msgspec.DecodeError):
        return False
    return False


_HELLO = {
    "clientInfo": {"name": "whyfor", "title": "Whyfor", "version": "1"},
    "capabilities": {"experimentalApi": True},
}


def _is_meant(message: dict[str, Any], thread: str, action: str) -> bool:
    """Return whether this is the request that the person saw: its thread and exact command."""
    asked = as_dict(message.get("params"))
    command = asked.get("command")
    if isinstance(command, list):
        command = command[-1] if len(command) == 3 else " ".join(map(str, command))
    if not isinstance(command, str) or get_str(asked, "threadId") != thread:
        return False
    return command == action or _inner(command) == action


def _inner(command: str) -> str:
    """Return what a shell runs: `/bin/bash -lc 'make test'` → `make test`."""
    import shlex

    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else command


class _Connection:
    """A client of the daemon."""

    def __init__(self, path: Path) -> None:
        self._end = time.monotonic() + _PATIENCE
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_PATIENCE)
        self._buffer = b""
        self._number = 0
        self._kept: list[dict[str, Any]] = []  # came while an answer was waited for
        try:
            self._socket.connect(str(path))
            self._upgrade()
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask for something and return the result. Raises ValueError if it is refused."""
        self._number += 1
        number = self._number
        self.send({"id": number, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                if "result" not in message:
                    raise ValueError(f"{method} was refused")
                return as_dict(message["result"])
            self._kept.append(message)

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield what comes. Raises OSError when it takes too long."""
        while True:
            yield self._kept.pop(0) if self._kept else self._receive()

    def send(self, message: dict[str, Any]) -> None:
        self._frame(_TEXT, msgspec.json.encode(message))

    def _upgrade(self) -> None:
        key = secrets.token_bytes(16).hex()[:22] + "=="
        lines = (
            "GET / HTTP/1.1",
            "Host: localhost",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        )
        self._socket.sendall("\r\n".join((*lines, "", "")).encode())
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            raise ValueError("the daemon does not speak WebSocket")

    def _frame(self, kind: int, body: bytes) -> None:
        mask = secrets.token_bytes(4)
        size = len(body)
        head = bytes([0x80 | kind])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", size)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(body))
        self._socket.sendall(head + mask + masked)

    def _receive(self) -> dict[str, Any]:
        whole = b""
        while True:
            first, size = self._take(2)
            length = size & 0x7F
            if length == 126:
                length = struct.unpack(">H", self._take(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self._take(8))[0]
            if size & 0x80 or length + len(whole) > _LARGEST:
                raise ValueError("not a frame of a server")
            body = self._take(length)
            kind = first & 0x0F
            if kind == _PING:
                self._frame(_PONG, body)
            elif kind == _CLOSE:
                raise OSError("closed")
            elif kind != _PONG:
                whole += body
                if first & 0x80:
                    return as_dict(msgspec.json.decode(whole))

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _more(self) -> None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise OSError("the daemon does not answer")
        self._socket.settimeout(left)
        part = self._socket.recv(1 << 16)
        if not part:
            raise OSError("closed")
        self._buffer += part
