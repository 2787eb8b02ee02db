"""whyfor lines"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, print_note
from whyfor.cli.tables import FittedTable
from whyfor.model.line_counts import FileCounts, RangeCounts
from whyfor.model.text import one_line
from whyfor.model.wire.lines import wire_range_counts
from whyfor.service.agents import agent_title
from whyfor.service.lines import count_range_lines


@click.command()
@click.argument("revisions", metavar="RANGE|COMMIT", default="HEAD")
@json_option
def command(revisions: str, as_json: bool) -> None:
    """Count whose the lines are that a commit or a branch adds, file by file.

    The totals are those of git diff --numstat. A commit is compared with its first parent.

    \b
    Examples:
      whyfor lines
      whyfor lines main..HEAD
      whyfor lines main...topic --json
    """
    found = count_range_lines(config.load(), Path.cwd(), revisions)
    if as_json:
        print_json(wire_range_counts(found))
    else:
        _print(found)


def _print(found: RangeCounts) -> None:
    names = ("file", "added", "removed", "agent", "modified", "person?", "unknown")
    table = FittedTable(*names, title="file", right=names[1:], drop=("removed", "modified"))
    for file in found.files:
        table.add(*_row(file, one_line(file.path)))
    if len(found.files) > 1:
        table.add(*_row(found.total, "all"))
    if found.files:
        table.print(console())
    total = found.total
    if not total.added:
        print_note("No line is added.")
        return
    share = f"{100 * total.agent / total.added:.0f} %"
    agents = ", ".join(f"{agent_title(name)} {n:,}" for name, n in total.agents.items())
    by = f" ({agents})" if agents else ""
    print_note(
        f"{total.agent:,} of {total.added:,} added lines are by agents, {share}{by}. Unknown lines "
        "are counted for nobody."
    )


def _row(file: FileCounts, name: str) -> list[str]:
    if file.added is None:
        return [name, "binary", "", "", "", "", ""]
    numbers = (file.added, file.removed or 0, file.agent, file.modified, file.person, file.unknown)
    return [name, *(f"{number:,}" for number in numbers)]
