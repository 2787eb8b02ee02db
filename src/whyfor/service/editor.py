"""What editors show of a file: why a line is there, and which turn wrote each block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture.line_cache import keep_lines
from whyfor.config import Settings
from whyfor.git.blame import BlameOptions
from whyfor.git.place import name_place
from whyfor.model.blame import NOT_COMMITTED, BlameRow, FileBlame, LineWho
from whyfor.model.lines import AGENT, MODIFIED_LINE
from whyfor.model.text import one_line
from whyfor.model.why import LineReason
from whyfor.store.open import reading_local
from whyfor.story.lines.file_blame import BlameTarget, FileBlamer
from whyfor.story.lines.reasons import ReasonReader

_WORDS = 1_000  # characters of what was said
_TITLE = 70
_BLOCKS_MAX = 500  # that are told of one file
_TICKS = re.compile(r"`+")


class EditorFile(msgspec.Struct, frozen=True):
    """A file as an editor has it: its text may not be saved yet."""

    path: Path
    text: str

    @property
    def target(self) -> BlameTarget:
        return BlameTarget(self.path.name, self.path.parent, contents=self.text)


class TurnBlock(msgspec.Struct, frozen=True):
    """Lines that stand together and were written in one turn."""

    first: int  # from 1
    last: int
    agent: str
    session_id: str
    turn: int | None
    title: str


def explain_line(settings: Settings, file: EditorFile, line: int) -> str | None:
    """Return why a line is there, as Markdown in which nothing that was said can act; None if no
    agent wrote it. Raises what blame raises."""
    with reading_local(settings) as library:
        reader = ReasonReader(library, name_place(file.path.parent))
        found = reader.reasons(file.target, line, line)
    keep_lines(settings, reader.blamer.fresh.values())
    told = [reason for reason in found if _is_agents(reason.who)]
    return "\n\n".join(_parts(told[0])) if told else None


def turn_blocks(settings: Settings, file: EditorFile) -> list[TurnBlock]:
    """Return the blocks of a file that agents wrote. Raises what blame raises."""
    with reading_local(settings) as library:
        blamer = FileBlamer(library, name_place(file.path.parent))
        found = blamer.blame(file.target, BlameOptions())
    keep_lines(settings, blamer.fresh.values())
    return list(_blocks(found))[:_BLOCKS_MAX]


def _blocks(found: FileBlame) -> Iterator[TurnBlock]:
    start: BlameRow | None = None
    last = 0
    for row in found.rows:
        goes_on = start is not None and row.line == last + 1 and _same(row.who, start.who)
        if start is not None and not goes_on:
            yield _block(start, last)
            start = None
        if start is None and _is_agents(row.who):
            start = row
        last = row.line
    if start is not None:
        yield _block(start, last)


def _block(start: BlameRow, last: int) -> TurnBlock:
    who = start.who
    turn = f" T{who.turn}" if who.turn else ""
    asked = f": {one_line(who.asked.text)}" if who.asked else ""
    title = f"{_agent_title(who.agent)}{turn}{asked}"
    short = title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"
    return TurnBlock(start.line, last, who.agent, who.session_id, who.turn, short)


def _same(one: LineWho, other: LineWho) -> bool:
    names = ("agent", "session_id", "turn")
    return _is_agents(one) and all(getattr(one, name) == getattr(other, name) for name in names)


def _is_agents(who: LineWho) -> bool:
    return who.kind in (AGENT, MODIFIED_LINE)


# -- Markdown ------------------------------------------------------------------------------------


def _parts(reason: LineReason) -> Iterator[str]:
    who, row = reason.who, reason.first
    facts = [f"**{_agent_title(who.agent)}**"]
    facts += [f"turn {who.turn}"] if who.turn else []
    facts += [f"`{one_line(who.model)}`"] if who.model else []
    facts.append("changed since" if who.kind == MODIFIED_LINE else who.evidence)
    yield " · ".join(facts)
    if reason.question:
        yield f"It had asked:\n\n{_fenced(reason.question)}"
    if who.asked:
        yield f"Asked:\n\n{_fenced(who.asked.text)}"
    if reason.closing:
        yield f"The agent's last words:\n\n{_fenced(reason.closing)}"
    if row.commit == NOT_COMMITTED:
        yield "Not committed yet."
    else:
        day = datetime.fromtimestamp(row.time).astimezone().strftime("%d %b %Y")
        yield f"`{row.commit[:8]}`, {day}:\n\n{_fenced(row.summary)}"


def _fenced(text: str) -> str:
    """Return a text as a block of code: no link, picture or command in it can act."""
    cut = text if len(text) <= _WORDS else f"{text[:_WORDS]} …"
    longest = max((len(ticks) for ticks in _TICKS.findall(cut)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{cut.strip()}\n{fence}"


def _agent_title(name: str) -> str:
    return AGENTS[name].title if name in AGENTS else name
