"""whyfor agents"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.render import age_text, console, json_option, print_json
from whyfor.cli.tables import FittedTable
from whyfor.model.text import label
from whyfor.model.wire.reports import wire_report
from whyfor.service.agents import AgentState, agent_colour, agent_states


@click.command()
@click.option("--here", is_flag=True, help="Only agents that are found on this machine.")
@json_option
def command(here: bool, as_json: bool) -> None:
    """List the agents that Whyfor can read, those found here first.

    For each: the version of its last session, how many sessions are kept, the age of its last
    record, and what one may miss, because the agent does not write it down or has no place for it.

    \b
    Examples:
      whyfor agents
      whyfor agents --here
      whyfor agents --json
    """
    found = [one for one in agent_states(config.load()) if one.found or not here]
    if as_json:
        print_json([wire_report(one, missing=one.missing) for one in found])
        return
    _table(found)


def _table(found: list[AgentState]) -> None:
    from rich.text import Text

    rows = FittedTable(
        *("agent", "name", "here", "version", "sessions", "last", "missing"),
        title="missing",
        right=("sessions",),
        fold=("version", "sessions"),
        wrap=True,
    )
    for one in found:
        rows.add(
            Text(one.title, style=agent_colour(one.agent)),
            Text(one.agent),
            Text("yes" if one.found else "–"),
            Text(label(one.version or "–")),
            f"{one.sessions:,}" if one.sessions else "–",
            age_text(one.last_record_at) if one.last_record_at else "–",
            Text(", ".join(one.missing) or "–", style="" if one.found else "dim"),
        )
    out = console()
    rows.print(out)
    if not any(one.found for one in found):
        out.print("No agent was found here. See what it would look like: whyfor demo", style="dim")
