"""Whether `whyfor mcp` answers: it is started as agents start it, and a tool is called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from whyfor.config import Settings

_TIMEOUT = 20.0  # seconds
_CALL = "timeline"
_MESSAGES = b"""\
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",\
"capabilities":{},"clientInfo":{"name":"whyfor doctor","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"timeline","arguments":{}}}
"""


class McpHealth(msgspec.Struct, frozen=True):
    """How the server for agents answers."""

    tools: list[str] = []
    called: str = ""  # the tool that answered
    what: str = ""  # what is wrong; empty: nothing


class McpProbe:
    """A server that was started and asked; it works while other things are checked."""

    def __init__(self, settings: Settings, folder: Path | None) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._trouble = ""
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "whyfor", "mcp"]
        try:
            self._server = subprocess.Popen(
                command, cwd=folder, env=dict(settings.env), stdin=pipe, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            self._trouble = f"it cannot be started: {error.strerror or error}"

    def health(self) -> McpHealth:
        """Wait for its answers, and return what they were."""
        if self._server is None:
            return McpHealth(what=self._trouble)
        try:
            out, err = self._server.communicate(_MESSAGES, _TIMEOUT)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.communicate()
            return McpHealth(what=f"no answer within {_TIMEOUT:.0f} seconds")
        try:
            return _judge([msgspec.json.decode(line) for line in out.splitlines()])
        except (LookupError, TypeError, ValueError):  # also what is not JSON
            last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
            return McpHealth(what=last or f"exit code {self._server.returncode}")


def _judge(answers: list[dict[str, dict[str, list[dict[str, str]]]]]) -> McpHealth:
    """Return what three answers say; raises ValueError if one is missing. That nothing is recorded
    yet is an answer like any other."""
    _, listed, called = answers
    names = [tool["name"] for tool in listed["result"]["tools"]]
    text = called["result"]["content"][0]["text"]
    return McpHealth(names, _CALL if text else "", "" if text else f"{_CALL} answered nothing")
