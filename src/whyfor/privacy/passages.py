"""Split a text of any size into passages that fit in memory, each with the context that its meaning
may depend on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from whyfor.model.errors import NotRedacted

BLOCK = 4 << 20
AROUND = 64 << 10  # more than any rule reads to either side
LONGEST = 256 << 20  # of a record; what goes on beyond is text
_RECORD = re.compile(rb"(?:\{[ \t]*\"|\[[ \t]*[\[{\"])")


class Passage(NamedTuple):
    data: bytes
    at: int  # where data begins in the whole text
    low: int  # start of its own part in data; the rest belongs to its neighbours
    high: int

    @property
    def start(self) -> int:
        return self.at + self.low

    @property
    def stop(self) -> int:
        return self.at + self.high

    @property
    def own(self) -> bytes:
        return self.data[self.low : self.high]


class PassagePiece(NamedTuple):
    start: int
    stop: int
    records: bool  # one JSON value a line: nothing in it is read across a line's end


def passages(file: BinaryIO, start: int, stop: int) -> Iterator[Passage]:
    """Yield the text cut at line ends; a line longer than a block is whole if it is a record, else
    cut where it must be."""
    file.seek(start)
    data, at, own = b"", start, 0
    while True:
        data = _filled(file, data, own + BLOCK + AROUND, stop - at)
        if own == len(data):
            return
        cut = data.rfind(b"\n", own, own + BLOCK) + 1
        if at + len(data) == stop and len(data) - own <= BLOCK:
            cut = len(data)
        if cut <= own:
            data, cut = _long_line(file, data, own, stop - at)
        low, high = _with_context(data, own, cut)
        yield Passage(data[low:high], at + low, own - low, cut - low)
        keep = max(0, cut - AROUND)
        data, at, own = data[keep:], at + keep, cut - keep


def _with_context(data: bytes, own: int, cut: int) -> tuple[int, int]:
    """Return what is read with a passage's own part: nothing beyond a record, else AROUND."""
    low, high = own, cut
    if not is_record(data, own, data.find(b"\n", own, cut)):
        low = max(0, own - AROUND)
    last_line = data.rfind(b"\n", own, cut - 1) + 1 or own
    if not is_record(data, last_line, cut - 1):
        high = cut + AROUND
    return low, high


def _filled(file: BinaryIO, data: bytes, size: int, most: int) -> bytes:
    missing = min(size, most) - len(data)
    if missing <= 0:
        return data
    parts = [data]
    while missing > 0:
        more = file.read(missing)
        if not more:
            raise NotRedacted(
                "the file became shorter while it was read", "Nothing was written. Run it again."
            )
        parts.append(more)
        missing -= len(more)
    return b"".join(parts)


def _long_line(file: BinaryIO, data: bytes, own: int, most: int) -> tuple[bytes, int]:
    """Return more of the text, and where the line that fills a block shall be cut."""
    if _RECORD.match(data, own):
        cut = data.find(b"\n", own) + 1
        while cut <= 0 and len(data) < most and len(data) - own < LONGEST:
            data = _filled(file, data, 2 * len(data), most)
            cut = data.find(b"\n", own) + 1
        if cut > 0:
            return _filled(file, data, cut + AROUND, most), cut
        if len(data) == most:
            return data, most
    size = own + BLOCK
    while data[size] & 0xC0 == 0x80 and size > own + BLOCK - 4:  # not inside a character
        size -= 1
    return data, size


def is_record(data: bytes, start: int, stop: int) -> bool:
    """Return whether a line, without its end, looks like a JSON object or array."""
    stop = len(data) if stop < 0 else stop
    stop -= data[stop - 1 : stop] == b"\r"
    return data[stop - 1 : stop] in (b"}", b"]") and _RECORD.match(data, start, stop) is not None


def pieces(data: bytes) -> Iterator[PassagePiece]:
    """Yield runs of records and of other text."""
    opened = data.count(b'\n{"') + data.startswith(b'{"')
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if opened == lines == data.count(b"}\n") + data.count(b"}\r\n") + data.endswith(b"}"):
        yield PassagePiece(0, len(data), True)
        return
    begun, kind, at = 0, False, 0
    while at < len(data):
        end = data.find(b"\n", at)
        found = is_record(data, at, end)
        if found is not kind:
            if at > begun:
                yield PassagePiece(begun, at, kind)
            begun, kind = at, found
        at = len(data) if end < 0 else end + 1
    if at > begun:
        yield PassagePiece(begun, at, kind)
