"""Times are integers, in milliseconds since 1970 UTC; text is used only for input and output."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from whyfor.model.errors import BadInput

DAY = 86_400_000  # ms
_RELATIVE = re.compile(r"^(\d+)\s*(min|h|d|w|m|y)$")
_UNIT = {"min": 1 / 1440, "h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}
# 9999-12-30: one day before the end of the calendar, in any time zone
_LATEST = 253402128000000


def wall_clock() -> int:
    """Return what time it is now."""
    return time.time_ns() // 1_000_000


def parse_iso(value: object) -> int | None:
    """Parse an agent's timestamp: ISO text, or a number of seconds or milliseconds; None if it is
    not a time since 1970."""
    try:
        if isinstance(value, str):
            when = datetime.fromisoformat(value)
            millis = int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            millis = int(value if value > 1e11 else value * 1000)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return millis if 0 < millis <= _LATEST else None


def to_iso(millis: int | None) -> str | None:
    if millis is None:
        return None
    return (
        datetime.fromtimestamp(millis / 1000, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def parse_when(text: str, now: datetime, *, end: bool = False) -> int:
    """Parse a value of --since or --until: a date, a time, `today`, `yesterday`, `3d`, `2w`.

    A date without a time means its start, or with `end` its end.
    """
    word = text.strip().lower()
    if word in ("today", "yesterday"):
        day = now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        day += timedelta(days=end) - timedelta(days=word == "yesterday")
        return _millis(_in_zone(day, now) - timedelta(milliseconds=end))
    try:
        if found := _RELATIVE.match(word):
            return _millis(now - timedelta(days=int(found[1]) * _UNIT[found[2]]))
        when = datetime.fromisoformat(text.strip())
        if not 1 < when.year < 9999:
            raise ValueError
    except (ValueError, OverflowError):
        raise BadInput(
            f"not a date: {text!r}",
            "Use 2026-05-31, 2026-05-31T14:00, today, yesterday, 12h, 3d, 2w, 6m or 1y.",
        ) from None
    whole_day = end and len(text.strip()) <= 10
    when += timedelta(days=whole_day)
    if when.tzinfo is None:
        when = _in_zone(when, now)
    return _millis(when - timedelta(milliseconds=whole_day))


def _in_zone(when: datetime, now: datetime) -> datetime:
    """Return a time of day with its zone: this machine's if `now` is local, whose clocks were
    perhaps changed between the two; else that of `now`."""
    is_local = now.replace(tzinfo=None).astimezone().utcoffset() == now.utcoffset()
    return when.astimezone() if is_local else when.replace(tzinfo=now.tzinfo)


def _millis(when: datetime) -> int:
    return int(when.timestamp() * 1000)
