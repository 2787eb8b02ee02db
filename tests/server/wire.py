"""Requests byte by byte, as no well-behaved client would send them, and a real server to send
them to."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from whyfor.config import Settings
from whyfor.live.hub import Hub
from whyfor.live.serve_lock import Running
from whyfor.server.app import App, create_app
from whyfor.server.run import Server, bound
from whyfor.service.ingest import watch_agents
from whyfor.service.serve import AccessKeys


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def everything(self) -> str:
        return f"{self.headers} {self.body.decode('utf-8', 'replace')}"


class Served(msgspec.Struct):
    """A server that runs in this process, on a port of its own."""

    app: App
    hub: Hub
    keys: AccessKeys
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys.token}"}

    @property
    def cookie(self) -> str:
        """The value of one that a browser would have."""
        return self.app.guard.start.make_cookie(int(time.time()) + 60)

    def link(self) -> str:
        return self.keys.link(Running(0, self.port)).removeprefix(self.url)

    def raw(self, data: bytes) -> Answer:
        """Whatever bytes, whatever comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as line:
            line.sendall(data)
            return _answer(line, data.partition(b" ")[0].decode())

    def ask(self, target: str, method: str = "GET", /, **headers: str | None) -> Answer:
        """A plain request; a header given as None is left away, underscores are dashes."""
        told: dict[str, str | None] = {"host": f"127.0.0.1:{self.port}"}
        told |= {name.replace("_", "-").lower(): value for name, value in headers.items()}
        lines = [
            f"{method} {target} HTTP/1.1",
            *(f"{n}: {v}" for n, v in told.items() if v is not None),
        ]
        return self.raw("\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1"))

    def get(self, target: str, **headers: str | None) -> Answer:
        """With the key."""
        return self.ask(target, **{"authorization": self.bearer["Authorization"], **headers})


def _answer(line: socket.socket, method: str) -> Answer:
    with closing(http.client.HTTPResponse(line, method=method)) as response:
        response.begin()
        streams = (response.getheader("content-type") or "").startswith("text/event-stream")
        body = b"" if streams else response.read()
        return Answer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, body
        )


@contextmanager
def served(
    settings: Settings,
    port: int = 0,
    *,
    narrow: bool = False,
    beside: bool = False,
    **options: float,
) -> Iterator[Served]:
    """The real server on the real loopback, in a thread; gone, with everything it began, at the
    end.

    A narrow one has little room between itself and a client that does not read. One beside
    another cannot tell which threads are its own.
    """
    before = set(threading.enumerate())
    hub = Hub(settings, **{"poll": 0.02, **options})
    keys = AccessKeys(settings)
    with bound(port) as listener:
        if narrow:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 << 10)
        number = int(listener.getsockname()[1])
        app = create_app(settings, port=number, keys=keys, hub=hub)
        up = threading.Event()
        server = Server(app, up.set)
        loops: list[asyncio.AbstractEventLoop] = []

        async def serve() -> None:
            loops.append(asyncio.get_running_loop())
            await server.serve(sockets=[listener])

        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        assert up.wait(20)
        try:
            yield Served(app, hub, keys, number)
        finally:
            server.should_exit = True
            loops[0].call_soon_threadsafe(hub.close)
            thread.join(20)
            assert not thread.is_alive()
    if beside:
        return
    left = set(threading.enumerate()) - before
    for each in left:
        each.join(20)  # it has been told to go
    assert not any(each.is_alive() for each in left), left


@contextmanager
def watching(settings: Settings, hub: Hub) -> Iterator[None]:
    """Tell the hub what agents do, as `serve` does."""
    stop = threading.Event()
    watch = threading.Thread(target=watch_agents, args=(settings, hub, stop))
    watch.start()
    try:
        yield
    finally:
        stop.set()
        watch.join(20)
