"""whyfor doctor"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.extras import install_command
from whyfor.cli.render import (
    age_text,
    console,
    home_text,
    json_option,
    print_json,
    print_list,
    size_text,
)
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.model.text import label, plural
from whyfor.model.wire.reports import wire_report
from whyfor.service.doctor import AgentHealth, DoctorReport, VectorIndexState, examine

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.option(
    "--deep",
    is_flag=True,
    help="Read every segment back and check its digest; check the search index too.",
)
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
    out.print(f"store  {home_text(found.home)}")
    sizes = {
        "database": store.database_bytes,
        "segments": store.segment_bytes,
        "journal": store.journal_bytes,
    }
    facts = [f"{name} {size_text(number)}" for name, number in sizes.items()]
    print_list(out, "      ", [*facts, f"SQLite {store.sqlite}"])
    if found.mcp.called:
        tools = plural(len(found.mcp.tools), "tool")
        out.print(f"mcp    {tools} for agents; {found.mcp.called} was called and answered")
    if found.semantic is not None:
        _render_semantic(found.semantic, out)
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


def _render_semantic(state: VectorIndexState, out: Console) -> None:
    """Say once what search by meaning has, or what it would add."""
    if not state.installed:
        lines = ["off. With it, search finds what you mean, in other words:"]
        lines.append(install_command("semantic"))
    elif not state.ready:
        lines = ["installed, but no session is indexed: whyfor memory index"]
    else:
        size = size_text(state.vector_bytes + state.model_bytes)
        done = f"{plural(state.sessions, 'session')}, {plural(state.vectors, 'turn')}, {size}"
        lines = [f"{done}; {state.waiting:,} waiting" if state.waiting else done]
    out.print(f"search by meaning: {lines[0]}")
    for line in lines[1:]:
        out.print(f"       {line}", style="dim")


def _render_agents(agents: list[AgentHealth], out: Console) -> None:
    from rich.text import Text

    rows = FittedTable(
        *("agent", "last record", "files", "records", "size", "unparsed", "folder"),
        title="folder",
        right=("files", "records", "size", "unparsed"),
        fold=("unparsed", "size", "files", "last record", "records"),
        wrap=True,
    )
    for item in agents:
        never = "never" if item.found else "–"
        folder = Text(home_text(item.folders[0]))
        if not item.found:
            folder = Text(f"{home_text(item.folders[0])}  (not there)", style="dim")
        rows.add(
            AgentCell(item.agent),
            age_text(item.last_record_at) if item.last_record_at else never,
            f"{item.files:,}" if item.found else "–",
            f"{item.records:,}" if item.records else "–",
            size_text(item.bytes) if item.files else "–",
            f"{sum(item.unparsed.values()):,}" if item.unparsed else "–",
            folder,
        )
    rows.print(out)


def _render_hooks(found: DoctorReport, out: Console) -> None:
    from rich.text import Text

    rows = FittedTable(
        *("of", "hooks", "fired", "arrived", "file"),
        title="file",
        right=("fired", "arrived"),
        fold=("arrived", "fired"),
        wrap=True,
    )
    for item in found.hooks:
        style = "red" if item.dropped else "yellow"
        if item.state == "ok":
            style = ""
        fired = len(item.arrived) + len(item.lost)
        rows.add(
            AgentCell(item.name) if item.kind == "agent" else Text(item.name),
            Text(item.state, style=style),
            str(fired or "–"),
            str(len(item.arrived)) if fired else "–",
            Text(home_text(item.file)),
        )
    rows.print(out)
