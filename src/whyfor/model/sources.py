"""A source: one file that an agent writes, or one session's rows in its database, and how far it
was read."""

from __future__ import annotations

from typing import Any

import msgspec


class Source(msgspec.Struct):
    id: int
    agent: str
    path: str
    session_id: str
    framing: str
    parent: str | None = None
    sidecar: str | None = None
    cwd: str | None = None
    generation: int = 0
    position: int = 0  # bytes of this generation stored and understood, whole records only
    tail: int = 0  # bytes after the position that do not end in a newline yet
    inode: int | None = None
    size: int | None = None
    mtime: int | None = None
    head_hash: str | None = None
    end_hash: str | None = None
    state: dict[str, Any] = {}
    records: int = 0
    unparsed: int = 0
    error: str | None = None


class UnparsedRecord(msgspec.Struct, frozen=True):
    """A record that could not be parsed; its bytes are stored in the segment."""

    start: int
    size: int
    reason: str
