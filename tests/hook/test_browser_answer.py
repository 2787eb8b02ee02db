"""The hook asks a server on another port, and does not outlive whoever waits for its answer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.cases import check_each
from tests.hook import SECONDS, Installed

ANSWER = b'{"hookSpecificOutput": {}}'
PAYLOAD = b'{"session_id": "s-1"}'


@pytest.fixture
def listener(hook: Installed) -> Iterator[socket.socket]:
    """A server that says in Whyfor's home where it is."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        told = {"pid": os.getpid(), "port": server.getsockname()[1]}
        (hook.home / "serve.json").write_text(json.dumps(told))
        (hook.folder / "answer.key").write_text("secret\n")
        yield server


@contextmanager
def asking(hook: Installed, settings_port: int = 1) -> Iterator[subprocess.Popen[bytes]]:
    command = hook.command("claude", "--ask", str(settings_port), "PermissionRequest")
    with subprocess.Popen(
        ["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as one:
        assert one.stdin
        one.stdin.write(PAYLOAD)
        one.stdin.close()
        yield one
        one.wait(SECONDS)


def head(line: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found:
        found += line.recv(1)
    return found


def test_what_the_server_answers_is_printed(hook: Installed, listener: socket.socket) -> None:
    with asking(hook) as one:
        line, _ = listener.accept()
        with line:
            asked = head(line)
            assert asked.startswith(b"POST /whyfor/answers/claude HTTP/1.1\r\n")
            assert b"\r\nAuthorization: Bearer secret\r\n" in asked
            line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            assert line.recv(1000) == PAYLOAD
            line.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + ANSWER)
        assert one.stdout and one.stdout.read() == ANSWER


GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
NONSENSE = {
    "nothing": (b"", b""),
    "an error at once": (b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", b""),
    "no HTTP": (b"allow allow allow\r\n\r\n", b""),
    "an answer at once": (b"HTTP/1.1 200 OK\r\n\r\n" + ANSWER, b""),
    "an error": (GO_ON, b"HTTP/1.1 409 Conflict\r\n\r\n" + ANSWER),
    "no JSON": (GO_ON, b"HTTP/1.1 200 OK\r\n\r\n\xff{{allow]]"),
    "half an answer": (GO_ON, b"HTTP/1.1 200 OK\r\n\r\n" + ANSWER[:-1]),
    "an endless answer": (GO_ON, b'HTTP/1.1 200 OK\r\n\r\n{"' + b"a" * 70_000 + b"}"),
    "it hangs up": (GO_ON, b""),
}


def test_nonsense_of_a_server_is_not_printed(hook: Installed, listener: socket.socket) -> None:
    def check(told: tuple[bytes, bytes]) -> None:
        first, then = told
        with asking(hook) as one:
            line, _ = listener.accept()
            with line, suppress(ConnectionError):
                head(line)
                line.sendall(first)
                if first == GO_ON:
                    assert line.recv(1000) == PAYLOAD
                    line.sendall(then)
            assert one.stdout and one.stdout.read() == b""
        assert one.returncode == 0

    check_each(NONSENSE.items(), check)


def test_it_is_gone_when_nobody_reads_it_any_more(hook: Installed, listener: socket.socket) -> None:
    with asking(hook) as one:
        line, _ = listener.accept()
        with line:
            line.settimeout(SECONDS)
            head(line)
            line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            assert line.recv(1000) == PAYLOAD
            assert one.poll() is None, "it waits for the answer"
            assert one.stdout
            one.stdout.close()
            assert line.recv(1000) == b"", "it has hung up"


def test_the_agent_itself_asks_at_the_port_of_its_settings(
    hook: Installed, listener: socket.socket
) -> None:
    with asking(hook, listener.getsockname()[1]) as one:
        assert one.stdout and one.stdout.read() == b""
    listener.settimeout(0)
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("told", ["", "{}", '{"pid": 1}', '{"pid": 4194305, "port": 1}', "[]"])
def test_no_server_no_answer(hook: Installed, listener: socket.socket, told: str) -> None:
    (hook.home / "serve.json").write_text(told)
    with asking(hook) as one:
        assert one.stdout and one.stdout.read() == b""
