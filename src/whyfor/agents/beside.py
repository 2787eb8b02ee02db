"""Small files beside a transcript, which say where its session ran."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.agents.base import as_dict
from whyfor.model.findings import Record

_SMALL = 1 << 20  # bytes


def small_object(path: Path) -> Record:
    """Return the JSON object in a small plain file; empty if there is none."""
    try:
        if not path.is_file() or path.stat().st_size > _SMALL:
            return {}
        return as_dict(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
