"""Format values for a terminal: clean text, short numbers, ages, the agents' marks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from whyfor.model.progress import Announce
from whyfor.model.text import clean as clean
from whyfor.model.text import count as count
from whyfor.model.text import label as label
from whyfor.model.text import one_line as one_line
from whyfor.model.text import plural as plural
from whyfor.terminal import raw_stream, say, write_json

# rich takes longer to import than most commands take to run; --json never needs it
if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


def console(*, stderr: bool = False) -> Console:
    """Return a console; full width when piped, so that nothing is cut that could be searched
    for."""
    from whyfor.cli.console import CleanConsole

    stream = raw_stream(stderr=stderr)
    width = None if stream.isatty() or os.environ.get("COLUMNS") else 200
    return CleanConsole(file=stream, highlight=False, width=width, emoji=False, markup=False)


def print_json(value: Any) -> None:
    """Print exactly one JSON document on stdout."""
    write_json(value)


def agent(name: str) -> Text:
    from rich.text import Text

    from whyfor.service.agents import agent_colour, agent_mark

    # a span: what is added has its own
    return Text.assemble((agent_mark(name), f"bold {agent_colour(name)}"))


def size_text(number: int) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return (
                f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
            )
        number /= 1000  # type: ignore[assignment]
    raise AssertionError


def age_text(millis: int | None, now: datetime | None = None) -> str:
    if millis is None:
        return "unknown"
    now = now or datetime.now().astimezone()
    when = datetime.fromtimestamp(millis / 1000).astimezone()
    seconds = (now - when).total_seconds()
    if 0 <= seconds < 60:
        return f"{seconds:.0f} s"
    if 0 <= seconds < 3600:
        return f"{seconds // 60:.0f} min"
    if when.date() == now.date():
        return f"{seconds // 3600:.0f} h"
    if (now.date() - when.date()).days == 1:
        return "yesterday"
    return when.strftime("%Y-%m-%d")


def moment_text(millis: int | None) -> str:
    return (
        datetime.fromtimestamp(millis / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
        if millis
        else "unknown"
    )


def duration_text(millis: int) -> str:
    seconds = max(0, millis // 1000)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def project_text(identity: str | None) -> str:
    """Return a project's short name on one line: the last part of its identity, or its directory's
    name."""
    if not identity:
        return "–"
    if identity.startswith("git:"):
        return label(_named(identity) or f"git:{identity[4:12]}")
    return label(re.split(r"[/\\]", identity.rstrip("/\\"))[-1] or identity)


def _named(identity: str) -> str | None:
    from whyfor import config
    from whyfor.live.project_names import ProjectNames

    context = click.get_current_context(silent=True)
    if context is None:
        return None
    names: ProjectNames = context.meta.setdefault(__name__, ProjectNames(config.load()))
    return names(identity)


def table(*columns: str, right: tuple[str, ...] = (), **options: Any) -> Table:
    from whyfor.cli.console import CleanTable

    made = CleanTable(box=None, pad_edge=False, header_style="bold", show_edge=False, **options)
    for name in columns:
        made.add_column(
            name, justify="right" if name in right else "left", no_wrap=True, overflow="ellipsis"
        )
    return made


@contextmanager
def progress_bar(word: str) -> Iterator[Announce | None]:
    """Show a progress bar on stderr, only if it is a terminal."""
    with progress_bars(word) as (announce,):
        yield announce


@contextmanager
def progress_bars(*words: str) -> Iterator[list[Announce | None]]:
    """Show one progress bar after the other."""
    if not sys.stderr.isatty():
        yield [None for _ in words]
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:

        def announcer(word: str) -> Announce:
            def announce(total: int) -> Callable[[int], None]:
                task = bar.add_task(word, total=total)
                return lambda passed: bar.advance(task, passed)

            return announce

        yield [announcer(word) for word in words]


def fitted(made: Table, flexible: int, out: Console) -> Table:
    """Give every column the width it needs, and the flexible one the rest: marks and ids are never
    cut for a title."""
    from rich.cells import cell_len

    needed = [
        max(cell_len(str(cell)) for cell in [column.header, *column.cells])
        for column in made.columns
    ]
    rest = sum(needed) - needed[flexible] + 2 * (len(needed) - 1)
    needed[flexible] = min(needed[flexible], max(20, out.width - rest))
    for column, width in zip(made.columns, needed, strict=True):
        column.width = width
    return made


def print_note(*lines: str) -> None:
    """Print a message for people on stderr."""
    sys.stdout.flush()  # what it is about comes first, also where both go to one file
    for line in lines:
        say(line, stderr=True, dim=True)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead."
)
