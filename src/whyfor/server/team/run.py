"""Running the team server until a signal."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import uvicorn

from whyfor.model.errors import Busy, StoreError, WhyforError
from whyfor.server.team.app import TeamApp, create_team_app
from whyfor.server.team.metrics import log_to_stderr, serving_metrics
from whyfor.team.projects import delete_due_projects
from whyfor.team.retention import delete_expired
from whyfor.team.settings import TeamSettings
from whyfor.team.setup import check_server

_TIDY = 600.0  # seconds
_STOPPING = 10  # seconds that a request may take when the server stops
_HEADER_BYTES = 32 << 10
_CONNECTIONS = 1024
Ready = Callable[[str], None]  # told where it listens


def serve_team(settings: TeamSettings, ready: Ready) -> None:
    """Serve until a signal. Raises StoreError if the database is not fit to be served from."""
    wrong = [check for check in check_server(settings) if not check.ok]
    if wrong:
        raise StoreError(f"{wrong[0].name}: {wrong[0].detail}", "See all: whyfor server check")
    app = create_team_app(settings)
    log_to_stderr(app.guard.journal)
    host, _, port = settings.listen.rpartition(":")
    with ExitStack() as stack:
        listener = stack.enter_context(_bound(host.strip("[]"), int(port)))
        if settings.metrics_port:
            stack.enter_context(_metrics(app, settings.metrics_port))
        stack.enter_context(_tidying(app))
        where = listener.getsockname()
        _Server(app, lambda: ready(f"{where[0]}:{where[1]}")).run(sockets=[listener])


class _Server(uvicorn.Server):
    """The HTTP server, without a log of its own, with a callback when it has started."""

    def __init__(self, app: TeamApp, started: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=_STOPPING,
            timeout_keep_alive=30,
            h11_max_incomplete_event_size=_HEADER_BYTES,
        )
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._started()


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with listener:
        try:
            listener.bind((host, port))
        except OSError as error:
            raise Busy(
                f"{host}:{port} cannot be listened on: {error.strerror}",
                "Set WHYFOR_LISTEN_ADDRESS to another.",
            ) from None
        yield listener


@contextmanager
def _metrics(app: TeamApp, port: int) -> Iterator[None]:
    try:
        with serving_metrics(app.guard.journal, port):
            yield
    except OSError as error:
        raise Busy(
            f"port {port} is taken: {error.strerror}", "Set WHYFOR_METRICS_PORT; 0 is none."
        ) from None


@contextmanager
def _tidying(app: TeamApp) -> Iterator[None]:
    """Delete what has ended, projects that are due, and what projects keep no longer, every ten
    minutes."""
    stop = threading.Event()

    def tidy() -> None:
        while not stop.wait(_TIDY):
            try:
                with app.resources.database.accounts.by(None) as accounts:
                    accounts.tidy(app.resources.now())
                delete_due_projects(app.resources)
                delete_expired(app.resources)
            except WhyforError:
                continue  # the database is away; the next turn tries again

    thread = threading.Thread(target=tidy, name="tidy", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(1)
