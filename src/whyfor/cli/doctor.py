"""whyfor doctor"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.render import (
    age_text,
    agent,
    console,
    fitted,
    json_option,
    print_json,
    size_text,
    table,
)
from whyfor.model.text import label, plural
from whyfor.model.wire.reports import wire_report
from whyfor.service.doctor import AgentHealth, DoctorReport, examine

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.option("--deep", is_flag=True, help="Read every segment back and check its digest.")
@json_option
def command(deep: bool, as_json: bool) -> None:
    """Check that everything the agents wrote is read, everything stored is still there, and every
    hook works.

    Each hook that init installed is run with a probe, and the probe must arrive. Exit code 1 when
    something was dropped: a file that cannot be read, a segment that is missing, a damaged
    database, a hook that does not work. Lines that could not be parsed are kept and counted; they
    do not make it fail.
    """
    found = examine(config.load(), Path.cwd(), deep=deep)
    if as_json:
        print_json(wire_report(found, ok=found.ok))
    else:
        _render(found)
    if not found.ok:
        raise click.exceptions.Exit(1)


def _render(found: DoctorReport) -> None:
    from rich.text import Text

    out = console()
    _render_agents(found.agents, out)
    if found.hooks:
        out.print()
        _render_hooks(found, out)
    store = found.store
    out.print()
    out.print(
        f"store  {found.home}: database {size_text(store.database_bytes)}, segments "
        f"{size_text(store.segment_bytes)}, "
        f"journal {size_text(store.journal_bytes)}, SQLite {store.sqlite}"
    )
    gone = sum(item.gone for item in found.agents)
    if gone:
        transcripts = plural(gone, "transcript")
        out.print(f"       {transcripts} the agents have deleted since; kept here", style="dim")
    out.print()
    for problem in found.problems:
        sign = ("✕ ", "red") if problem.dropped else ("! ", "yellow")
        out.print(Text.assemble(sign, label(problem.what)))
        out.print(f"  {problem.next}", style="dim")
    if found.ok:
        out.print("✓ Nothing was dropped.", style="green")


def _render_agents(agents: list[AgentHealth], out: Console) -> None:
    from rich.text import Text

    rows = table(
        *("", "agent", "last record", "files", "records", "size", "unparsed", "folder"),
        right=("files", "records", "size", "unparsed"),
    )
    for item in agents:
        never = "never" if item.found else "–"
        folder = Text(item.folders[0])
        if not item.found:
            folder = Text(f"{item.folders[0]}  (not there)", style="dim")
        rows.add_row(
            agent(item.agent),
            item.title,
            age_text(item.last_record_at) if item.last_record_at else never,
            f"{item.files:,}" if item.found else "–",
            f"{item.records:,}" if item.records else "–",
            size_text(item.bytes) if item.files else "–",
            str(sum(item.unparsed.values()) or "–"),
            folder,
        )
    out.print(fitted(rows, 7, out))


def _render_hooks(found: DoctorReport, out: Console) -> None:
    from rich.text import Text

    rows = table("", "hooks", "fired", "arrived", "file", right=("fired", "arrived"))
    for item in found.hooks:
        style = "red" if item.dropped else "yellow"
        if item.state == "ok":
            style = ""
        fired = len(item.arrived) + len(item.lost)
        rows.add_row(
            agent(item.name) if item.kind == "agent" else Text(item.name),
            Text(item.state, style=style),
            str(fired or "–"),
            str(len(item.arrived)) if fired else "–",
            Text(item.file),
        )
    out.print(fitted(rows, 4, out))
