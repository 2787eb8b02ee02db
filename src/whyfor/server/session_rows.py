"""Words of a row in the list of sessions: what came of it, what is folded in, how long it took."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import msgspec

from whyfor.model.listing import ListedSession
from whyfor.model.paths import is_whole_path
from whyfor.model.status import LiveStatus
from whyfor.model.text import plural
from whyfor.server.render import STATUS

_FOLDS = {"resumed": "i-loop", "forked": "i-fork", "restored": "i-copy"}


class OutcomeWords(msgspec.Struct, frozen=True):
    """What came of a session: a shape, a colour and words; `more` is said after a dot."""

    shape: str
    tone: str
    words: str
    more: str = ""


def row_outcome(
    row: ListedSession,
    ends: dict[int, str],
    standing: LiveStatus | None = None,
    *,
    gone: bool = False,
) -> OutcomeWords:
    """The first that holds: what it does, if it is open; asked, failed, commits, files, nothing.
    `ends` says what it asked or failed with, `gone` that its repository is not here any more."""
    came = _came_of(row, gone=gone)
    if standing is not None:
        more = came.words if row.commits or row.files else ""
        return OutcomeWords(*_status(standing), more)
    if row.asked is not None:
        return OutcomeWords("i-ask", "is-yours", "asked, not answered", ends.get(row.asked, ""))
    if row.failed is not None:
        return OutcomeWords("s-error", "is-wrong", "Failed", ends.get(row.failed, ""))
    return came


def _status(standing: LiveStatus) -> tuple[str, str, str]:
    phase = standing.status.phase
    words = STATUS.get(phase, phase)
    if phase != "running" and standing.status.since:
        words += f", {short_duration(int(time.time() * 1000) - standing.status.since)}"
    return f"s-{phase}", f"status-{phase}", words


def _came_of(row: ListedSession, *, gone: bool) -> OutcomeWords:
    if row.commits:
        words = plural(row.commits, "commit")
        if gone:
            return OutcomeWords("i-commit", "", words, "repository gone")
        if row.tests == "tests failed":
            return OutcomeWords("s-error", "is-wrong", words, row.tests)
        return OutcomeWords("s-ok", "is-fine", words, row.tests)
    if row.files:
        in_git = row.project and not is_whole_path(row.project) and not gone
        words = plural(row.files, "file")
        more = f"{words}, not committed" if in_git else f"{words} written"
        return OutcomeWords("i-edit", "", more, row.tests)
    return OutcomeWords("s-none", "", "no change", "its session is unknown" if row.lone else "")


def fold_icon(row: ListedSession) -> str:
    """The icon of what is folded into a row."""
    kinds = {part.kind for part in row.parts} - {"first"}
    return _FOLDS[kinds.pop()] if len(kinds) == 1 else "i-fork"


def short_duration(millis: int) -> str:
    """2 min, 1 h 08 min; under a minute in seconds."""
    minutes = round(millis / 60_000)
    if millis < 60_000:
        return f"{max(0, millis // 1000)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def row_time(millis: int | None, *, timed: bool) -> str:
    """The time of day under a heading with the day; else the day."""
    if millis is None:
        return "unknown"
    when = datetime.fromtimestamp(millis / 1000)
    if timed or when.date() == datetime.now().date():
        return f"{when:%H:%M}"
    return f"{when.day} {when:%b}" if when.year == datetime.now().year else f"{when:%b %Y}"


ROW_WORDS: dict[str, Any] = {
    "outcome": row_outcome,
    "fold_icon": fold_icon,
    "short_duration": short_duration,
    "row_time": row_time,
}
