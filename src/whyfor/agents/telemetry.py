"""What agents' log records mean: requests to models, and decisions about tools. Each agent's
package knows its own names; nothing but numbers, ids and names is taken."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from whyfor.agents.base import as_int
from whyfor.model.approvals import ToldDecision
from whyfor.model.findings import Record
from whyfor.model.telemetry import Attributes, LogRecord, TelemetryRequest
from whyfor.model.times import parse_iso

_NAME_MAX = 200
_DOLLARS_MAX = 1_000_000.0
# How the names of its records begin → the agent.
_PREFIXES = {
    "claude_code.": "claude",
    "codex.": "codex",
    "gemini_cli.": "gemini",
}
ReadRecord = Callable[[LogRecord], TelemetryRequest | ToldDecision | None]


class TelemetrySwitch(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's settings must say so that it sends its telemetry here."""

    agent: str
    file: str
    """Below its own folder."""
    toml: bool = False
    settings: Callable[[str, str], dict[str, Any]]
    """From our address and the key: a table of tables of values that are to be set."""


class TelemetryFile(msgspec.Struct, frozen=True, kw_only=True):
    """Telemetry that an agent writes to a file, as JSON lines."""

    agent: str
    title: str
    variable: str
    """Names the file, in the agent's environment."""
    read: Callable[[Record], TelemetryRequest | None]
    """From a line."""


def read_record(record: LogRecord) -> TelemetryRequest | ToldDecision | None:
    """Return what a log record tells; None if it tells nothing that is kept."""
    for prefix, agent in _PREFIXES.items():
        if record.name.startswith(prefix):
            package = import_module(f"whyfor.agents.{agent}.telemetry")
            read: ReadRecord = getattr(package, f"read_{agent}_log")
            return read(record)
    return None


def whole_number(attributes: Attributes, name: str) -> int | None:
    """Return a whole number that is not negative; some agents send it as text."""
    value = attributes.get(name)
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    found = as_int(value)
    return found if found is not None and found >= 0 else None


def told_price(attributes: Attributes, name: str) -> float | None:
    """Return a price; None if there is none, or it is 0, which says that it is not known."""
    value = attributes.get(name)
    try:
        found = float(value) if isinstance(value, str | int | float) else 0.0
    except ValueError:
        return None
    return found if 0 < found < _DOLLARS_MAX else None


def short_text(attributes: Attributes, name: str) -> str:
    value = attributes.get(name)
    return value[:_NAME_MAX] if isinstance(value, str) else ""


def log_time(record: LogRecord) -> int:
    """Return when the record's event happened, in ms."""
    return parse_iso(record.attributes.get("event.timestamp")) or record.at
