"""whyfor agents"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.render import age_text, console, json_option, print_json, print_note
from whyfor.cli.tables import FittedTable
from whyfor.model.text import label, plural
from whyfor.model.wire.reports import wire_report
from whyfor.service.agent_states import AgentState, agent_states
from whyfor.service.agents import agent_colour

if TYPE_CHECKING:
    from whyfor.service.agent_definitions import TriedFile

_PROMPTS_SHOWN = 3


@click.group(invoke_without_command=True)
@click.option("--here", is_flag=True, help="Only agents that are found on this machine.")
@json_option
@click.pass_context
def command(ctx: click.Context, here: bool, as_json: bool) -> None:
    """List the agents that Whyfor can read, those found here first.

    For each: the version of its last session, how many sessions are kept, the age of its last
    record, and what one may miss, because the agent does not write it down or has no place for it.

    An agent that is not in the list and writes JSON lines needs no code: describe its files with
    `whyfor agents new NAME`.

    \b
    Examples:
      whyfor agents
      whyfor agents --here
      whyfor agents new tern --from ~/.tern/sessions/1.jsonl
    """
    if ctx.invoked_subcommand is not None:
        return
    found = [one for one in agent_states(config.load()) if one.found or not here]
    if as_json:
        print_json([wire_report(one, missing=one.missing) for one in found])
        return
    _table(found)


@command.command("new")
@click.argument("name")
@click.option(
    "--from",
    "sample",
    type=click.Path(path_type=Path),
    help="A transcript: the kinds and keys of its records are written into the definition.",
)
@json_option
def new_command(name: str, sample: Path | None, as_json: bool) -> None:
    """Write a definition of an agent to start from, in Whyfor's directory.

    The definition says where the agent's files are and what their records mean. Change it, try it
    with `whyfor agents check NAME`, then read the sessions with `whyfor ingest`.

    \b
    Examples:
      whyfor agents new tern
      whyfor agents new tern --from ~/.tern/sessions/1.jsonl
    """
    from whyfor.service.agent_definitions import new_definition

    path = new_definition(config.load(), name, sample)
    if as_json:
        print_json({"path": str(path)})
        return
    console().print(f"Written: {label(str(path))}", soft_wrap=True)
    print_note(f"Change it to match the agent's files, then try it: whyfor agents check {name}")


@command.command("check")
@click.argument("which", metavar="NAME|FILE.toml")
@click.argument("transcripts", nargs=-1, type=click.Path(path_type=Path))
@json_option
def check_command(which: str, transcripts: tuple[Path, ...], as_json: bool) -> int:
    """Show what a definition reads of TRANSCRIPTS; of the three newest it finds if none is given.

    Nothing is stored. The exit code is 1 if a transcript is not recognised, or if records of it
    are not understood.

    \b
    Examples:
      whyfor agents check tern
      whyfor agents check ./tern.toml ~/.tern/sessions/1.jsonl
    """
    from whyfor.service.agent_definitions import check_definition

    definition, tried = check_definition(config.load(), which, list(transcripts))
    is_good = bool(tried) and all(one.recognised and not one.unknown for one in tried)
    if as_json:
        print_json({"agent": definition.name, "files": [wire_report(one) for one in tried]})
        return 0 if is_good else 1
    if not tried:
        folders = ", ".join(definition.folders)
        print_note(f"The definition is right. No file was found in {label(folders)}.")
    for one in tried:
        _print_tried(one)
    return 0 if is_good else 1


def _print_tried(tried: TriedFile) -> None:
    out = console()
    out.print(label(tried.path), style="bold", soft_wrap=True)
    if not tried.recognised:
        out.print("  not recognised: no record meets \\[session] when", style="yellow")
        return
    found = ", ".join(f"{kind} {count}" for kind, count in tried.events.items())
    out.print(f"  {plural(tried.records, 'record')}: {found or 'no event'}")
    out.print(f"  tokens of {plural(tried.tokens, 'answer')}, {plural(len(tried.files), 'file')}")
    for prompt in tried.prompts[:_PROMPTS_SHOWN]:
        out.print(f"  prompt: {label(prompt)[:66]}", markup=False)
    for kind, count in tried.unknown.items():
        out.print(f"  no rule for: {label(kind)} ({count})", style="yellow", markup=False)
    if tried.unparsed:
        out.print(f"  {plural(tried.unparsed, 'line')} not JSON", style="yellow")


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
