"""What the server says about itself: a line of JSON for each request, and figures for Prometheus.

Neither has anything of what was asked or answered: a route's pattern instead of its address,
numbers instead of names.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TextIO

import msgspec
from litestar.types import Message, Scope, Send

from whyfor import __version__
from whyfor.model.times import to_iso
from whyfor.team.resources import TeamResources

_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class RequestLog:
    """Counts requests; writes a line about each to `output`, if there is one."""

    def __init__(self, resources: TeamResources) -> None:
        self._resources = resources
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[float] = Counter()
        self._seconds = 0.0
        self.output: TextIO | None = None

    def watching(self, scope: Scope, send: Send) -> Send:
        """Return a `send` that notes how a request was answered when its answer begins."""
        began = time.perf_counter()

        async def sending(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start":
                self._note(scope, message["status"], time.perf_counter() - began)

        return sending

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        known: Any = scope
        route = str(known.get("path_template") or "none")
        method = str(known.get("method", ""))
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds += seconds
            for bound in _BOUNDS:
                self._buckets[bound] += seconds <= bound
        if self.output is not None:
            self._write(known, method, route, status, seconds)

    def _write(self, scope: Any, method: str, route: str, status: int, seconds: float) -> None:
        context = scope.get("whyfor")
        member = context.member if context else None
        line = {
            "at": to_iso(int(time.time() * 1000)),
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "ip": context.ip if context else "",
            "person": member.person if member else None,
            "token": member.token if member else None,
        }
        self.output.write(msgspec.json.encode(line).decode() + "\n")  # type: ignore[union-attr]
        self.output.flush()  # type: ignore[union-attr]

    def text(self) -> str:
        """Return all figures in the form that Prometheus reads."""
        with self._lock:
            requests, buckets = dict(self._requests), dict(self._buckets)
            seconds = self._seconds
        total = sum(requests.values())
        lines = [
            "# TYPE whyfor_info gauge",
            f'whyfor_info{{version="{__version__}"}} 1',
            "# TYPE whyfor_requests_total counter",
        ]
        for (method, route, status), count in sorted(requests.items()):
            labels = f'method="{method}",route="{_label(route)}",status="{status}"'
            lines.append(f"whyfor_requests_total{{{labels}}} {count}")
        lines.append("# TYPE whyfor_request_seconds histogram")
        for bound in _BOUNDS:
            count = buckets.get(bound, 0)
            lines.append(f'whyfor_request_seconds_bucket{{le="{bound}"}} {count}')
        lines += [
            f'whyfor_request_seconds_bucket{{le="+Inf"}} {total}',
            f"whyfor_request_seconds_sum {seconds:.6f}",
            f"whyfor_request_seconds_count {total}",
            "# TYPE whyfor_listeners gauge",
            f"whyfor_listeners {self._resources.changes.listeners}",
            "# TYPE whyfor_database_pool gauge",
        ]
        for name, value in sorted(self._resources.database.pool.stats().items()):
            lines.append(f'whyfor_database_pool{{what="{_label(name)}"}} {value}')
        return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


@contextmanager
def serving_metrics(log: RequestLog, port: int) -> Iterator[int]:
    """Answer `/metrics` on a port of the loopback interface; return the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = log.text().encode() if self.path == "/metrics" else b""
            self.send_response(200 if body else 404)
            self.send_header("content-type", _TYPE)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: who scrapes is no news."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def log_to_stderr(log: RequestLog) -> None:
    log.output = sys.stderr
