"""Whether a server runs for this home, and where."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.config import Settings
from whyfor.locks import is_held
from whyfor.processes import exists

PORT = 7717  # unless told otherwise


class Running(msgspec.Struct, frozen=True):
    """A running server, from $WHYFOR_HOME/serve.json."""

    pid: int
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def serves(settings: Settings) -> bool:
    """Return whether a server runs. The question never keeps a starting server from its lock."""
    try:
        found = msgspec.json.decode(serve_file(settings).read_bytes(), type=Running)
    except (OSError, msgspec.DecodeError):
        return False
    # a pid may be somebody else's by now; a lock is dropped with its holder
    return exists(found.pid, 0) is not False and is_held(settings.home / "serve.lock")


def serve_file(settings: Settings) -> Path:
    return settings.home / "serve.json"
