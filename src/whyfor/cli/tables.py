"""Tables that fit the terminal: a number, an id or the only name of a row is never cut.

Where there is room, agents are written out; else they are two letters, explained below the table.
Where that is still too wide, the title gets narrower, and then columns are left out or move below
the title.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from whyfor.cli.render import agent
from whyfor.service.agents import agent_colour, agent_mark, agent_title

# rich takes longer to import than most commands take to run; --json never needs it
if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_GAP = 2  # between two columns
_TITLE = 40  # a title of this length is worth more than agents' names in full
_SHORT_TITLE = 20
_NAMES = ("", "id", "commit")  # what a row is called by, and marks: they stay where they are
_BETWEEN = " · "  # two facts
_FACTS = 32  # the least room for what moved below the title
_LEAST = 8  # of a title, on a terminal that is too narrow for everything else


class AgentCell:
    """The agents of a row: their names, or their marks."""

    def __init__(self, *names: str) -> None:
        self.names = tuple(dict.fromkeys(names))

    def text(self, *, full: bool) -> Text:
        from rich.text import Text

        if not full:
            return Text(" ").join(agent(name) for name in self.names)
        styled = [Text(agent_title(name), style=agent_colour(name)) for name in self.names]
        return Text(", ").join(styled)


class _Layout(NamedTuple):
    headings: list[str]
    rows: list[list[Text]]
    widths: list[int]

    def used(self, at: int) -> bool:
        """Whether a column says anything."""
        return any(row[at].plain for row in self.rows)


class FittedTable:
    """Rows under headings; one column has the title of its row and takes what the others leave."""

    def __init__(
        self,
        *headings: str,
        title: str,
        right: Sequence[str] = (),
        fold: Sequence[str] = (),
        drop: Sequence[str] = (),
        wrap: bool = False,
    ) -> None:
        """As the terminal gets narrower, columns in `drop` are left out, then those in `fold` move
        below the title, each in this order. Where even that is too wide, other columns do so from
        the last on, rather than that one is cut. A title that is too long is cut, or continued on
        the next line with `wrap`."""
        self.headings = headings
        self.title = headings.index(title)
        self.right = right
        self.drop = [headings.index(name) for name in drop]
        self.fold = [headings.index(name) for name in fold]
        self.wrap = wrap
        self.rows: list[list[Text | AgentCell]] = []

    def add(self, *cells: Text | str | AgentCell) -> None:
        """Add a row; its cells are shown on one line each, and without what would act."""
        from rich.text import Text

        from whyfor.cli.console import clean_text

        assert len(cells) == len(self.headings)
        row: list[Text | AgentCell] = []
        for cell in cells:
            if isinstance(cell, AgentCell):
                row.append(cell)
            else:
                text = Text(cell) if isinstance(cell, str) else cell
                row.append(clean_text(text, one_line=True))
        self.rows.append(row)

    def width(self) -> int:
        """Return the width at which agents are marks and nothing is cut or folded."""
        widths = self._layout(full=False).widths
        return _total(widths, range(len(widths)))

    def print(self, out: Console) -> None:
        layout = self._layout(full=True)
        full = self._needed(layout.widths, range(len(self.headings)), _TITLE) <= out.width
        if not full:
            layout = self._layout(full=False)
        widths, shown = layout.widths, self._shown(layout, out.width)
        others = _total(widths, shown) - widths[self.title]
        widths[self.title] = min(widths[self.title], max(_LEAST, out.width - others))
        self._print(out, layout, shown)
        dropped = [self.headings[at] for at in self.drop if at not in shown and layout.used(at)]
        notes = [] if full else self._legend()
        if dropped:
            notes.append(f"no room for: {', '.join(dropped)}")
        if notes:
            out.print(" · ".join(notes), style="dim")

    def _layout(self, *, full: bool) -> _Layout:
        """Return the cells as they are shown, and the widths they need."""
        from rich.cells import cell_len

        from whyfor.cli.console import clean_text

        headings = list(self.headings)
        rows = []
        for row in self.rows:
            cells = []
            for at, cell in enumerate(row):
                if isinstance(cell, AgentCell):
                    headings[at] = self.headings[at] if full else ""
                    cells.append(clean_text(cell.text(full=full), one_line=True))
                else:
                    cells.append(cell)
            rows.append(cells)
        widths = [cell_len(heading) for heading in headings]
        for cells in rows:
            widths = [max(width, cell.cell_len) for width, cell in zip(widths, cells, strict=True)]
        return _Layout(headings, rows, widths)

    def _needed(self, widths: list[int], shown: Sequence[int], title: int) -> int:
        """Return the width with a title of at least this length, if it has so many."""
        wanted = widths[self.title]
        return _total(widths, shown) - wanted + min(wanted, title)

    def _shown(self, layout: _Layout, width: int) -> list[int]:
        """Return the columns that say anything and have room."""
        columns = range(len(layout.widths))
        shown = [at for at in columns if at == self.title or layout.used(at)]
        for column in (*self.drop, *self.fold):
            if self._needed(layout.widths, shown, _SHORT_TITLE) <= width:
                break
            if column in shown:
                shown.remove(column)
        for column in reversed(shown):
            if self._needed(layout.widths, shown, _LEAST) <= width:
                break
            if column != self.title and self.headings[column] not in _NAMES:
                shown = [at for at in shown if at != column]
        return shown

    def _print(self, out: Console, layout: _Layout, shown: list[int]) -> None:
        elsewhere = {*shown, *self.drop, self.title}
        others = [at for at in range(len(self.headings)) if at not in elsewhere]
        folded = [at for at in others if layout.used(at)]
        self._print_lines(out, layout, shown, folded)

    def _print_lines(
        self, out: Console, layout: _Layout, shown: list[int], folded: list[int]
    ) -> None:
        """Print rows line by line. A table of rich's would measure and wrap every cell once more:
        with thousands of rows, most of the time a command takes."""
        from rich.text import Text

        headings = [Text(heading, style="bold") for heading in layout.headings]
        lines = [self._line(headings, layout.widths, shown)]
        below = [self._facts(row, folded) for row in layout.rows]
        indent = self._fact_indent(out.width, below, self._indent(layout.widths, shown))
        for row, facts in zip(layout.rows, below, strict=True):
            lines += self._row_lines(out, row, layout.widths, shown)
            lines += _fact_lines(out, facts, indent)
        out.print(Text("\n").join(lines), no_wrap=True, overflow="ignore", crop=False)

    def _row_lines(
        self, out: Console, row: list[Text], widths: list[int], shown: list[int]
    ) -> list[Text]:
        """Return a row: one line, or more where its title goes on in the next."""
        from rich.text import Text

        title, width = row[self.title], widths[self.title]
        if not self.wrap or title.cell_len <= width:
            return [self._line(row, widths, shown)]
        parts = list(title.wrap(out, width, overflow="fold"))
        first = [parts[0] if at == self.title else cell for at, cell in enumerate(row)]
        indent = " " * self._indent(widths, shown)
        more = [Text(indent).append_text(part) for part in parts[1:]]
        return [self._line(first, widths, shown), *more]

    def _facts(self, row: list[Text], folded: list[int]) -> list[Text]:
        """Return what a row says in columns that moved below the title."""
        from rich.text import Text

        return [
            Text(f"{self.headings[at]} {row[at].plain}", style="dim")
            for at in sorted(folded)
            if row[at].plain not in ("", "–")
        ]

    def _fact_indent(self, width: int, below: list[list[Text]], title: int) -> int:
        """Return where facts begin: below the title, or left of it if they then need one line."""
        longest = max((_in_a_line(facts) for facts in below), default=0)
        if longest > width - _GAP:
            return max(0, min(title, width - _FACTS))
        return min(title, width - longest)

    def _indent(self, widths: list[int], shown: list[int]) -> int:
        """Return where the title begins."""
        before = shown[: shown.index(self.title)]
        return _total(widths, before) + _GAP if before else 0

    def _line(self, row: list[Text], widths: list[int], shown: list[int]) -> Text:
        from rich.text import Text

        line = Text()
        for at in shown:
            cell = row[at]
            if cell.cell_len > widths[at]:
                cell = cell.copy()
                cell.truncate(widths[at], overflow="ellipsis")
            blanks = " " * (widths[at] - cell.cell_len)
            if line:
                line.append(" " * _GAP)
            if self.headings[at] in self.right:
                line.append(blanks).append_text(cell)
            else:
                line.append_text(cell).append(blanks)
        return line

    def _legend(self) -> list[str]:
        names: dict[str, None] = {}
        for row in self.rows:
            for cell in row:
                if isinstance(cell, AgentCell):
                    names |= dict.fromkeys(cell.names)
        return [f"{agent_mark(name)} {agent_title(name)}" for name in names]


def _in_a_line(facts: list[Text]) -> int:
    """Return the width of facts beside each other."""
    return sum(fact.cell_len for fact in facts) + len(_BETWEEN) * max(0, len(facts) - 1)


def _fact_lines(out: Console, facts: list[Text], indent: int) -> list[Text]:
    """Return facts in lines up to the edge of the terminal, as many on a line as it has room
    for."""
    from rich.text import Text

    room = out.width - indent
    lines: list[Text] = []
    for fact in facts:
        if lines and _in_a_line([lines[-1], fact]) <= room:
            lines[-1].append(_BETWEEN).append_text(fact)
        else:
            lines += fact.wrap(out, room, overflow="fold")
    return [Text(" " * indent).append_text(line) for line in lines]


def _total(widths: list[int], shown: Sequence[int]) -> int:
    return sum(widths[at] for at in shown) + _GAP * (len(shown) - 1)
