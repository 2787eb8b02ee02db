"""Base64 that holds text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whyfor.privacy.shapes import decode_base64


def _encoded_text() -> re.Pattern[bytes]:
    """Return a pattern for base64 whose first five groups of four are printable ASCII: no other
    bytes come out like that by chance."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    places: list[set[int]] = [set(), set(), set()]
    for byte in (*range(32, 127), 9, 10, 13):
        places[0].add(byte >> 2)
        places[1].update((low << 4) | (byte >> 4) for low in range(4))
        places[2].update((low << 2) | (byte >> 6) for low in range(16))
    group = b""
    for values in places:
        group += b"[" + re.escape(bytes(letters[value] for value in sorted(values))) + b"]"
    return re.compile(b"(?:" + group + rb"[A-Za-z0-9+/_-]){5,}[A-Za-z0-9+/_-]*={0,2}")


_ENCODED = _encoded_text()
_INSIDE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")


def encoded_texts(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield where base64 of text stands, and that text."""
    for match in _ENCODED.finditer(data):
        begin = match.start()
        inside = begin and data[begin - 1] in _INSIDE
        if inside and data[begin - 2 : begin] not in (b"\\n", b"\\r", b"\\t"):
            continue
        text = decode_base64(match.group())
        if text is not None:
            yield begin, match.end(), text
