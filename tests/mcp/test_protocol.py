"""Both eras of the protocol, and messages that are not right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from whyfor.mcp.loop import LINE_MAX
from whyfor.mcp.protocol import HANDSHAKE, VERSIONS

from .client import COMMAND, LineClient, stateless


@pytest.mark.parametrize("version", HANDSHAKE)
def test_every_version_with_a_handshake_is_agreed_on(version: str, tmp_path: Path) -> None:
    with LineClient(tmp_path) as client:
        agreed = client.begin(version)
        assert agreed["protocolVersion"] == version
        assert {"recall", "timeline", "get"} <= {
            tool["name"] for tool in client.ask("tools/list")["result"]["tools"]
        }
    assert (client.code, client.left, client.errors) == (0, b"", "")


def test_an_unknown_version_is_answered_with_the_newest_that_shakes_hands(tmp_path: Path) -> None:
    with LineClient(tmp_path) as client:
        assert client.begin("2031-01-01")["protocolVersion"] == HANDSHAKE[-1]
        assert client.ask("ping")["result"] == {}


def test_a_request_without_a_handshake_carries_its_own_version(tmp_path: Path) -> None:
    with LineClient(tmp_path) as client:
        found = client.ask("server/discover", stateless())["result"]
        assert (found["resultType"], found["supportedVersions"]) == ("complete", list(VERSIONS))
        listed = client.ask("tools/list", stateless())["result"]
        assert listed["resultType"] == "complete"
        assert (listed["cacheScope"], listed["ttlMs"] > 0) == ("private", True)
        assert listed["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "whyfor"
        assert client.ask("ping", stateless())["error"]["code"] == -32601


def test_a_version_that_nobody_speaks_is_refused_with_those_we_speak(tmp_path: Path) -> None:
    with LineClient(tmp_path) as client:
        error = client.ask("tools/list", stateless("2031-01-01"))["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": list(VERSIONS), "requested": "2031-01-01"}
        meta = stateless()["_meta"]
        del meta["io.modelcontextprotocol/clientCapabilities"]
        assert client.ask("tools/list", {"_meta": meta})["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"pi', -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"nope"}', None),
        (b'"text"', -32600),
        (b"null", -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600),
        (b"x" * (LINE_MAX + 10), -32600),
        (b"x" * (3 * LINE_MAX + 10), -32600),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_message_that_is_not_right_is_answered_and_the_next_one_too(
    line: bytes, code: int | None, tmp_path: Path
) -> None:
    with LineClient(tmp_path) as client:
        client.write(line)
        error = client.read()["error"]
        assert code is None or error["code"] == code
        assert client.ask("ping")["result"] == {}
    assert (client.code, client.errors) == (0, "")


def test_answers_and_notifications_and_empty_lines_get_no_answer(tmp_path: Path) -> None:
    with LineClient(tmp_path) as client:
        for line in (
            b"",
            b"   ",
            b'{"jsonrpc":"2.0","id":1,"result":{}}',
            b'{"jsonrpc":"2.0","id":1,"error":{}}',
            b'{"jsonrpc":"2.0","method":"notifications/anything"}',
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}',
        ):
            client.write(line)
        assert client.ask("ping")["result"] == {}
    assert client.left == b""


def test_arrays_are_answered_in_the_one_version_that_has_them(tmp_path: Path) -> None:
    with LineClient(tmp_path) as client:
        client.begin("2025-03-26")
        both = [
            {"jsonrpc": "2.0", "id": 7, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/anything"},
            "text",
            {"jsonrpc": "2.0", "id": 8, "method": "nope"},
        ]
        client.write(json.dumps(both).encode())
        first, wrong, last = client.read()
        assert (first["id"], first["result"]) == (7, {})
        assert wrong["error"]["code"] == -32600
        assert (last["id"], last["error"]["code"]) == (8, -32601)


def test_a_cancelled_request_gets_no_answer(tmp_path: Path) -> None:
    with LineClient(tmp_path) as client:
        client.send("tools/call", {"name": "timeline", "arguments": {}}, ident="slow")
        client.send("tools/list", ident="cancelled")
        cancelled = {"requestId": "cancelled"}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}
        client.write(json.dumps(message).encode())
        client.send("ping", ident="last")
        answered = [client.read()["id"]]
        while answered[-1] != "last":
            answered.append(client.read()["id"])
    # The first call loads the store's modules, for long enough that the cancellation is read.
    assert answered == ["slow", "last"]


def test_what_was_asked_before_stdin_closed_is_answered(tmp_path: Path) -> None:
    with LineClient(tmp_path) as client:
        for number in range(1, 51):
            client.send("ping", ident=number)
    assert client.code == 0
    assert [json.loads(line)["id"] for line in client.left.splitlines()] == [*range(1, 51)]


def test_it_ends_when_nobody_reads_its_answers(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdout.close()
        try:
            for _ in range(1_000):
                server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
                server.stdin.flush()
        except BrokenPipeError:
            pass
        assert server.wait(timeout=30) == 0
        assert server.stderr is not None and server.stderr.read() == b""


@pytest.mark.parametrize("streams", ["0<&-", "1>&-", "0<&- 1>&-"])
def test_it_ends_when_it_is_started_with_closed_streams(streams: str, tmp_path: Path) -> None:
    command = f'"$0" -m whyfor mcp {streams} </dev/null' if "0" not in streams else ""
    command = command or f'"$0" -m whyfor mcp {streams}'
    done = subprocess.run(
        ["sh", "-c", command, COMMAND[0]], cwd=tmp_path, capture_output=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_an_interrupt_ends_it_quietly(tmp_path: Path) -> None:
    with LineClient(tmp_path) as client:
        client.ask("ping")
        os.kill(client.process.pid, signal.SIGINT)
        client.process.wait(timeout=30)
    assert (client.code, client.errors) == (0, "")
