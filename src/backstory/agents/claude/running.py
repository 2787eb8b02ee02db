"""Which sessions of Claude Code's run now: it keeps a file for each of its processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from backstory.agents.base import as_dict, as_int, as_str
from backstory.agents.claude import AGENT


def running(home: Path, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Session id and folder of each."""
    for path in sorted((AGENT.roots(home, env)[0].parent / "sessions").glob("*.json")):
        try:
            told = as_dict(msgspec.json.decode(path.read_bytes()))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        pid = as_int(told.get("pid"))
        if pid is not None and pid > 0 and _alive(pid):
            yield as_str(told.get("sessionId")), as_str(told.get("cwd"))


def _alive(pid: int) -> bool:
    if os.name == "nt":
        return True  # nothing asks without harm there; the file is removed when the process ends
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
