"""What an agent is answered when it asks about earlier sessions."""

from __future__ import annotations

from typing import Literal

import msgspec

Detail = Literal["brief", "normal", "full"]


class RecallRequest(msgspec.Struct, frozen=True):
    """What an agent looks for."""

    query: str
    everywhere: bool = False  # in every project, not just in this one
    kind: str = ""  # session, note or commit; empty is all
    since: str | None = None
    after: int = 0  # a place in the list


class MemoryLine(msgspec.Struct, frozen=True):
    """A session, a note or a commit on one line."""

    id: str  # that `get` and `timeline` take
    at: int | None
    kind: str  # session, commit, or the type of a note
    title: str
    why: str = ""  # why it is in the list


class MemoryLines(msgspec.Struct, frozen=True):
    lines: list[MemoryLine]
    next: str | None = None  # a cursor
    hint: str = ""  # what to do next


class MemoryText(msgspec.Struct, frozen=True):
    """A session, a turn, a note or a commit in words."""

    id: str
    kind: str
    blocks: list[str]  # each of one line or more


class MemoryTexts(msgspec.Struct, frozen=True):
    items: list[MemoryText]
    next: str | None = None
    hint: str = ""
