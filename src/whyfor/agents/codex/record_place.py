"""One record of a rollout while it is read."""

from __future__ import annotations

from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Sink
from whyfor.model.ids import fold, fold_bytes


class RolloutPlace(RecordPlace):
    """Where a record's events go, when, and what identifies it when it has no id."""

    __slots__ = ("line", "offset", "out")

    def __init__(self, out: Sink, when: int | None, offset: int, line: bytes) -> None:
        super().__init__(out.main, when)
        self.out = out
        self.offset = offset
        self.line = line

    def key(self, ident: object = None, *parts: object) -> int:
        if isinstance(ident, str) and ident:
            return fold(ident, *parts)
        own = fold_bytes(self.offset, self.line)
        return fold(own, *parts) if parts else own
