"""Times of OpenHands, which are those of the clock on the wall, without a zone."""

from __future__ import annotations

from datetime import datetime

from whyfor.model.times import parse_iso


def local_time(value: object) -> int | None:
    """Return a time that names no zone as one of this machine's."""
    if not isinstance(value, str):
        return parse_iso(value)
    try:
        told = datetime.fromisoformat(value)
        return parse_iso(told.astimezone().isoformat()) if told.tzinfo is None else parse_iso(value)
    except (ValueError, OverflowError, OSError):
        return None
