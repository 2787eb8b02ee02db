"""Events of a recorded terminal."""

from __future__ import annotations

from typing import Any

import msgspec

CAST = "cast"  # the key under which a line that is an array becomes a record
OUTPUT, INPUT, RESIZE, MARKER, EXIT = "o", "i", "r", "m", "x"
IDLE = "idle"  # the label of a marker: the program wrote nothing for a while
PAUSED = "paused"  # and where nothing was recorded for a while


class CastEvent(msgspec.Struct, frozen=True):
    """One event: seconds since the one before, what happened, and its text."""

    interval: float
    code: str
    text: str


class Recording(msgspec.Struct, frozen=True):
    """A recorded terminal, to be played."""

    columns: int
    rows: int
    seconds: float
    events: list[CastEvent]


def is_cast_event(value: Any) -> bool:
    """Return whether a JSON value is an event of a recording: [seconds, code, text]."""
    if not isinstance(value, list) or len(value) != 3:
        return False
    interval, code, text = value
    is_number = isinstance(interval, int | float) and not isinstance(interval, bool)
    return is_number and isinstance(code, str) and len(code) == 1 and isinstance(text, str)
