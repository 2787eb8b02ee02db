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
        stream.feed(written[at : found.start()])
        at = found.end()
        if found[1] == "h" and usual is None:
            usual = _display(screen)
            _draw(screen, stream, [])
        elif found[1] == "l" and usual is not None:
            _draw(screen, stream, usual)
            usual = None
    stream.feed(written[at:])
    scrolled = [_line(one, size.columns) for one in screen.history.top]
    cursor = (screen.cursor.y, screen.cursor.x)
    return ScreenText(scrolled, ScreenState(_display(screen), cursor, usual))


def _draw(screen: Any, stream: Any, lines: list[str]) -> None:
    """Show these lines and nothing else; the cursor stands below the last one."""
    screen.erase_in_display(2)
    screen.cursor_position(1, 1)
    kept = [line[: screen.columns] for line in lines[-screen.lines :]]
    below = "\r\n" if 0 < len(kept) < screen.lines else ""
    stream.feed("\r\n".join(kept) + below)


def _display(screen: Any) -> list[str]:
    shown = [line.rstrip() for line in screen.display]
    while shown and not shown[-1]:
        shown.pop()
    return shown


def _line(cells: Any, columns: int) -> str:
    """Return a line of the history, which holds its cells by column."""
    return "".join(cells[at].data for at in range(columns)).rstrip()
