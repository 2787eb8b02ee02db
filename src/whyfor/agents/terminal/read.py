"""Read the recording of a terminal. What a screen shows is a weak witness: all events of it have
low confidence."""

from __future__ import annotations

import re

import msgspec

from whyfor.agents.base import as_list, as_str, get_dict, get_str
from whyfor.agents.chat import ChatReader
from whyfor.agents.record_place import RecordPlace
from whyfor.agents.terminal.cast import (
    cast_event,
    header_size,
    header_time,
    is_header,
    is_older,
    resized,
    terminal_size,
)
from whyfor.agents.terminal.screen import FED_MAX, ScreenState, render_screen
from whyfor.model.casts import CAST, EXIT, IDLE, INPUT, MARKER, OUTPUT, RESIZE, CastEvent
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.titles import TITLE_DERIVED

IDLE_SECONDS = 2.0  # without output: then the screen is looked at
_TEXT_MAX = 20_000  # characters of one look
_LINES_KNOWN = 400  # lines that were told last, which are not told again
_TYPED_MAX = 10_000
_FRAME = " \t│┃┆╎|▌"
# What stands before the cursor where a program waits for a line: `> `, `aider> `, `❯ `, `$ `.
_WAITING = re.compile(r"(\S{0,24}[>❯›»$%#])\s*$")
_KEYS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?")
_DRAWN = re.compile(r"[─━═╭╮╰╯┌┐└┘├┤╌┄]+")


class CastReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        out.main.source, out.main.confidence = "pty", "low"
        event = cast_event(record)
        if event is not None:
            self._event(event, offset, out)
        elif is_header(record):
            self._header(record, out)
        elif CAST not in record:
            out.unknown_type(record.get("type"))

    def _header(self, record: Record, out: Sink) -> None:
        state = self.state
        state["at"] = header_time(record)
        state["absolute"] = is_older(record)
        size = header_size(record)
        state["size"] = [size.columns, size.rows]
        own = get_dict(record, "whyfor")
        state["typed_too"] = own.get("input") is True
        at = RecordPlace(out.main, state["at"])
        self.locate(at, out.main.session_id, cwd=own.get("cwd"), version=own.get("version"))
        title = get_str(record, "title") or get_str(record, "command")
        out.main.title(TITLE_DERIVED, title)

    def _event(self, event: CastEvent, offset: int, out: Sink) -> None:
        elapsed = self.state.get("elapsed", 0.0)
        then = event.interval if self.state.get("absolute") else elapsed + event.interval
        if then - elapsed >= IDLE_SECONDS:
            self._look(offset, "before", out)
        self.state["elapsed"] = max(elapsed, then)
        handler = _CODES.get(event.code)
        if handler is not None:
            handler(self, event, offset, out)

    def _now(self, out: Sink) -> RecordPlace:
        began = self.state.get("at")
        at = None if began is None else began + round(self.state.get("elapsed", 0.0) * 1000)
        return RecordPlace(out.main, at)

    # -- events ----------------------------------------------------------------------------------

    def _output(self, event: CastEvent, offset: int, out: Sink) -> None:
        waiting = as_str(self.state.get("written")) + event.text
        self.state["written"] = waiting[-FED_MAX:]
        at = self._now(out)
        second = None if at.when is None else at.when // 1000
        if second is not None and second != self.state.get("heard"):
            self.state["heard"] = second
            at.add("heartbeat", fold(out.main.session_id, offset, "heard"), "system")

    def _input(self, event: CastEvent, offset: int, out: Sink) -> None:
        """A line that was typed is a prompt."""
        typed = as_str(self.state.get("typed"))
        for key in _KEYS.sub("", event.text):
            if key in "\r\n":
                self._prompt(typed, fold(out.main.session_id, offset, "typed", typed), out)
                typed = ""
            elif key in "\x7f\x08":
                typed = typed[:-1]
            elif key in "\x03\x15":
                typed = ""
            elif key.isprintable():
                typed += key
        self.state["typed"] = typed[-_TYPED_MAX:]

    def _resize(self, event: CastEvent, offset: int, out: Sink) -> None:
        size = resized(event.text)
        self.state["size"] = [size.columns, size.rows]

    def _marker(self, event: CastEvent, offset: int, out: Sink) -> None:
        if event.text == IDLE:
            self._look(offset, "idle", out)

    def _exit(self, event: CastEvent, offset: int, out: Sink) -> None:
        self._look(offset, "end", out)
        self.state["ended"] = True
        is_code = event.text.isdecimal() and len(event.text) < 6
        data = {"exit_code": int(event.text)} if is_code else None
        key = fold(out.main.session_id, offset, "exit")
        self._now(out).add("session.exited", key, "system", data=data)

    # -- the screen ------------------------------------------------------------------------------

    def _look(self, offset: int, why: str, out: Sink) -> None:
        """Add what the screen shows that it did not show before."""
        text = as_str(self.state.get("written"))
        if not text:
            return
        self.state["written"] = ""
        columns, rows = as_list(self.state.get("size")) or (None, None)
        size = terminal_size(columns, rows)
        seen = render_screen(_screen_state(self.state.get("screen")), size, text)
        self.state["screen"] = msgspec.to_builtins(seen.state)
        new = self._unseen([*seen.scrolled, *seen.shown])
        key = fold(out.main.session_id, offset, why)
        asked = self._asked(new, seen.shown[seen.row : seen.row + 1])
        if asked:
            self._prompt(asked, fold(key, "prompt"), out)
        told = "\n".join(new).strip("\n")
        if told.strip():
            self.say(self._now(out), key, _fenced(told[-_TEXT_MAX:]))
        where = (seen.shown[seen.row] if seen.row < len(seen.shown) else "")[: seen.column]
        found = _WAITING.search(where.lstrip(_FRAME))
        self.state["waits"] = found[1] if found else ""

    def _unseen(self, lines: list[str]) -> list[str]:
        """Return the lines that were not told lately; a program draws the same ones again and
        again."""
        known = [as_str(line) for line in as_list(self.state.get("known"))]
        had = set(known)
        new: list[str] = []
        for line in lines:
            bare = _DRAWN.sub("", line).strip(_FRAME)
            if not bare:
                if new and new[-1]:
                    new.append("")
            elif bare not in had:
                had.add(bare)
                known.append(bare)
                new.append(line.rstrip())
        self.state["known"] = known[-_LINES_KNOWN:]
        return new

    def _asked(self, lines: list[str], current: list[str]) -> str:
        """Return the line that was typed where the program waited for one; empty if none is
        seen, or if it was recorded as it was typed."""
        waits = as_str(self.state.get("waits"))
        if not waits or self.state.get("typed_too"):
            return ""
        for line in lines:
            bare = line.strip(_FRAME)
            if bare.startswith(waits) and line not in current:
                return bare[len(waits) :].strip()
        return ""

    def _prompt(self, text: str, key: int, out: Sink) -> None:
        if text.strip():
            self.prompt(self._now(out), key, text.strip())


_CODES = {
    OUTPUT: CastReader._output,
    INPUT: CastReader._input,
    RESIZE: CastReader._resize,
    MARKER: CastReader._marker,
    EXIT: CastReader._exit,
}


def _screen_state(kept: object) -> ScreenState:
    """Return what was kept of a screen; an empty one if that cannot be read."""
    try:
        return msgspec.convert(kept, ScreenState) if kept else ScreenState()
    except msgspec.ValidationError:
        return ScreenState()


def _fenced(text: str) -> str:
    """Return the text of a screen as Markdown that keeps its lines."""
    ticks = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    fence = "`" * ticks
    return f"{fence}\n{text}\n{fence}"
