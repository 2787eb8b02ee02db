"""The messages of the Model Context Protocol: what is asked, and what is answered.

Two eras are served at once. A request whose `_meta` names a protocol version stands alone
(2026-07-28); every other request belongs to a connection that began with `initialize`
(2024-11-05 to 2025-11-25). Each request is judged by itself, so a client may probe one era and
go on in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from whyfor import __version__

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = ("2026-07-28",)
VERSIONS = (*HANDSHAKE, *STATELESS)
BATCHED = "2025-03-26"  # the only version that knows arrays of messages

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022
RESOURCE_NOT_FOUND = -32002  # until 2025-11-25; later INVALID_PARAMS

_META = "io.modelcontextprotocol/"
_VERSION_KEY = _META + "protocolVersion"
_CAPABILITIES_KEY = _META + "clientCapabilities"
SERVER = {"name": "whyfor", "title": "Whyfor", "version": __version__}
# What does not change while the server runs, and may be kept by the client; in milliseconds.
_FRESH = {"server/discover": 3_600_000, "tools/list": 3_600_000, "prompts/list": 3_600_000}
_CACHEABLE = {*_FRESH, "resources/list", "resources/templates/list", "resources/read"}
_REMOVED = {"initialize", "ping"}  # from the era without a handshake

Params = dict[str, Any]
Handler = Callable[[Params], dict[str, Any]]
RequestId = str | int


class ProtocolError(Exception):
    """A request that cannot be answered: a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class McpRequest(msgspec.Struct, frozen=True):
    """One message of a client. Without an id it is a notification, which gets no answer."""

    method: str
    params: Params
    ident: RequestId | None = None


class McpBatch(msgspec.Struct, frozen=True):
    """Messages that came in one array: what is wrong with one is answered as its error."""

    messages: list[McpRequest | ProtocolError]


def read_message(line: bytes) -> McpRequest | McpBatch | None:
    """Return what a line says; None if it needs no attention. Raises ProtocolError."""
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ProtocolError(PARSE_ERROR, f"not JSON: {type(error).__name__}") from None
    if not isinstance(message, list):
        return _request(message)
    if not message:
        raise ProtocolError(INVALID_REQUEST, "an empty array")
    return McpBatch([found for each in message if (found := _attempt(each)) is not None])


def _attempt(message: object) -> McpRequest | ProtocolError | None:
    try:
        return _request(message)
    except ProtocolError as error:
        return error


def _request(message: object) -> McpRequest | None:
    if not isinstance(message, dict):
        raise ProtocolError(INVALID_REQUEST, "a message is an object")
    if "method" not in message and ("result" in message or "error" in message):
        return None  # an answer to something we never ask
    method, params, ident = message.get("method"), message.get("params"), message.get("id")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, 'a request has "jsonrpc": "2.0" and a method')
    if "id" in message and (isinstance(ident, bool) or not isinstance(ident, str | int)):
        raise ProtocolError(INVALID_REQUEST, "an id is text or a whole number")
    if not isinstance(params, dict | None):
        raise ProtocolError(INVALID_REQUEST, "params is an object")
    return McpRequest(method, params or {}, ident)


class McpServer:
    """Answers requests by a table of handlers, in the era that each request speaks."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        capabilities: Mapping[str, Any],
        instructions: str,
    ) -> None:
        self.capabilities = capabilities
        self.instructions = instructions
        self.version = HANDSHAKE[-1]  # agreed on by a handshake
        self.handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": _ping,
            "server/discover": self._discover,
            **handlers,
        }

    def answer(self, request: McpRequest) -> dict[str, Any] | None:
        """Return the response to a request; None if it is a notification."""
        if request.ident is None:
            return None
        try:
            return success(request.ident, self._result(request))
        except ProtocolError as error:
            return failure(request.ident, error)

    def _result(self, request: McpRequest) -> dict[str, Any]:
        stateless = _is_stateless(request)
        handler = self.handlers.get(request.method)
        if handler is None or (stateless and request.method in _REMOVED):
            raise ProtocolError(METHOD_NOT_FOUND, f"no such method: {request.method[:80]}")
        try:
            result = handler(request.params)
        except ProtocolError as error:
            if stateless and error.code == RESOURCE_NOT_FOUND:
                error.code = INVALID_PARAMS
            raise
        return _stamped(request.method, result) if stateless else result

    def _initialize(self, params: Params) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        self.version = wanted if wanted in HANDSHAKE else HANDSHAKE[-1]
        return {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "serverInfo": SERVER,
            "instructions": self.instructions,
        }

    def _discover(self, _params: Params) -> dict[str, Any]:
        return {
            "supportedVersions": VERSIONS,
            "capabilities": self.capabilities,
            "serverInfo": SERVER,
            "instructions": self.instructions,
        }


def _ping(_params: Params) -> dict[str, Any]:
    return {}


def _is_stateless(request: McpRequest) -> bool:
    """Return whether a request carries its own version; raise if we do not speak that version, or
    if it does not say what the client can do."""
    meta = request.params.get("_meta")
    if request.method == "initialize" or not isinstance(meta, dict) or _VERSION_KEY not in meta:
        return False
    version = meta[_VERSION_KEY]
    if version not in STATELESS:
        raise ProtocolError(
            UNSUPPORTED_VERSION,
            "this protocol version is not supported",
            {"supported": VERSIONS, "requested": version},
        )
    if not isinstance(meta.get(_CAPABILITIES_KEY), dict):
        raise ProtocolError(INVALID_PARAMS, f"_meta needs {_CAPABILITIES_KEY}, an object")
    return True


def _stamped(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Add what the era without a handshake wants in every result."""
    made = {"resultType": "complete", **result, "_meta": {_META + "serverInfo": SERVER}}
    if method in _CACHEABLE:
        made |= {"ttlMs": _FRESH.get(method, 0), "cacheScope": "private"}
    return made


def success(ident: RequestId, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "result": result}


def failure(ident: RequestId | None, error: ProtocolError) -> dict[str, Any]:
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", "id": ident, "error": told}
