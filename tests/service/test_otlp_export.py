"""`export --otlp`: what a collector receives, decoded by the official messages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.telemetry import StoredResponse
from whyfor.service.exchange.otlp import session_spans
from whyfor.story.session_lookup import load_conversation

Cli = Callable[..., Result]
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Collector:
    """Takes traces on loopback, and keeps what was sent."""

    def __init__(self, status: int = 200) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.status = status

    @contextmanager
    def running(self) -> Iterator[str]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                outer.paths.append(self.path)
                self.send_response(outer.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def spans(self, at: int = 0) -> list[Any]:
        request = ExportTraceServiceRequest.FromString(self.bodies[at])
        [resource] = request.resource_spans
        [scope] = resource.scope_spans
        assert scope.scope.name == "whyfor"
        assert scope.schema_url == "https://opentelemetry.io/schemas/1.41.0"
        return list(scope.spans)


def attributes(span: Any) -> dict[str, Any]:
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes
    }


@pytest.fixture
def talk(home: Path, cli: Cli) -> Transcript:
    talk = Transcript("s-1")
    talk.prompt(f"Fix the door; the token is {SECRET}")
    talk.call("Bash", {"command": f"TOKEN={SECRET} make test"}, "ok")
    talk.say("Fixed.")
    talk.prompt("And the window")
    talk.say("Done.")
    talk.save(home)
    assert cli("ingest").code == 0
    return talk


def test_a_turn_is_a_trace_of_agent_responses_and_tools(talk: Transcript, cli: Cli) -> None:
    collector = Collector()
    with collector.running() as url:
        told = cli("export", talk.session_id[:8], "--otlp", url, "--header", "x-key=7", "--json")
    assert told.json["traces"] == 2
    assert collector.paths == ["/v1/traces"]
    assert collector.headers[0]["x-key"] == "7"
    assert collector.headers[0]["content-type"] == "application/x-protobuf"
    spans = collector.spans()
    names = [span.name for span in spans]
    assert names[0] == "invoke_agent claude"
    assert "execute_tool Bash" in names and "chat claude-test-1" in names
    root = spans[0]
    assert {len(span.trace_id) for span in spans} == {16}
    assert {len(span.span_id) for span in spans} == {8}
    inside = [span for span in spans if span.trace_id == root.trace_id and span is not root]
    assert {span.parent_span_id for span in inside} == {root.span_id}
    chat = next(span for span in spans if span.name.startswith("chat"))
    assert chat.kind == 3  # a client's
    given = attributes(chat)
    assert given["gen_ai.usage.input_tokens"] == 123  # with what came from the cache and went there
    assert given["gen_ai.usage.cache_read.input_tokens"] == 100
    assert given["gen_ai.usage.cache_creation.input_tokens"] == 20
    assert given["gen_ai.provider.name"] == "anthropic"
    assert given["gen_ai.conversation.id"] == talk.session_id
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    assert SECRET.encode() not in collector.bodies[0]
    assert b"Fix the door" not in collector.bodies[0]


def test_tokens_that_are_unknown_are_left_out(talk: Transcript, settings: Settings) -> None:
    found = load_conversation(settings, talk.session_id, whole=False)
    told = StoredResponse(found.session.id, 1, 1, None, (None, None, None, 30), "gpt-demo")
    spans = session_spans(found, [told], content=False)
    [chat] = [span for span in spans if span.name == "chat gpt-demo"]
    used = {name for name in chat.attributes if name.startswith("gen_ai.usage")}
    assert used == {"gen_ai.usage.output_tokens"}


def test_sent_twice_it_is_the_same_trace(talk: Transcript, cli: Cli) -> None:
    collector = Collector()
    with collector.running() as url:
        for _ in range(2):
            assert cli("export", "--otlp", url, "--since", "2020-01-01").code == 0
    assert collector.bodies[0] == collector.bodies[1]


def test_content_leaves_on_request_without_its_secrets(talk: Transcript, cli: Cli) -> None:
    collector = Collector()
    with collector.running() as url:
        told = cli("export", talk.session_id[:8], "--otlp", url, "--content", "--json")
    assert told.json["redacted"] >= 2
    [body] = collector.bodies
    assert b"Fix the door" in body and b"make test" in body
    assert SECRET.encode() not in body


def test_a_collector_that_refuses_or_is_not_there_is_an_error(talk: Transcript, cli: Cli) -> None:
    collector = Collector(503)
    with collector.running() as url:
        refused = cli("export", talk.session_id[:8], "--otlp", url)
    assert refused.code == 2 and "answered 503" in refused.err
    gone = cli("export", talk.session_id[:8], "--otlp", url)
    assert gone.code == 2 and "cannot be reached" in gone.err
    assert cli("export", talk.session_id[:8], "--otlp", "ftp://x").code == 2
