"""Limits and context for building the items of a page."""

from __future__ import annotations

import msgspec

from whyfor.model.conversation import ToolCallItem
from whyfor.model.events import StoredEvent
from whyfor.model.sessions import Session

FAILED_LINES = 12
OUTPUT_LINES = 60
OUTPUT_CHARS = 6000
DIFF_ROWS = 120
GIVEN_CHARS = 4000
RESULT_CHARS = 2500  # of a subagent's answer


class Limits(msgspec.Struct, frozen=True):
    """How much of one call is shown."""

    failed_lines: int = FAILED_LINES
    lines: int = OUTPUT_LINES
    chars: int = OUTPUT_CHARS
    rows: int = DIFF_ROWS
    given: int = GIVEN_CHARS
    result: int = RESULT_CHARS


LIMITS = Limits()
WHOLE = Limits(20_000, 20_000, 1 << 20, 20_000, 1 << 18, 1 << 18)


class PageContext(msgspec.Struct):
    """What the items of a page need besides its events."""

    session: Session
    results: dict[str, StoredEvent] = {}  # by the call's id
    lines: dict[int, int] = {}  # of results that were cut: all their lines
    sizes: dict[int, int] = {}  # bytes of each event's text
    requests: dict[str, StoredEvent] = {}
    known: set[str] = set()  # calls of the whole conversation
    children: dict[str, Session] = {}  # by the call's id
    # of a child: its first calls, its last words
    inside: dict[int, tuple[list[ToolCallItem], str]] = {}
    limits: Limits = LIMITS
    before: int | None = None  # when the event before the first was
