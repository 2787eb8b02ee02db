"""One record's place in the thread, which its events take over."""

from __future__ import annotations

from whyfor.model.events import Event
from whyfor.model.findings import Bucket, Record, Sink
from whyfor.model.ids import fold, fold_bytes


class RecordPlace:
    """Where a record's events go, when, and what identifies it when it has no id."""

    __slots__ = ("bucket", "line", "offset", "out", "when")

    def __init__(self, out: Sink, when: int | None, offset: int, line: bytes) -> None:
        self.out = out
        self.bucket: Bucket = out.main
        self.when = when
        self.offset = offset
        self.line = line

    def key(self, ident: object = None, *parts: object) -> int:
        if isinstance(ident, str) and ident:
            return fold(ident, *parts)
        own = fold_bytes(self.offset, self.line)
        return fold(own, *parts) if parts else own

    def add(
        self,
        kind: str,
        key: int,
        actor: str,
        text: str = "",
        name: str = "",
        data: Record | None = None,
    ) -> None:
        self.bucket.events.append(
            Event(kind, key, self.when, actor, text, name or None, data or None)
        )
