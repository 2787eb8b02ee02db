"""Telemetry over HTTP: with its key only, bounded, and on disk before it is acknowledged."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.otlp import claude_request, field, json_logs, protobuf_logs
from tests.server.test_serve import Process, serving
from tests.server.wire import Served, served
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.approvals import ApprovalQuery
from whyfor.model.times import parse_iso
from whyfor.service.approvals import list_approvals
from whyfor.service.ingest import ingest
from whyfor.service.telemetry import read_telemetry_key, telemetry_key
from whyfor.store.open import reading_local

AT = 1_790_000_000_000
PROTOBUF = {"Content-Type": "application/x-protobuf"}


def send(
    port: int, body: bytes, key: str, path: str = "/v1/logs", **headers: str
) -> tuple[int, bytes]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    told = {**PROTOBUF, **{name.replace("_", "-"): value for name, value in headers.items()}}
    if key:
        told["Authorization"] = f"Bearer {key}"
    try:
        line.request("POST", path, body, told)
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


def stored(settings: Settings) -> int:
    with reading_local(settings) as library:
        return len(library.telemetry.requests(0))


def test_every_form_of_it_is_read(settings: Settings) -> None:
    key = telemetry_key(settings)
    packed = gzip.compress(protobuf_logs([claude_request("s-1", AT, 2)]))
    with served(settings) as server:
        port = server.port
        assert send(port, protobuf_logs([claude_request("s-1", AT, 1)]), key) == (200, b"")
        assert send(port, packed, key, Content_Encoding="gzip") == (200, b"")
        told = json_logs([claude_request("s-1", AT, 3)])
        assert send(port, told, key, Content_Type="application/json") == (200, b"{}")
        inside = protobuf_logs([claude_request("s-1", AT, 4)])
        assert send(port, inside, "", f"/{key}/v1/logs") == (200, b"")  # for agents without headers
        for other in ("/v1/metrics", "/v1/traces"):
            assert send(port, b"", key, other) == (200, b"")
    ingest(settings)
    with reading_local(settings) as library:
        found = [each.request for each in library.telemetry.requests(0)]
    assert [each.output for each in found] == [496, 497, 498, 499]
    assert {(each.usd, each.cache_read, each.at, each.purpose) for each in found} == {
        (0.0495, 22000, AT, "sdk")
    }


@pytest.mark.parametrize(
    ("key", "headers", "status"),
    [
        ("", {}, 401),
        ("wrong", {}, 401),
        ("right", {"Origin": "http://evil.example"}, 403),
        ("right", {"Cookie": "a=b"}, 403),
        ("right", {"Host": "evil.example"}, 421),
        ("right", {"Content_Encoding": "br"}, 400),
        ("right", {"Content_Encoding": "gzip"}, 400),
        ("right", {"Content_Type": "application/json"}, 400),
    ],
)
def test_it_is_refused_without_the_key_or_from_elsewhere(
    settings: Settings, key: str, headers: dict[str, str], status: int
) -> None:
    known = telemetry_key(settings)
    with served(settings) as server:
        body = protobuf_logs([claude_request("s-1", AT)])
        given = known if key == "right" else key
        assert send(server.port, body, given, **headers)[0] == status
    assert not (settings.home / "spool").exists()


def test_its_key_opens_nothing_else_and_nobody_sends_before_init(settings: Settings) -> None:
    with served(settings) as server:
        assert read_telemetry_key(settings) == ""
        assert send(server.port, b"", "x" * 43)[0] == 403
        key = telemetry_key(settings)
        assert _status(server, key) == 401


def _status(server: Served, key: str) -> int:
    return server.ask("/api/sessions", authorization=f"Bearer {key}").status


def test_what_is_too_large_or_broken_is_refused_and_the_server_goes_on(settings: Settings) -> None:
    key = telemetry_key(settings)
    bomb = gzip.compress(b"\0" * (64 << 20))
    with served(settings) as server:
        port = server.port
        assert send(port, b"x" * ((4 << 20) + 1), key)[0] == 413
        assert send(port, bomb, key, Content_Encoding="gzip")[0] == 400
        for broken in (b"\xff" * 40, field(1, b"\x0a\xff"), b"\x0a\x05abc", b"\x0b\x01"):
            assert send(port, broken, key)[0] == 400
        words = claude_request("s-1", AT, 1, prompt="x" * 100_000)
        assert send(port, protobuf_logs([words]), key)[0] == 200
    ingest(settings)
    assert stored(settings) == 1
    assert b"xxxx" not in b"".join(p.read_bytes() for p in (settings.home / "spool").iterdir())


def _port(process: Process) -> int:
    found = re.search(r":(\d+)/", process.said["link"])
    assert found is not None
    return int(found[1])


def test_nothing_is_lost_when_the_server_is_killed_after_its_answer(settings: Settings) -> None:
    key = telemetry_key(settings)
    with serving() as process:
        for number in range(20):
            body = protobuf_logs([claude_request("s-1", AT, number)])
            assert send(_port(process), body, key)[0] == 200
        process.popen.send_signal(signal.SIGKILL)
        process.popen.wait(20)
    ingest(settings)
    assert stored(settings) == 20


def test_the_agents_own_price_wins_and_side_requests_count(settings: Settings, home: Path) -> None:
    talk = Transcript("s-1")
    talk.prompt("Fix the door")
    talk.say("Fixed.")
    talk.save(home)
    at = parse_iso(talk.lines[-1]["timestamp"]) or 0
    key = telemetry_key(settings)
    tokens = {"input_tokens": 3, "cache_creation_tokens": 20, "cache_read_tokens": 100}
    mine = claude_request(talk.session_id, at + 90, 1, output_tokens=10, **tokens)
    side = claude_request(talk.session_id, at + 5000, 2, cost_usd=0.25, query_source="title")
    with served(settings) as server:
        for _ in range(2):  # a sender that was not answered sends again
            assert send(server.port, protobuf_logs([mine, side]), key)[0] == 200
    ingest(settings)
    with reading_local(settings) as library:
        session = library.sessions.find(talk.session_id, "claude")
    assert session.tokens.cost == round((0.0495 + 0.25) * 1e9)


def test_decisions_go_to_the_list_of_approvals(settings: Settings, home: Path) -> None:
    talk = Transcript("s-1")
    talk.prompt("Run it")
    talk.save(home)
    at = parse_iso(talk.lines[-1]["timestamp"]) or 0
    decided = {
        "session.id": talk.session_id,
        "event.name": "tool_decision",
        "decision": "reject",
        "source": "user_reject",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
    }
    key = telemetry_key(settings)
    with served(settings) as server:
        body = protobuf_logs([("claude_code.tool_decision", at, dict(decided))])
        assert send(server.port, body, key)[0] == 200
    ingest(settings)
    [found] = list_approvals(settings, ApprovalQuery()).rows
    assert (found.decision.decision, found.decision.by) == ("denied", "terminal")


def span(number: int, **more: object) -> bytes:
    """A line as Copilot CLI writes it to its file."""
    given = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "s-1",
        "gen_ai.request.model": "model-1",
        "gen_ai.usage.input_tokens": 26400,
        "gen_ai.usage.output_tokens": number,
        "gen_ai.usage.cache_read.input_tokens": 22000,
        "gen_ai.usage.cache_write.input_tokens": 3300,
        "gen_ai.response.id": f"r-{number}",
        "gen_ai.response.time_to_first_chunk": 0.25,
        "github.copilot.cost": 1.0,
        "gen_ai.input.messages": "words that nobody keeps",
        **more,
    }
    times = {"startTime": [AT // 1000, 0], "endTime": [AT // 1000 + 2, 500_000_000]}
    return json.dumps({"type": "span", **times, "attributes": given}).encode() + b"\n"


def test_what_copilot_writes_to_a_file_is_read_once(settings: Settings) -> None:
    path = settings.home / "telemetry" / "copilot.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"type":"metric"}\n{"type":"span","attributes":[]}\nnonsense\n' + span(1))
    ingest(settings)
    assert stored(settings) == 0  # nobody wanted it
    telemetry_key(settings)
    with path.open("ab") as file:
        file.write(span(2, **{"gen_ai.operation.name": "execute_tool"}) + span(3)[:40])
    ingest(settings)
    ingest(settings)
    assert stored(settings) == 1
    with path.open("ab") as file:
        file.write(span(3)[40:])
    ingest(settings)
    with reading_local(settings) as library:
        first, last = (each.request for each in library.telemetry.requests(0))
    assert (first.output, last.output) == (1, 3)
    assert (last.agent, last.session_id, last.ident) == ("copilot", "s-1", "r-3")
    assert (last.input, last.cache_read, last.cache_write) == (1100, 22000, 3300)
    assert (last.usd, last.duration_ms, last.first_token_ms) == (None, 2500, 250)
    spooled = b"".join(path.read_bytes() for path in (settings.home / "spool").iterdir())
    assert b"words that nobody keeps" not in spooled
    os.utime(path, (1_700_000_000, 1_700_000_000))
    ingest(settings)
    assert not path.exists() and stored(settings) == 2
