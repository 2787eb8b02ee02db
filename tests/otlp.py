"""Bodies of OTLP, as an agent's exporter makes them."""

from __future__ import annotations

import json
import struct
from typing import Any

Value = str | int | float | bool


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _any(value: Value) -> bytes:
    if isinstance(value, bool):
        return b"\x10" + _varint(value)
    if isinstance(value, int):
        return b"\x18" + _varint(value & (1 << 64) - 1)
    if isinstance(value, float):
        return b"\x21" + struct.pack("<d", value)
    return field(1, value.encode())


def _pair(name: str, value: Value) -> bytes:
    return field(1, name.encode()) + field(2, _any(value))


def protobuf_logs(records: list[tuple[str, int, dict[str, Value]]]) -> bytes:
    """Records: name, ms, attributes."""
    made = b""
    for name, at, attributes in records:
        record = b"\x09" + struct.pack("<Q", at * 1_000_000) + field(5, _any(name))
        record += b"".join(field(6, _pair(key, value)) for key, value in attributes.items())
        made += field(2, record)
    resource = field(1, field(1, _pair("service.name", "claude-code")))
    return field(1, resource + field(2, made))


def json_logs(records: list[tuple[str, int, dict[str, Value]]]) -> bytes:
    def told(value: Value) -> dict[str, Any]:
        if isinstance(value, bool):
            return {"boolValue": value}
        if isinstance(value, int):
            return {"intValue": str(value)}
        return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}

    logs = [
        {
            "timeUnixNano": str(at * 1_000_000),
            "body": {"stringValue": name},
            "attributes": [{"key": key, "value": told(value)} for key, value in given.items()],
        }
        for name, at, given in records
    ]
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}]}).encode()


def claude_request(
    session: str, at: int, number: int = 0, **more: Value
) -> tuple[str, int, dict[str, Value]]:
    """A request as Claude Code tells it."""
    given: dict[str, Value] = {
        "session.id": session,
        "user.id": "f00d" * 16,
        "terminal.type": "xterm-256color",
        "event.name": "api_request",
        "event.sequence": number,
        "prompt.id": "00000000-0000-4000-8000-000000000001",
        "model": "claude-opus-4-8",
        "input_tokens": 1100,
        "output_tokens": 495 + number,
        "cache_read_tokens": 22000,
        "cache_creation_tokens": 3300,
        "cost_usd": 0.0495,
        "duration_ms": 78,
        "query_source": "sdk",
        "request_id": f"req_{number}",
    }
    return "claude_code.api_request", at, {**given, **more}
