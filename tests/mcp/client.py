"""A client that writes lines to `whyfor mcp` and reads what comes back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "whyfor", "mcp"]
_META = "io.modelcontextprotocol/"


class LineClient:
    """A running server. Leaving the block closes its stdin, and it has to end by itself."""

    def __init__(self, cwd: Path, *options: str) -> None:
        self.cwd = cwd
        self.options = options
        self.code: int | None = None
        self.errors = ""

    def __enter__(self) -> LineClient:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*COMMAND, *self.options], cwd=self.cwd, stdin=pipe, stdout=pipe, stderr=pipe
        )
        self.number = 0
        return self

    def __exit__(self, *error: object) -> None:
        out, err = self.process.communicate(timeout=60)
        self.left, self.errors, self.code = out, err.decode(), self.process.returncode

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def send(self, method: str, params: dict[str, Any] | None = None, *, ident: Any = None) -> None:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": ident or self.number, "method": method}
        self.write(json.dumps({**message, "params": params} if params else message).encode())

    def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Return the whole response to a request."""
        self.send(method, params)
        answer = self.read()
        assert answer["id"] == self.number
        return answer

    def begin(self, version: str = "2025-11-25") -> Any:
        """Shake hands; return what the server said."""
        who = {"name": "test", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": who}
        answer = self.ask("initialize", params)["result"]
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return a tool's result."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found


def stateless(version: str = "2026-07-28", **params: Any) -> dict[str, Any]:
    """Parameters as the era without a handshake wants them."""
    meta = {_META + "protocolVersion": version, _META + "clientCapabilities": {}}
    return {**params, "_meta": meta}


def words(result: dict[str, Any]) -> str:
    """The text of a tool's result."""
    return "\n".join(part["text"] for part in result["content"])
