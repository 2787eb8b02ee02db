"""Words that several pages share."""

from __future__ import annotations

from datetime import datetime


def day_word(millis: int) -> str:
    """Today, Thu 12 Nov."""
    when, now = datetime.fromtimestamp(millis / 1000), datetime.now()
    near = {0: "Today, ", 1: "Yesterday, "}.get((now.date() - when.date()).days, "")
    year = "" if when.year == now.year else f" {when.year}"
    return f"{near}{when:%a} {when.day} {when:%b}{year}"
