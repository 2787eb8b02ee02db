"""What a person marked private: which bytes of a record must not be kept.

The rules stand with the hooks, which can import nothing of ours: what they drop and what ingest
drops is the same.
"""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.hook.private import (
    MOST,
    elements,
    everything,
    marked,
    reach,
    spans,
    text_spans,
    without,
)
from whyfor.model.ids import fold

__all__ = ["MOST", "Parts", "elements", "everything", "marked", "spans", "text_spans", "without"]


class _Stub(msgspec.Struct):
    message: Any = None
    row: Any = None


_stub = msgspec.json.Decoder(_Stub)


class Parts:
    """Records that are parts of one message: a tag that one of them opens may be closed by a
    later one."""

    def __init__(self, message: int = 0, depth: int = 0) -> None:
        self.message = message  # the one that has a tag open
        self.depth = depth
        self._between: list[tuple[int, bytes]] = []  # records of it since then
        self._late: list[tuple[int, int]] = []

    def spans(
        self, record: bytes, at: int, lists: frozenset[bytes] = frozenset()
    ) -> list[tuple[int, int]] | None:
        """Return what of a record is private, by places in it; None if it is no JSON."""
        if not marked(record):
            if self.depth and _message_of(record) == self.message:
                self._between.append((at, record))
            return []
        message = _message_of(record)
        same = bool(message and self.depth and message == self.message)
        found, depth, closed = reach(record, lists, self.depth if same else 0)
        if closed:
            for place, part in self._between:
                self._late += [(place + low, place + high) for low, high in everything(part)]
        if not message or not (same or depth):
            return found
        if same and depth and not closed:
            self._between = [*self._between, (at, record)]
        else:
            self._between = []
        self.message, self.depth = message, depth
        return found

    def late(self) -> list[tuple[int, int]]:
        """What of earlier records turned out to be private since this was last asked, by places
        in the source."""
        found, self._late = self._late, []
        return found


def _message_of(record: bytes) -> int:
    """Which message a record is a part of; 0 if it is one by itself."""
    try:
        stub = _stub.decode(record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0
    for value, name in ((stub.message, "id"), (stub.row, "message_id")):
        if isinstance(value, dict) and isinstance(ident := value.get(name), str) and ident:
            return fold(ident)
    return 0
