"""Bodies of OTLP over HTTP: gzip, protocol buffers and JSON become log records."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from whyfor.agents.base import as_dict, as_str, can_decode, get_dict, get_list, get_str
from whyfor.capture.telemetry.protobuf import Malformed, any_value, read_fields, repeated_messages
from whyfor.model.errors import BadInput
from whyfor.model.telemetry import Attributes, LogRecord

BODY_MAX = 4 << 20  # bytes of a body, as it is sent
UNPACKED_MAX = 16 << 20
RECORDS_MAX = 20_000  # of one body
_MS = 1_000_000  # ns
_TIME_MAX = 1 << 62
_HINT = "Send OTLP over HTTP, as protobuf or JSON."


def unpack_body(body: bytes, encoding: str) -> bytes:
    """Return a body as it was before it was packed. Raises BadInput."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "deflate"):
        raise BadInput(f"bodies packed by {encoding[:20]!r} are not read", _HINT)
    unpacker = zlib.decompressobj(47)  # gzip or zlib, as its header says
    try:
        found = unpacker.decompress(body, UNPACKED_MAX)
    except zlib.error:
        raise BadInput("the body cannot be unpacked", _HINT) from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise BadInput("the body is too large, or cut off", _HINT)
    return found


def read_logs(body: bytes, media_type: str) -> list[LogRecord]:
    """Return the log records of a request. Raises BadInput."""
    is_json = media_type.partition(";")[0].strip().lower() == "application/json"
    reader = _json_records if is_json else _proto_records
    found: list[LogRecord] = []
    try:
        for record in reader(body):
            found.append(record)
            if len(found) > RECORDS_MAX:
                raise BadInput(f"a request may have {RECORDS_MAX:,} records", _HINT)
    except (Malformed, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadInput("the body is no OTLP request", _HINT) from None
    return found


# -- protocol buffers ----------------------------------------------------------------------------


def _proto_records(body: bytes) -> Iterator[LogRecord]:
    for resource_logs in repeated_messages(body, 1):
        for scope_logs in repeated_messages(resource_logs, 2):
            for record in repeated_messages(scope_logs, 2):
                yield _proto_record(record)


def _proto_record(data: bytes) -> LogRecord:
    attributes: Attributes = {}
    at = seen = 0
    name = ""
    for number, value in read_fields(data):
        if number == 6 and isinstance(value, bytes):
            _add_pair(value, attributes)
        elif number == 1 and isinstance(value, int):
            at = value
        elif number == 11 and isinstance(value, int):
            seen = value
        elif number == 5 and isinstance(value, bytes):
            name = name or as_str(any_value(value))
        elif number == 12 and isinstance(value, bytes):
            name = value.decode("utf-8", "replace")[:200]
    return _record(name, at or seen, attributes)


def _add_pair(data: bytes, attributes: Attributes) -> None:
    key, value = "", b""
    for number, found in read_fields(data):
        if isinstance(found, bytes):
            if number == 1:
                key = found.decode("utf-8", "replace")
            elif number == 2:
                value = found
    attributes[key] = any_value(value)


# -- JSON ----------------------------------------------------------------------------------------


def _json_records(body: bytes) -> Iterator[LogRecord]:
    if not can_decode(body):
        raise BadInput("the body is too large", _HINT)
    told = as_dict(msgspec.json.decode(body))
    for resource_logs in map(as_dict, get_list(told, "resourceLogs")):
        for scope_logs in map(as_dict, get_list(resource_logs, "scopeLogs")):
            for record in map(as_dict, get_list(scope_logs, "logRecords")):
                yield _json_record(record)


def _json_record(record: dict[str, Any]) -> LogRecord:
    attributes = {
        get_str(pair, "key"): _json_value(get_dict(pair, "value"))
        for pair in map(as_dict, get_list(record, "attributes"))
    }
    at = _nanoseconds(record.get("timeUnixNano")) or _nanoseconds(
        record.get("observedTimeUnixNano")
    )
    name = get_str(record, "eventName") or as_str(_json_value(get_dict(record, "body")))
    return _record(name, at, attributes)


def _nanoseconds(value: object) -> int:
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else 0


def _json_value(value: dict[str, Any]) -> str | int | float | bool | None:
    if isinstance(text := value.get("stringValue"), str):
        return text if len(text) <= 2_000 else None
    if "intValue" in value:
        given = value["intValue"]
        is_number = isinstance(given, str) and given.lstrip("-").isdecimal() and len(given) < 20
        return int(given) if is_number else given if isinstance(given, int) else None
    found = value.get("doubleValue", value.get("boolValue"))
    return found if isinstance(found, int | float) else None


def _record(name: str, at: int, attributes: Attributes) -> LogRecord:
    """A record is called by its event's name; some exporters put that among the attributes."""
    told = as_str(attributes.get("event.name"))
    best = told if "." in told or not name.endswith(told) else name
    return LogRecord(best or name, at // _MS if 0 < at < _TIME_MAX else 0, attributes)
