"""Why lines are there, in words for an agent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from whyfor.git.place import name_place
from whyfor.model.agent_answers import MemoryText, MemoryTexts
from whyfor.model.blame import NOT_COMMITTED
from whyfor.model.errors import BadInput
from whyfor.model.ids import short_id
from whyfor.model.lines import PERSON
from whyfor.model.text import clean, one_line
from whyfor.model.why import LineReason
from whyfor.store.open import LocalStore, OpenStore
from whyfor.story.lines.file_blame import BlameTarget
from whyfor.story.lines.location import FileLocation
from whyfor.story.lines.reasons import ReasonReader

_SAID = 600  # characters of what was said
_MOST = 200  # lines that are asked about at once


def line_texts(store: OpenStore, folder: Path, place: FileLocation) -> MemoryTexts:
    """Return why lines are there, those of one turn together. Raises BadInput for too many lines,
    and what blame raises."""
    first, last = place.first or 1, place.last or 1
    if last - first >= _MOST:
        raise BadInput(f"{last - first + 1} lines", f"Ask about at most {_MOST} at once.")
    if not isinstance(store, LocalStore):
        raise BadInput("lines are known where their repository is", "Ask: whyfor mcp, there.")
    reader = ReasonReader(store, name_place(folder))
    items = []
    for reason in reader.reasons(BlameTarget(place.file, folder), first, last):
        lines = reason.rows
        ident = f"{reason.path}:{lines[0].line}-{lines[-1].line}"
        items.append(MemoryText(ident, "lines", list(_blocks(reason))))
    return MemoryTexts(items)


def _blocks(reason: LineReason) -> Iterator[str]:
    row, who = reason.first, reason.who
    yield "\n".join(line.text for line in reason.rows[:20])
    if row.commit != NOT_COMMITTED:
        day = f"{datetime.fromtimestamp(row.time, UTC):%Y-%m-%d}"
        yield f"commit:{row.commit[:8]} {day} {one_line(row.summary)}"
    if who.agent:
        turn = f"/{who.turn}" if who.turn is not None else ""
        changed = ", changed since" if who.kind == "modified" else ""
        yield f"Written in {who.agent}:{short_id(who.session_id)}{turn} ({who.evidence}{changed})"
    elif who.kind == PERSON:
        yield "Written by a person (inferred)"
    else:
        yield "Nobody is known to have written it"
    if reason.question:
        yield f"The agent asked: {clean(reason.question)[:_SAID]}"
    if who.asked:
        yield f"The person said: {clean(who.asked.text)[:_SAID]}"
    if reason.closing:
        yield f"The agent closed: {clean(reason.closing)[:_SAID]}"
    for before in reason.history[:4]:
        yield f"Before that ({before.commit[:8]}): {before.text.strip()}"
