"""A scripted model: an HTTP server on loopback that every agent takes for its vendor's API."""

from __future__ import annotations

import json
import sys
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from . import anthropic_wire, chat_wire, gemini_wire, openai_wire
from .script import Fail, Json, Reply, Request, Say, Step, Usage, answer
from .wire import Payload, Wire, as_json, fresh

WIRES: tuple[Wire, ...] = (anthropic_wire, openai_wire, gemini_wire, chat_wire)
DONE = Reply(Say("done"))
# What an aside gets: titles, summaries and token counts are no part of the script.
ASIDE = Reply(Say("ok"), usage=Usage(input=1, output=1))


class ScriptedModel:
    """Answers each main-loop request with the next step of its script, and "done" when there is
    none.

    with ScriptedModel(Call("shell", {"command": "ls"}), Say("That is all.")) as model: ...
    """

    def __init__(self, *steps: Step) -> None:
        self.requests: list[Request] = []
        # hosts an agent tried to reach through us, its only way out; every one was refused
        self.outside: list[str] = []
        self._steps = deque(steps)
        self._prompted: dict[str, Step] = {}
        self._lock = threading.Lock()
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def add(self, *steps: Step) -> None:
        with self._lock:
            self._steps.extend(steps)

    def answer_prompt(self, prompt: str, step: Step) -> None:
        """Answer this prompt with a step, however often it is asked: agents try again."""
        with self._lock:
            self._prompted[prompt] = step

    def forget_script(self) -> None:
        """Leave out what has not been said yet."""
        with self._lock:
            self._steps.clear()

    @property
    def main_requests(self) -> list[Request]:
        return [request for request in self.requests if request.main]

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def respond(self, path: str, body: Json) -> tuple[int, Payload]:
        """The HTTP status and body for one request, which is recorded."""
        wire = next((wire for wire in WIRES if wire.claims(path)), None)
        request = _request(wire, path, body)
        step = self._record(request)
        if wire is None:
            return 404, as_json({"error": {"message": f"no such path: {path}"}})
        reply = answer(step, request)
        if isinstance(reply, Fail):
            return reply.status, wire.error(reply.status, reply.message)
        return 200, wire.payload(path, body, reply)

    def _record(self, request: Request) -> Step:
        with self._lock:
            self.requests.append(request)
            if not request.main:
                return ASIDE
            newest = request.newest()
            for prompt, step in self._prompted.items():
                if prompt in newest:
                    return step
            return self._steps.popleft() if self._steps else DONE


def _request(wire: Wire | None, path: str, body: Json) -> Request:
    if wire is None:
        return Request(path, body, (), main=False)
    return Request(path, body, tuple(wire.history(body)), wire.is_main(path, body))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model

    def handle_error(self, request: object, client_address: object) -> None:
        # An agent that is killed hangs up in the middle of an answer; that is no error of ours.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(size)
        if self._is_for_elsewhere():
            self._refuse()
            return
        status, payload = self.server.model.respond(self.path, json.loads(data or b"{}"))
        self._send(status, payload)

    def do_GET(self) -> None:
        if self._is_for_elsewhere():
            self._refuse()
        else:
            self._send(404, as_json({"error": {"message": f"no such path: {self.path}"}}))

    def do_CONNECT(self) -> None:
        self._refuse()

    def log_message(self, format: str, *args: object) -> None:
        """Silent: `requests` is the log."""

    def _is_for_elsewhere(self) -> bool:
        return not self.path.startswith("/")

    def _refuse(self) -> None:
        self.server.model.outside.append(self.path)
        self._send(403, as_json({"error": {"message": "tests stay on loopback"}}))

    def _send(self, status: int, payload: Payload) -> None:
        self.send_response(status)
        self.send_header("Content-Type", payload.kind)
        self.send_header("Content-Length", str(len(payload.data)))
        self.send_header("request-id", fresh("req_"))
        self.end_headers()
        self.wfile.write(payload.data)
