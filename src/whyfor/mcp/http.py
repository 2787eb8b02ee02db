"""The tools over HTTP, for agents that ask a team server: the official SDK speaks the protocol.

Each request stands alone: who asks was decided before, and nothing is kept between requests, so any
process of the server may answer the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError

from whyfor import __version__
from whyfor.config import Settings
from whyfor.mcp.protocol import Params, ProtocolError
from whyfor.mcp.schemas import TEAM_INSTRUCTIONS, TEAM_TOOLS
from whyfor.mcp.tools import AgentTools, told_context
from whyfor.service.feature_context import feature_context
from whyfor.service.mcp import AgentMemory

BODY_MAX = 1 << 20  # bytes of a request
_NOWHERE = Path("/dev/null/team")  # the folder that an agent of somewhere else works in
_OPEN = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # Host was checked before
_SESSIONS = 20

# The SDK logs what it refuses, with parts of what was asked.
logging.getLogger("mcp").addHandler(logging.NullHandler())
logging.getLogger("mcp").propagate = False


class ContextArguments(msgspec.Struct, forbid_unknown_fields=True):
    branch: str | None = None
    limit: int = _SESSIONS


class TeamTools(AgentTools):
    """The tools that read, of one member and one project."""

    def __init__(self, place: Settings) -> None:
        super().__init__(_NOWHERE)
        self.place = place
        self._calls = {
            "recall": self._recall,
            "timeline": self._timeline,
            "get": self._get,
            "context": self._branch,
        }

    def list_tools(self, _params: Params) -> dict[str, Any]:
        return {"tools": TEAM_TOOLS}

    @property
    def memory(self) -> AgentMemory:
        return AgentMemory(self.place, self.folder)

    def _context(self) -> dict[str, Any]:
        return self._branch({})

    def _branch(self, given: Params) -> dict[str, Any]:
        asked = msgspec.convert(given, ContextArguments)
        limit = min(max(asked.limit, 1), 50)
        return told_context(feature_context(self.place, asked.branch, limit))


async def answer_http(place: Settings, scope: Any, receive: Any, send: Any) -> None:
    """Answer one request of an agent, as ASGI has it, from what a place lends."""
    tools = TeamTools(place)

    async def listed(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate(tools.list_tools({}))

    async def called(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        given: Params = {"name": params.name, "arguments": params.arguments}
        call: Callable[[], dict[str, Any]] = partial(tools.call_tool, given)
        try:
            answer = await anyio.to_thread.run_sync(call)
        except ProtocolError as error:
            raise MCPError(error.code, error.message) from None
        return types.CallToolResult.model_validate(answer)

    server: Server[Any] = Server(
        "whyfor",
        version=__version__,
        title="Whyfor",
        instructions=TEAM_INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        security_settings=_OPEN,
        max_request_body_size=BODY_MAX,
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)
