"""The strings of a record, and what must not change in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import msgspec

from whyfor.model.errors import NotRedacted
from whyfor.privacy.findings import Finding
from whyfor.privacy.json_spans import StringLiteral, literals
from whyfor.privacy.structure import PROTECTED, SEALED

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_decode = msgspec.json.Decoder().decode


class RecordKeys:
    """Which key a place in JSON text belongs to."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._low = self._high = -1  # of the line that was read last
        self._literals: list[StringLiteral] = []

    def key(self, at: int) -> str:
        """In small letters; nothing if the text is not JSON here, or the place is in a key."""
        if not self._low <= at < self._high:
            self._read(at)
        index = bisect_right(self._literals, at, key=_quote) - 1
        if index < 0:
            return ""
        literal = self._literals[index]
        if literal.is_key or literal.stop + literal.closed <= at:
            return ""
        return literal.key.decode("latin-1").lower()

    def _read(self, at: int) -> None:
        self._low, self._high = _line_around(self.data, at, at)
        line = self.data[self._low : self._high].lstrip()
        self._literals = []
        if line[:1] in (b"{", b"[", b'"', b"}"):
            self._literals = list(literals(self.data, self._low, self._high))


def _quote(literal: StringLiteral) -> int:
    return literal.start - 1


def _line_around(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the line begins that `start` is in, and where the one ends that `end` is in."""
    high = data.find(b"\n", end)
    return data.rfind(b"\n", 0, start) + 1, len(data) if high < 0 else high


def in_strings(data: bytes, item: Finding) -> Iterator[Finding]:
    """What of it lies in strings of its record, no escape cut in two: a key's lines in a list go
    one by one."""
    inside = [item]
    if b'"' in data[item.start : item.end]:
        inside = [
            Finding(max(item.start, found.start), min(item.end, found.stop), item.rule)
            for found in literals(data, *_line_around(data, item.start, item.end))
            if found.start < item.end and item.start < found.stop
        ]
    for part in inside:
        start, end = past_escape(data, part.start), past_escape(data, part.end)
        if start < end:
            yield Finding(start, end, part.rule)


def is_number(data: bytes, item: Finding) -> bool:
    """Whether it is a number in a record, no part of a string: what stands in its place must be
    a string."""
    if not _NUMBER.fullmatch(data, item.start, item.end):
        return False
    around = literals(data, *_line_around(data, item.start, item.end))
    return not any(found.start <= item.start < found.stop + found.closed for found in around)


def past_escape(data: bytes, at: int) -> int:
    """The same place, or behind the escape it is inside of."""
    for back in range(1, 6):
        begin = at - back
        if begin >= 0 and data[begin] == 92:
            first = begin
            while first and data[first - 1] == 92:
                first -= 1
            size = 6 if data[begin + 1 : begin + 2] == b"u" else 2
            if (begin - first) % 2 == 0 and back < size:
                return begin + size
    return at


def all_in_strings(data: bytes, found: list[Finding]) -> list[Finding]:
    parts: list[Finding] = []
    for item in found:
        parts += in_strings(data, item)
    return parts


# -- what must not have changed ------------------------------------------------------------------


def check_records(before: bytes, after: bytes) -> None:
    """What parsed still parses, to the same structure with the same ids."""
    old, new = before.split(b"\n"), after.split(b"\n")
    if len(old) != len(new):
        raise NotRedacted(
            "redaction would have changed the number of lines",
            "Nothing was written. Please report it.",
        )
    for number, (one, other) in enumerate(zip(old, new, strict=True), 1):
        if one != other and not intact(one, other):
            raise NotRedacted(
                f"redaction would have broken the record on line {number}",
                "Nothing was written. Please report it.",
            )


def intact(before: bytes, after: bytes) -> bool:
    """Whether one record is what it was but for strings that lost something."""
    try:
        value = _decode(before)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    try:
        return _same(value, _decode(after), "")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _same(one: Any, other: Any, key: str) -> bool:
    """Return whether two values differ in nothing but strings that may change."""
    todo = [(one, other, key)]
    while todo:
        a, b, name = todo.pop()
        if type(a) is not type(b):
            if not _is_redacted_number(a, b, name):
                return False
        elif isinstance(a, dict):
            if len(a) != len(b):
                return False
            todo += [(x, y, k.lower()) for (k, x), y in zip(a.items(), b.values(), strict=True)]
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            todo += [(x, y, name) for x, y in zip(a, b, strict=True)]
        elif a != b and (not isinstance(a, str) or name in SEALED):
            return False
    return True


def _is_redacted_number(before: Any, after: Any, name: str) -> bool:
    if not isinstance(before, int | float) or not isinstance(after, str):
        return False
    return "[REDACTED:" in after and name not in PROTECTED
