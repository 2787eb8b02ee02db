"""whyfor stats"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.filters import agent_option, project_option, since_option, until_option
from whyfor.cli.render import (
    console,
    count,
    json_option,
    print_json,
    print_list,
    project_text,
)
from whyfor.cli.tables import FittedTable
from whyfor.model.query import SessionFilter
from whyfor.model.stats import StatsRow
from whyfor.model.text import plural
from whyfor.service.agents import agent_colour, agent_title
from whyfor.service.stats import Stats, stats

_BAR = 24
_LEAST_BAR = 6
_GAP = 2
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@click.command()
@project_option
@agent_option
@since_option
@until_option
@json_option
def command(
    project: str | None, agent: str | None, since: str | None, until: str | None, as_json: bool
) -> None:
    """Count sessions, turns and tokens by agent, project, day and model.

    Each response counts once, even if it was recorded several times or copied into a fork. "?" is
    unknown: the agent did not record it.

    \b
    Examples:
      whyfor stats --since 4w
      whyfor stats --project . --json
    """
    found = stats(
        config.load(), SessionFilter(project=project, agent=agent, since=since, until=until)
    )
    if as_json:
        print_json(found)
    else:
        _render(found)


def _render(found: Stats) -> None:
    out = console()
    tokens = found.tokens
    out.print(
        f"{plural(found.sessions, 'session')}, {plural(found.subagents, 'subagent')}, "
        f"{plural(found.turns, 'turn')}"
    )
    numbers = {
        "in": tokens.input,
        "cache read": tokens.cache_read,
        "cache written": tokens.cache_write,
        "out": tokens.output,
        "reasoning": tokens.reasoning,
    }
    print_list(out, "tokens:", [f"{name} {count(number)}" for name, number in numbers.items()])
    for title, rows in (
        ("agent", found.by_agent),
        ("project", found.by_project),
        ("model", found.by_model),
    ):
        _chart(title, rows[:12], len(rows))
    _chart("day", found.by_day[-30:], len(found.by_day))


def _chart(title: str, rows: list[StatsRow], total: int) -> None:
    if not rows:
        return
    out = console()
    out.print()
    by_day = title == "day"
    plain = _chart_table(title, rows, 0)
    room = out.width - plain.width() - _GAP
    bars = min(_BAR, room) if room >= _LEAST_BAR else 0
    _chart_table(title, rows, bars).print(out)
    _caption(len(rows), total, by_day=by_day, bars=bool(bars))


def _chart_table(title: str, rows: list[StatsRow], bars: int) -> FittedTable:
    """Return the table with bars of this width; without them if it is 0."""
    from rich.text import Text

    numbers = ("sessions", "turns", "in", "cache read", "out")
    headings = (title, "", *numbers) if bars else (title, *numbers)
    fold = ("cache read", "in", "turns", "sessions")
    table = FittedTable(*headings, title=title, right=numbers, fold=fold, wrap=True)
    values = [row.turns if title == "day" else row.tokens.output for row in rows]
    most = max((value or 0 for value in values), default=0)
    for row, value in zip(rows, values, strict=True):
        bar = Text(_bar(value, most, bars), style=agent_colour(row.name) or "#6f7ee0")
        table.add(
            _name(title, row.name),
            *([bar] if bars else []),
            f"{row.sessions:,}",
            "" if row.turns is None else f"{row.turns:,}",
            count(row.tokens.input),
            count(row.tokens.cache_read),
            count(row.tokens.output),
        )
    return table


def _name(title: str, name: str) -> str:
    if title == "agent":
        return agent_title(name)
    return project_text(name) if title == "project" else name


def _caption(shown: int, total: int, *, by_day: bool, bars: bool) -> None:
    said = []
    if bars:
        said.append(f"bars: {'turns' if by_day else 'output tokens'}")
    if total > shown:
        said.append(f"the {'last' if by_day else 'first'} {shown} of {total}")
    if said:
        console().print(", ".join(said), style="dim")


def _bar(number: int | None, most: int, width: int) -> str:
    if number is None:
        return "?"
    eighths = round(width * 8 * number / most) if most else 0
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
