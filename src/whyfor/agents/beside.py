"""Small files beside a transcript, which say where its session ran."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

import msgspec

from whyfor.agents.base import as_dict
from whyfor.model.findings import Record

_SMALL = 1 << 20  # bytes


def small_object(path: Path) -> Record:
    """Return the JSON object in a small plain file, to be read only; empty if there is none."""
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode) or found.st_size > _SMALL:
            return {}
        return _decoded(path, (found.st_ino, found.st_size, found.st_mtime_ns))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return {}


@lru_cache(maxsize=8)
def _decoded(path: Path, version: tuple[int, ...]) -> Record:  # noqa: ARG001 - part of the key
    """Some agents keep a file for each event, and all of them ask for the one beside."""
    return as_dict(msgspec.json.decode(path.read_bytes()))
