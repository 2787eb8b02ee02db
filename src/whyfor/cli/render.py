"""Format values for a terminal: clean text, short numbers, ages, the agents' marks."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import click

from whyfor.model.progress import Announce
from whyfor.model.text import clean as clean
from whyfor.model.text import count as count
from whyfor.model.text import label as label
from whyfor.model.text import one_line as one_line
from whyfor.model.text import plural as plural
from whyfor.terminal import (
    is_coloured,
    options,
    output_width,
    raw_stream,
    say,
    write_json,
)

# rich takes longer to import than most commands take to run; --json never needs it
if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_BAR = "▌ "  # before what a person said
_LEAST_SAID = 20  # characters of a line of it


def console(*, stderr: bool = False, moving: bool = False) -> Console:
    """Return a console as wide as the terminal, in a pager if the command has long output; `moving`
    if the cursor is moved on it."""
    from whyfor.cli.console import CleanConsole
    from whyfor.cli.pager import start_pager

    if not stderr:
        start_pager()
    coloured = is_coloured(stderr=stderr)
    return CleanConsole(
        file=raw_stream(stderr=stderr),
        width=output_width(stderr=stderr),
        force_terminal=coloured or moving,
        color_system="auto" if coloured else None,
        no_color=False,
        highlight=False,
        emoji=False,
        markup=False,
    )


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


def ago_text(millis: int | None) -> str:
    """The same in a sentence: 6 min ago, yesterday, 2026-07-05."""
    told = age_text(millis)
    return f"{told} ago" if told.endswith((" s", " min", " h")) else told


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


class HasSessionId(Protocol):
    """A session, or what names one."""

    @property
    def agent(self) -> str: ...

    @property
    def session_id(self) -> str: ...


def printed_ids(sessions: Iterable[HasSessionId]) -> dict[str, str]:
    """Map agent:id to what is printed of an id, which every command takes for this session."""
    from whyfor import config
    from whyfor.service.sessions import short_ids

    return short_ids(config.load(), [(each.agent, each.session_id) for each in sessions])


def home_text(path: str) -> str:
    """Return a path of this machine as people write it: below ~, if it is."""
    from whyfor import config

    home = str(config.load().user_home)
    return "~" + path[len(home) :] if path.startswith(home + "/") else path


def project_text(identity: str | None) -> str:
    """Return a project's short name on one line: the last part of its identity, or its directory's
    name."""
    if not identity:
        return "–"
    if identity.startswith("git:"):
        return label(_named(identity) or "unnamed repository")
    last = re.split(r"[/\\]", identity.rstrip("/\\"))[-1].removesuffix(".git")
    return label(last or identity)


def barred_lines(out: Console, text: str, style: str) -> Iterator[Text]:
    """Yield the lines of what a person said, as wide as the terminal, each with the bar of a
    prompt."""
    from rich.text import Text

    room = max(_LEAST_SAID, out.width - len(_BAR))
    for line in clean(text).splitlines():
        for piece in Text(line, style=style).wrap(out, room) or [Text("")]:
            yield Text.assemble((_BAR, "bold #6f7ee0"), piece)


def projects_apart(identities: Iterable[str | None]) -> dict[str | None, str]:
    """Return the short names of projects that are listed together; those of the same name with
    what they are in, as far as it tells them apart."""
    from whyfor.model.paths import parts_of, telling_end

    names = {identity: project_text(identity) for identity in identities}
    often = Counter(names.values())
    alike = {
        identity: parts_of(identity.removesuffix(".git"))
        for identity, name in names.items()
        if identity and often[name] > 1 and not identity.startswith("git:")
    }
    for identity, parts in alike.items():
        names[identity] = label("/".join(telling_end(parts, list(alike.values()))))
    return names


def _named(identity: str) -> str | None:
    from whyfor import config
    from whyfor.live.project_names import ProjectNames

    context = click.get_current_context(silent=True)
    if context is None:
        return None
    names: ProjectNames = context.meta.setdefault(__name__, ProjectNames(config.load()))
    return names(identity)


@contextmanager
def progress_bar(word: str) -> Iterator[Announce | None]:
    """Show a progress bar on stderr, only if it is a terminal."""
    with progress_bars(word) as (announce,):
        yield announce


@contextmanager
def progress_bars(*words: str) -> Iterator[list[Announce | None]]:
    """Show one progress bar after the other."""
    if not sys.stderr.isatty() or options.quiet:
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
    out = console(stderr=True, moving=True)
    with Progress(*columns, console=out, transient=True) as bar:

        def announcer(word: str) -> Announce:
            def announce(total: int) -> Callable[[int], None]:
                task = bar.add_task(word, total=total)
                return lambda passed: bar.advance(task, passed)

            return announce

        yield [announcer(word) for word in words]


def print_list(out: Console, head: str, items: list[str]) -> None:
    """Print items after a heading; a line ends between two of them, never inside one."""
    line = head
    for number, item in enumerate(items):
        piece = f" {item}," if number + 1 < len(items) else f" {item}"
        if len(line + piece) > out.width:
            out.print(line, style="dim")
            line = " " * len(head)
        line += piece
    out.print(line, style="dim")


def print_note(*lines: str) -> None:
    """Print a message for people on stderr, unless they asked for quiet."""
    if options.quiet:
        return
    sys.stdout.flush()  # what it is about comes first, also where both go to one file
    for line in lines:
        say(line, stderr=True, dim=True)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead."
)
