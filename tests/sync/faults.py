"""A proxy between a laptop and its server that fails the way it is told."""

from __future__ import annotations

import http.client
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

Fault = Callable[["ProxyRequest"], bool]  # answers, or not; True if it did


class ProxyRequest:
    """One request on its way."""

    def __init__(self, handler: _Handler, body: bytes) -> None:
        self.handler = handler
        self.method = handler.command
        self.path = handler.path
        self.body = body
        self.headers = dict(handler.headers)

    def answer(self, status: int, body: bytes = b"{}", **headers: str) -> bool:
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.send_header("content-length", str(len(body)))
        self.handler.end_headers()
        self.handler.wfile.write(body)
        return True

    def hang_up(self) -> bool:
        self.handler.close_connection = True
        self.handler.connection.close()
        return True


class FaultProxy:
    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.url = ""

    def forward(self, request: ProxyRequest) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.target.hostname or "", self.target.port)
        headers = {**request.headers, "Host": self.target.netloc}
        connection.request(request.method, request.path, request.body or None, headers)
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return found


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultProxy

    def _serve(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        request = ProxyRequest(self, self.rfile.read(size))
        self.proxy.requests.append((request.method, request.path.rsplit("/", 1)[0]))
        for fault in list(self.proxy.faults):
            if fault(request):
                return
        status, headers, body = self.proxy.forward(request)
        kept = {n: v for n, v in headers.items() if n.lower() in ("retry-after", "content-type")}
        request.answer(status, body, **kept)

    do_GET = do_POST = do_PUT = _serve

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def fault_proxy(target: str) -> Iterator[FaultProxy]:
    proxy = FaultProxy(target)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def always(status: int, **headers: str) -> Fault:
    """Answer everything with a status."""
    return lambda request: request.answer(status, b'{"detail":"scripted"}', **headers)


def first(number: int, fault: Fault, path: str = "") -> Fault:
    """Fail the first so many requests, or those whose path ends so."""
    left = [number]

    def failing(request: ProxyRequest) -> bool:
        if left[0] <= 0 or path not in request.path:
            return False
        left[0] -= 1
        return fault(request)

    return failing


def hang_up(request: ProxyRequest) -> bool:
    return request.hang_up()


def after_the_server(proxy: FaultProxy) -> Fault:
    """Let the server do its work, and lose its answer."""

    def losing(request: ProxyRequest) -> bool:
        proxy.forward(request)
        return request.hang_up()

    return losing


def slow(seconds: float) -> Fault:
    def waiting(request: ProxyRequest) -> bool:
        time.sleep(seconds)
        return request.hang_up()

    return waiting
