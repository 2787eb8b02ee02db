"""What agents get from the tools of `whyfor mcp`, as structured content."""

from __future__ import annotations

import msgspec

from whyfor.model.agent_answers import MemoryLines, MemoryTexts
from whyfor.model.fence import NOTICE, defuse_text
from whyfor.model.text import one_line
from whyfor.model.times import to_iso


class WireMemoryLine(msgspec.Struct, frozen=True):
    id: str
    date: str | None
    kind: str
    title: str
    why: str


class WireMemoryLines(msgspec.Struct, frozen=True):
    notice: str
    items: list[WireMemoryLine]
    cursor: str | None
    next_step: str


class WireMemoryText(msgspec.Struct, frozen=True):
    id: str
    kind: str
    text: str


class WireMemoryTexts(msgspec.Struct, frozen=True):
    notice: str
    items: list[WireMemoryText]
    cursor: str | None
    next_step: str


_TITLE = 100
_WHY = 140


def wire_memory_lines(found: MemoryLines) -> WireMemoryLines:
    items = []
    for line in found.lines:
        date = (to_iso(line.at) or "")[:10] or None
        title, why = _short(line.title, _TITLE), _short(line.why, _WHY)
        items.append(WireMemoryLine(line.id, date, line.kind, title, why))
    return WireMemoryLines(NOTICE, items, found.next, found.hint)


def wire_memory_texts(found: MemoryTexts) -> WireMemoryTexts:
    items = [
        WireMemoryText(item.id, item.kind, defuse_text("\n".join(item.blocks)))
        for item in found.items
    ]
    return WireMemoryTexts(NOTICE, items, found.next, found.hint)


def _short(text: str, limit: int) -> str:
    line = defuse_text(one_line(text))
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
