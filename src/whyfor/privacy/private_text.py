"""Text between private tags, as redaction finds it: in records inside their strings, in other
text from tag to tag."""

from __future__ import annotations

from collections.abc import Iterator

from whyfor.hook.private import tags
from whyfor.privacy import private
from whyfor.privacy.findings import Finding
from whyfor.privacy.passages import PassagePiece

PRIVATE = "private"


class PrivateText:
    """Follows private tags through text that is no record, from passage to passage."""

    def __init__(self) -> None:
        self.depth = 0  # tags that text before opened and nobody closed

    def between(self, lower: bytes, part: PassagePiece, low: int, high: int) -> Iterator[Finding]:
        """Yield what stands between tags in a piece, from `low` to `high`."""
        begun = low
        for first, last, closing in tags(lower, part.start, part.stop):
            if not low <= first < high:
                continue
            if not closing:
                begun = begun if self.depth else first
                self.depth += 1
            elif self.depth:
                self.depth -= 1
                if not self.depth:
                    yield Finding(begun, last, PRIVATE)
        if self.depth:
            yield Finding(begun, high, PRIVATE)


def private_records(data: bytes, lower: bytes, low: int, high: int) -> Iterator[Finding]:
    parts = private.Parts()
    word = lower.find(b"private", low, high)
    # a message with an open tag is followed line by line
    while word >= 0 or (parts.depth and low < high):
        start = low if parts.depth else data.rfind(b"\n", low, word) + 1 or low
        stop = data.find(b"\n", start, high)
        stop = high if stop < 0 else stop
        line = data[start:stop]
        spans = parts.spans(line, start)
        for first, last in private.text_spans(line) if spans is None else spans:
            yield Finding(start + first, start + last, PRIVATE)
        for first, last in parts.late():
            yield Finding(first, last, PRIVATE)
        low = stop + 1
        if 0 <= word < low:
            word = lower.find(b"private", low, high)
