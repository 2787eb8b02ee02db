"""whyfor stats"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.render import console, count, json_option, print_json, project_text, table
from whyfor.model.query import SessionFilter
from whyfor.model.stats import StatsRow
from whyfor.model.text import plural
from whyfor.service.agents import AGENT_CHOICE, agent_colour
from whyfor.service.stats import Stats, stats

_BAR = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@click.command()
@click.option(
    "--project", "only_project", help="A directory, a remote URL, a name, or part of one."
)
@click.option("--agent", help=f"{AGENT_CHOICE}.")
@click.option("--since", metavar="D", help="2026-05-31, yesterday, 12h, 3d, 2w …")
@click.option("--until", metavar="D", help="As --since; a date without a time means its end.")
@json_option
def command(
    only_project: str | None, agent: str | None, since: str | None, until: str | None, as_json: bool
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
        config.load(), SessionFilter(project=only_project, agent=agent, since=since, until=until)
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
    out.print(
        f"tokens: in {count(tokens.input)}, cache read {count(tokens.cache_read)}, cache written "
        f"{count(tokens.cache_write)}, out {count(tokens.output)}, reasoning "
        f"{count(tokens.reasoning)}",
        style="dim",
    )
    for title, rows in (
        ("agent", found.by_agent),
        ("project", found.by_project),
        ("model", found.by_model),
    ):
        _chart(title, rows[:12], len(rows))
    _chart("day", found.by_day[-30:], len(found.by_day))


def _chart(title: str, rows: list[StatsRow], total: int) -> None:
    from rich.text import Text

    if not rows:
        return
    out = console()
    out.print()
    numbers = ("sessions", "turns", "in", "cache read", "out")
    lines = table(title, "", *numbers, right=numbers)
    lines.columns[0].max_width = 40
    by_day = title == "day"
    value = [row.turns if by_day else row.tokens.output for row in rows]
    most = max((number or 0 for number in value), default=0)
    for row, number in zip(rows, value, strict=True):
        lines.add_row(
            project_text(row.name) if title == "project" else row.name,
            Text(_bar(number, most), style=agent_colour(row.name) or "#6f7ee0"),
            f"{row.sessions:,}",
            "" if row.turns is None else f"{row.turns:,}",
            count(row.tokens.input),
            count(row.tokens.cache_read),
            count(row.tokens.output),
        )
    out.print(lines)
    _caption(len(rows), total, by_day=by_day)


def _caption(shown: int, total: int, *, by_day: bool) -> None:
    what = "turns" if by_day else "output tokens"
    more = ""
    if total > shown:
        more = f", the {'last' if by_day else 'first'} {shown} of {total}"
    console().print(f"bars: {what}{more}", style="dim")


def _bar(number: int | None, most: int) -> str:
    if number is None:
        return "?"
    eighths = round(_BAR * 8 * number / most) if most else 0
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
