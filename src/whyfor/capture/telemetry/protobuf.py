"""The wire format of protocol buffers, as far as OTLP's log records need it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TOO_DEEP = 8
_TEXT_MAX = 2_000  # bytes of a value; longer ones are words, which are not wanted
Field = tuple[int, int | bytes]


class Malformed(ValueError):
    """The bytes are no message."""


def read_fields(data: bytes) -> Iterator[Field]:
    """Yield the fields of a message: number, and integer or bytes. Raises Malformed."""
    at, end = 0, len(data)
    while at < end:
        key = data[at]
        at += 1
        if key & 0x80:
            key, at = _varint(data, at - 1)
        kind = key & 7
        if kind == _BYTES:
            size = data[at] if at < end else 0x80
            at += 1
            if size & 0x80:
                size, at = _varint(data, at - 1)
            if at + size > end:
                raise Malformed("a field is cut off")
            yield key >> 3, data[at : at + size]
            at += size
        elif kind == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif kind in (_FIXED64, _FIXED32):
            width = 8 if kind == _FIXED64 else 4
            if at + width > end:
                raise Malformed("a field is cut off")
            yield key >> 3, int.from_bytes(data[at : at + width], "little")
            at += width
        else:
            raise Malformed("a field of an unknown kind")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    end = min(len(data), at + 10)
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Malformed("a number is cut off")


def repeated_messages(data: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the messages in one repeated field."""
    for number, value in read_fields(data):
        if number == wanted and isinstance(value, bytes):
            yield value


def any_value(data: bytes) -> str | int | float | bool | None:
    """Return a simple AnyValue; None for lists, objects, bytes and long texts."""
    for number, value in read_fields(data):
        if number == 1 and isinstance(value, bytes):
            return value.decode("utf-8", "replace") if len(value) <= _TEXT_MAX else None
        if isinstance(value, bytes):
            return None
        if number == 2:
            return bool(value)
        if number == 3:
            return value - (1 << 64) if value >> 63 else value
        if number == 4:
            found: float = struct.unpack("<d", value.to_bytes(8, "little"))[0]
            return found
    return None
