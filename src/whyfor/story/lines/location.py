"""Lines as a user names them: FILE:12 or FILE:12-20."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from whyfor.model.errors import BadInput


class FileLocation(msgspec.Struct, frozen=True):
    """What a user typed: FILE, FILE:LINE or FILE:FIRST-LAST."""

    file: str
    first: int | None = None
    last: int | None = None


def parse_location(text: str, cwd: Path) -> FileLocation:
    """Return the file and the lines that a text names. A file whose own name ends like that is
    taken for the file."""
    match = re.fullmatch(r"(.+):(\d+)(?:-(\d+))?", text, re.DOTALL)
    if match is None or (cwd / text).is_file():
        return FileLocation(text)
    first = int(match[2])
    last = int(match[3]) if match[3] else first
    if first < 1 or last < first:
        raise BadInput(f"{text} names no lines", "Lines count from 1: FILE:12 or FILE:12-20")
    return FileLocation(match[1], first, last)
