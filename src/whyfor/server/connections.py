"""Connections: who has shown no key may hold few of them, for a short time; other users of this
machine hold none.

A connection counts as keyless until the guard has seen a key on it. Of too many keyless ones the
oldest goes, so whoever holds hundreds only pushes out their own; a client with a key sends it
with its first request, and keeps its connection, however many others come.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from whyfor.server.peers import is_foreign

# A request that came along with its connection is read three turns of the loop later at most: as
# many connections as are taken in meanwhile (run.AT_ONCE each turn) fit in here, so that none of
# them is closed before it was heard.
KEYLESS = 128
KEYLESS_SECONDS = 10.0  # for the first request with a key, from the connection's beginning


class Connections(ServerState):
    """All connections of one server."""

    def __init__(self) -> None:
        super().__init__()
        self.keyless: dict[Connection, None] = {}  # the oldest first


class Connection(H11Protocol):
    server_state: Connections

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._answer = self.app
        self.app = self._ask
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if is_foreign(self.client, self.server):
            transport.abort()
            return
        keyless = self.server_state.keyless
        keyless[self] = None
        self._deadline = self.loop.call_later(KEYLESS_SECONDS, transport.abort)
        if len(keyless) > KEYLESS:
            oldest = next(iter(keyless))
            del keyless[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._show_key()
        super().connection_lost(exc)

    async def _ask(self, scope: Any, receive: Any, send: Any) -> None:
        scope["state"]["show_key"] = self._show_key
        await self._answer(scope, receive, send)

    def _show_key(self) -> None:
        """It need not be watched any more."""
        self.server_state.keyless.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
