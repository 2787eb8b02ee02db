"""A source: one file that an agent writes, or one session's rows in its database, and how far it
was read."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from whyfor.model.gaps import Gap


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


class StoredSegment(msgspec.Struct, frozen=True):
    """Bytes of a source, where they are kept, and which of them are not."""

    generation: int
    start: int
    end: int
    address: str
    gaps: list[Gap] = []

    @property
    def kept(self) -> int:
        """How many bytes are kept."""
        return self.end - self.start - sum(size for _, size in self.gaps)


class SourceHealth(msgspec.Struct, frozen=True):
    """What doctor tells of a source."""

    path: str
    size: int | None
    records: int
    tail: int
    error: str | None


class HiddenState(NamedTuple):
    """What must be remembered to know what else of a source must not be kept."""

    source: int
    generation: int
    agent: str
    session_id: str
    state: dict[str, Any]
