"""What a terminal shows after a run of output: rendered by pyte, and only when the program rests,
because rendering is slow."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from whyfor.agents.terminal.cast import TerminalSize

FED_MAX = 48_000  # characters that are rendered at once; what came before is left out
_ALTERNATE = re.compile(r"\x1b\[\?(?:1049|1047|47)([hl])")
_HISTORY = 1_000  # lines that scrolled out of sight
# Control sequences; strings for the terminal itself, such as titles and pictures; other escapes;
# what is left of a sequence that broke off.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)(?P<given>[0-?]*)(?P<between>[ -/]*)(?P<final>[@-~])?"
    r"|(?:\x1b[\]P_^X]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b(?P<escape>[ -/]*[0-~])?"
    r"|[\x80-\x9f]"
)
# What moves the cursor, inserts, erases, and the modes of that, with what it may be given.
_DRAWING = {
    **dict.fromkeys("ABCDEFGLMPX@`ade", re.compile(r"\d{0,5}")),
    **dict.fromkeys("Hfr", re.compile(r"\d{0,5}(?:;\d{0,5})?")),
    **dict.fromkeys("hl", re.compile(r"4|20|\?7")),  # insert, new line, wrap
    "J": re.compile(r"[0-3]?"),
    "K": re.compile(r"[0-2]?"),
    "g": re.compile(r"[03]?"),
}
_ESCAPES = frozenset("78DEHMc")  # of two characters: where the cursor was, a line up or down, reset


class ScreenState(msgspec.Struct, frozen=True):
    """What a screen showed when it was looked at last. `usual` is what the usual screen shows while
    a program draws on the alternate one."""

    lines: list[str] = []
    cursor: tuple[int, int] | None = None  # row and column
    usual: list[str] | None = None


class ScreenText(msgspec.Struct, frozen=True):
    """The lines that scrolled out since the last look, and what the screen shows."""

    scrolled: list[str]
    state: ScreenState

    @property
    def shown(self) -> list[str]:
        return self.state.lines

    @property
    def row(self) -> int:
        return self.state.cursor[0] if self.state.cursor else 0

    @property
    def column(self) -> int:
        return self.state.cursor[1] if self.state.cursor else 0


def render_screen(before: ScreenState, size: TerminalSize, text: str) -> ScreenText:
    """Return what is shown when `text` is written to a screen that shows these lines."""
    import pyte  # here: only recordings need it

    screen: Any = pyte.HistoryScreen(size.columns, size.rows, history=_HISTORY, ratio=0.5)
    stream: Any = pyte.Stream(screen)
    _draw(screen, stream, before.lines)
    screen.history.top.clear()
    if before.cursor is not None:
        screen.cursor_position(before.cursor[0] + 1, before.cursor[1] + 1)
    usual = before.usual
    at = 0
    written = text[-FED_MAX:]
    for found in _ALTERNATE.finditer(written):
        stream.feed(_SEQUENCE.sub(_drawn, written[at : found.start()]))
        at = found.end()
        if found[1] == "h" and usual is None:
            usual = _display(screen)
            _draw(screen, stream, [])
        elif found[1] == "l" and usual is not None:
            _draw(screen, stream, usual)
            usual = None
    stream.feed(_SEQUENCE.sub(_drawn, written[at:]))
    scrolled = [_line(one, size.columns) for one in screen.history.top]
    cursor = (screen.cursor.y, screen.cursor.x)
    return ScreenText(scrolled, ScreenState(_display(screen), cursor, usual))


def _drawn(found: re.Match[str]) -> str:
    """Return a sequence that changes where what stands, and nothing for any other: pyte fails at
    some that programs use, such as vim's question for a mode, and prints parts of others."""
    if found["escape"] in _ESCAPES:
        return found[0]
    given = _DRAWING.get(found["final"] or "")
    is_drawing = given is not None and not found["between"] and given.fullmatch(found["given"])
    return found[0] if is_drawing else ""


def _draw(screen: Any, stream: Any, lines: list[str]) -> None:
    """Show these lines and nothing else; the cursor stands below the last one."""
    screen.erase_in_display(2)
    screen.cursor_position(1, 1)
    kept = [line[: screen.columns] for line in lines[-screen.lines :]]
    below = "\r\n" if 0 < len(kept) < screen.lines else ""
    stream.feed("\r\n".join(kept) + below)


def _display(screen: Any) -> list[str]:
    # not its own `display`, which fails where half of a wide character was overwritten
    shown = [_line(screen.buffer[row], screen.columns) for row in range(screen.lines)]
    while shown and not shown[-1]:
        shown.pop()
    return shown


def _line(cells: Any, columns: int) -> str:
    """Return a line, whose cells are held by column."""
    return "".join(cells[at].data for at in range(columns)).rstrip()
