"""whyfor stats"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.filters import (
    agent_option,
    project_option,
    since_option,
    task_option,
    until_option,
)
from whyfor.cli.render import (
    console,
    count,
    json_option,
    print_json,
    print_list,
    print_note,
    projects_apart,
)
from whyfor.cli.tables import FittedTable
from whyfor.model.cost import LABEL, cost_text, dollars, short_cost
from whyfor.model.query import SessionFilter
from whyfor.model.stats import CostReport, CostSum, Stats, StatsRow
from whyfor.model.text import one_line, plural
from whyfor.model.wire.stats import wire_cost_report, wire_stats
from whyfor.service.agents import agent_colour, agent_title
from whyfor.service.stats import cost_report, stats

_BAR = 24
_LEAST_BAR = 6
_GAP = 2
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@click.command()
@project_option
@agent_option
@since_option
@until_option
@task_option
@click.option(
    "--cost", "priced", is_flag=True, help="What the tokens cost at list price (API price)."
)
@json_option
def command(
    project: str | None,
    agent: str | None,
    since: str | None,
    until: str | None,
    task: str | None,
    priced: bool,
    as_json: bool,
) -> None:
    """Count sessions, turns and tokens by agent, project, day and model.

    Each response counts once, even if it was recorded several times or copied into a fork. "?" is
    unknown: the agent did not record it.

    \b
    Examples:
      whyfor stats --since 4w
      whyfor stats --project . --json
      whyfor stats --cost --since 4w
    """
    where = SessionFilter(project=project, agent=agent, since=since, until=until, task=task)
    if priced:
        _costs(cost_report(config.load(), where), as_json=as_json)
        return
    found = stats(config.load(), where)
    if as_json:
        print_json(wire_stats(found))
    else:
        _render(found)


def _costs(found: CostReport, *, as_json: bool) -> None:
    if as_json:
        print_json(wire_cost_report(found))
        return
    out = console()
    whole = found.whole
    out.print(f"{LABEL}: {cost_text(whole.cost)}", style="bold")
    out.print(
        f"What the tokens of {plural(whole.responses, 'response')} cost at list price; not what "
        "you paid.",
        style="dim",
    )
    if whole.saved is not None and whole.cached is not None:
        share = f"{whole.cached:.0%} of the input came from it"
        out.print(f"The cache saved {dollars(whole.saved)}: {share}.")
    if found.today.budget is not None:
        spent = f"{cost_text(found.today.cost)} of {dollars(found.today.budget)}"
        is_over = (found.today.share or 0) > 1
        out.print(f"Today: {spent}, your budget for a day.", style="yellow" if is_over else "")
    for line in _missing(found):
        out.print(line)
    for title, rows in (
        ("agent", found.by_agent),
        ("project", found.by_project),
        ("model", found.by_model),
    ):
        _cost_table(title, rows[:12], len(rows))
    _cost_table("day", found.by_day[-30:], len(found.by_day))
    out.print()
    prices = found.prices
    out.print(f"prices: {prices.source}, the last change is of {prices.date}", style="dim")
    if prices.problem:
        print_note(one_line(prices.problem))


def _missing(found: CostReport) -> list[str]:
    """Say what is not in the sum."""
    said = []
    if found.whole.cost.unpriced:
        what = plural(found.whole.cost.unpriced, "response")
        said.append(f"Not in it, or not wholly: {what} without a price or without token counts.")
    names = [f"{one_line(one.name)} ({one.responses:,})" for one in found.unpriced[:5]]
    if names:
        said.append(f"No price is known for: {', '.join(names)}")
    if found.unknown_turns:
        said.append(f"Tokens unknown: {plural(found.unknown_turns, 'turn')}, not in it.")
    return said


def _cost_table(title: str, rows: list[CostSum], total: int) -> None:
    if not rows:
        return
    out = console()
    out.print()
    plain = _cost_rows(title, rows, 0)
    room = out.width - plain.width() - _GAP
    bars = min(_BAR, room) if room >= _LEAST_BAR else 0
    _cost_rows(title, rows, bars).print(out)
    if total > len(rows):
        which = "last" if title == "day" else "first"
        out.print(f"the {which} {len(rows)} of {total}", style="dim")


def _cost_rows(title: str, rows: list[CostSum], bars: int) -> FittedTable:
    """Return the table with bars of this width; without them if it is 0."""
    from rich.text import Text

    numbers = ("responses", "tokens", "cached", "saved", "cost")
    headings = (title, "", *numbers) if bars else (title, *numbers)
    fold = ("cached", "saved", "responses", "tokens")
    table = FittedTable(*headings, title=title, right=numbers, fold=fold, wrap=True)
    most = max((row.cost.usd or 0.0 for row in rows), default=0.0)
    names = _names(title, [row.name for row in rows])
    for row in rows:
        colour = agent_colour(row.name) or "#6f7ee0"
        bar = Text(_bar(row.cost.usd, most, bars), style=colour)
        table.add(
            names[row.name],
            *([bar] if bars else []),
            f"{row.responses:,}",
            count(row.tokens.total),
            "?" if row.cached is None else f"{row.cached:.0%}",
            "?" if row.saved is None else dollars(row.saved),
            short_cost(row.cost),
        )
    return table


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
    names = _names(title, [row.name for row in rows])
    for row, value in zip(rows, values, strict=True):
        bar = Text(_bar(value, most, bars), style=agent_colour(row.name) or "#6f7ee0")
        table.add(
            names[row.name],
            *([bar] if bars else []),
            f"{row.sessions:,}",
            "" if row.turns is None else f"{row.turns:,}",
            count(row.tokens.input),
            count(row.tokens.cache_read),
            count(row.tokens.output),
        )
    return table


def _names(title: str, names: list[str]) -> dict[str | None, str]:
    """Return what the rows of a table are called."""
    if title == "project":
        return projects_apart(names)
    return {name: agent_title(name) if title == "agent" else name for name in names}


def _caption(shown: int, total: int, *, by_day: bool, bars: bool) -> None:
    said = []
    if bars:
        said.append(f"bars: {'turns' if by_day else 'output tokens'}")
    if total > shown:
        said.append(f"the {'last' if by_day else 'first'} {shown} of {total}")
    if said:
        console().print(", ".join(said), style="dim")


def _bar(number: float | None, most: float, width: int) -> str:
    if number is None:
        return "?"
    eighths = round(width * 8 * number / most) if most else 0
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
