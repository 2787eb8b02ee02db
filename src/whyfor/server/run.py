"""Run the server: one per home, on the loopback interface only."""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from whyfor.config import Settings
from whyfor.live.hub import Hub
from whyfor.live.notify import Notifier
from whyfor.model.errors import Busy
from whyfor.server.app import create_app
from whyfor.server.connections import KEYLESS, Connection, Connections
from whyfor.server.warm import warm
from whyfor.service import serve as access
from whyfor.service.ingest import watch_agents
from whyfor.terminal import say

HOST = "127.0.0.1"
HEADER_BYTES = 32 << 10
CONNECTIONS = 256  # of clients that have shown a key
AT_ONCE = 32  # connections taken in before those that are there are attended to; see KEYLESS
QUEUE = 512  # connections that the system lets wait meanwhile
STOPPING = 3  # seconds a request in work may take when the server stops
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    if hasattr(signal, name)
]
# told where it is, a link, and whether it ran before
Ready = Callable[[access.Running, str, bool], None]


def serve(settings: Settings, port: int | None, ready: Ready) -> None:
    """Serve until a signal; if a server is running already, print a link to it."""
    keys = access.AccessKeys(settings)
    try:
        with access.hold_server(settings), bound(port) as listener:
            number = int(listener.getsockname()[1])
            with access.announce_server(settings, number) as running:
                hub = Hub(settings)
                app = create_app(settings, port=number, keys=keys, hub=hub)
                try:
                    with _watching(settings, hub):
                        gc.enable()  # a long life, unlike other commands'

                        def started() -> None:
                            ready(running, keys.link(running), False)
                            threading.Thread(
                                target=warm, args=(app.templates,), daemon=True
                            ).start()

                        server = Server(app, started)
                        asyncio.run(_until_stopped(server, hub, listener))
                finally:
                    keys.tidy(0)
    except access.AlreadyServed:
        running = access.running_server(settings)
        ready(running, keys.link(running), True)


@contextmanager
def bound(port: int | None) -> Iterator[socket.socket]:
    """Return a socket on the given port; without one, on the default port or any free one."""
    for number in (access.PORT, 0) if port is None else (port,):
        # With its protocol named: else asyncio leaves Nagle's algorithm on, which holds answers
        # back for 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # Windows, where two programs may share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, number))
            break
        except OSError as error:
            listener.close()
            why = (
                "is taken"
                if error.errno == errno.EADDRINUSE
                else f"cannot be used: {error.strerror}"
            )
    else:
        raise Busy(f"port {port} {why}", "Take any that is free: whyfor serve --port 0")
    with listener:
        yield listener


@contextmanager
def _watching(settings: Settings, hub: Hub) -> Iterator[None]:
    """Read what agents write in a thread of its own while the server runs; it may be killed at any
    time, like every ingest."""
    stop = threading.Event()
    audience = Notifier(settings, hub, lambda words: say(words, stderr=True), lambda: hub.looked_at)
    thread = threading.Thread(
        target=watch_agents, args=(settings, audience, stop), name="whyfor-watch", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(STOPPING)
        audience.close()


class Server(uvicorn.Server):
    """The HTTP server: on loopback, without a log, with a callback when it has started."""

    def __init__(self, app: Callable[..., object], started: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS + KEYLESS,
            backlog=AT_ONCE,
            timeout_graceful_shutdown=STOPPING,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
        super().__init__(config)
        self.server_state = Connections()
        self._started = started
        self.fault: Exception | None = None  # why it could not say that it has begun

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            # asyncio has one number for this and for how many it takes in at once
            listener.listen(QUEUE)
        try:
            self._started()
        # nobody reads what we print: it stops as it always does, and says so then
        except Exception as error:  # noqa: BLE001 - raised again by whoever started the server
            self.fault, self.should_exit = error, True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals ourselves: uvicorn would raise them again when it is done, before our
        cleanup."""
        yield


async def _until_stopped(server: Server, hub: Hub, listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True
        hub.close()  # streams end by themselves, or the server would wait for them

    def told(_: int, __: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    before = {number: signal.signal(number, told) for number in _SIGNALS}
    try:
        await server.serve(sockets=[listener])
        if server.fault is not None:
            raise server.fault
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
