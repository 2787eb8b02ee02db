"""Spans as an OTLP request in protocol buffers, without a library: a trace has four kinds of
messages."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import msgspec

AttributeValue = str | int | float | bool
INTERNAL, CLIENT = 1, 3
_ERROR = 2
_FIXED64, _BYTES = 1, 2


class OtlpSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One span; times are in ms."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes = b""
    name: str
    kind: int = INTERNAL
    start: int
    end: int
    attributes: dict[str, AttributeValue] = {}
    failed: bool = False


class OtlpScope(msgspec.Struct, frozen=True):
    """Who made the spans, and by which conventions."""

    name: str
    version: str
    schema: str


def encode_spans(
    resource: Mapping[str, AttributeValue], scope: OtlpScope, spans: Iterable[OtlpSpan]
) -> bytes:
    """Return an ExportTraceServiceRequest with one resource and one scope."""
    told = b"".join(_message(1, _pair(name, value)) for name, value in resource.items())
    about = _message(1, scope.name.encode()) + _message(2, scope.version.encode())
    found = _message(1, about) + b"".join(_message(2, _span(span)) for span in spans)
    found += _message(3, scope.schema.encode())
    return _message(1, _message(1, told) + _message(2, found))


def _span(span: OtlpSpan) -> bytes:
    made = _message(1, span.trace_id) + _message(2, span.span_id)
    if span.parent_id:
        made += _message(4, span.parent_id)
    made += _message(5, span.name.encode("utf-8", "replace")) + _number(6, span.kind)
    made += _fixed(7, span.start * 1_000_000) + _fixed(8, max(span.start, span.end) * 1_000_000)
    for name, value in span.attributes.items():
        made += _message(9, _pair(name, value))
    return made + _message(15, _number(3, _ERROR)) if span.failed else made


def _pair(name: str, value: AttributeValue) -> bytes:
    return _message(1, name.encode()) + _message(2, _any(value))


def _any(value: AttributeValue) -> bytes:
    if isinstance(value, bool):
        return _number(2, int(value))
    if isinstance(value, int):
        return _number(3, value & (1 << 64) - 1)
    if isinstance(value, float):
        return _varint(4 << 3 | _FIXED64) + struct.pack("<d", value)
    return _message(1, value.encode("utf-8", "replace"))


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _fixed(number: int, value: int) -> bytes:
    return _varint(number << 3 | _FIXED64) + struct.pack("<Q", value)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
