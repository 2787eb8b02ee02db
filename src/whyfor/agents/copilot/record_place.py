"""One record of Copilot CLI while it is read."""

from __future__ import annotations

from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Bucket, Sink
from whyfor.model.ids import fold


class CopilotPlace(RecordPlace):
    """Where a record's events go, when, and what identifies it when it has no id."""

    __slots__ = ("ident", "is_side", "out")

    def __init__(self, out: Sink, bucket: Bucket, when: int | None, ident: str) -> None:
        super().__init__(bucket, when)
        self.out = out
        self.is_side = bucket is not out.main
        self.ident = ident

    def key(self, ident: object = None, *parts: object) -> int:
        return fold(ident if isinstance(ident, str) and ident else self.ident, *parts)
