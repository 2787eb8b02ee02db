"""A text with its findings replaced, and where each place of it stood before."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate

from whyfor.privacy.findings import Finding
from whyfor.privacy.passages import PassagePiece, is_record, pieces

# bytes on either side of a replacement where it may have changed the meaning of the text
NEAR = 20 << 10


class MaskedText:
    """A text with its findings replaced, and the mapping of positions back to the original."""

    def __init__(
        self,
        data: bytes,
        found: list[Finding],
        replace: dict[str, str],
        is_number: Callable[[bytes, Finding], bool],
    ) -> None:
        self.found, self.replace = found, replace
        kept, done = [], 0
        for item in found:
            label = replace.get(item.rule, f"[REDACTED:{item.rule}]").encode()
            kept += [data[done : item.start], b'"%b"' % label if is_number(data, item) else label]
            done = item.end
        self.text = b"".join([*kept, data[done:]])
        sizes = list(accumulate(len(part) for part in kept))
        self._starts, self._ends = sizes[::2], sizes[1::2]  # of the labels

    def changed(self, new: list[Finding]) -> list[PassagePiece]:
        """Return what must be searched again: the records with new findings, and the text around
        them."""
        again: list[PassagePiece] = []
        for item in new:
            end = self._ends[bisect_left(self.found, item)]
            low, high = self._line(end)
            records = is_record(self.text, low, high)
            if not records:
                low, high = self._around(end)
            if again and low < again[-1].stop and records == again[-1].records:
                again[-1] = PassagePiece(again[-1].start, max(high, again[-1].stop), records)
            else:
                again.append(PassagePiece(low, high, records))
        return again

    def _line(self, at: int) -> tuple[int, int]:
        end = self.text.find(b"\n", at)
        return self.text.rfind(b"\n", 0, at) + 1, len(self.text) if end < 0 else end

    def _around(self, at: int) -> tuple[int, int]:
        """Return the text on either side of a position, up to the next record; records are searched
        by themselves."""
        low, high = max(0, at - NEAR), min(len(self.text), at + NEAR)
        if is_record(self.text, *(line := self._line(low))):
            low = line[1] + 1
        if is_record(self.text, *(line := self._line(high))):
            high = line[0]
        for part in pieces(self.text[low:high]):
            if part.start + low <= at <= part.stop + low and not part.records:
                return low + part.start, low + part.stop
        return low, high

    def original(self, again: Finding) -> Finding | None:
        """Return the finding in the original text; None if it touches a label, unless that looks
        like text itself."""
        start, end = self._back(again.start, 0), self._back(again.end - 1, 1)
        return None if start is None or end is None else Finding(start, end, again.rule)

    def _back(self, at: int, after: int) -> int | None:
        """Return the original position of a character, or of its end; None inside a label."""
        index = bisect_right(self._ends, at)
        if index < len(self.found) and at >= self._starts[index]:
            item = self.found[index]
            return (item.end if after else item.start) if item.rule in self.replace else None
        shift = self.found[index - 1].end - self._ends[index - 1] if index else 0
        return at + after + shift
