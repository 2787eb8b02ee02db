"""whyfor ingest"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from whyfor import config
from whyfor.cli.render import json_option, print_json, progress_bars, size_text
from whyfor.model.errors import WhyforError
from whyfor.model.text import plural
from whyfor.service.agents import AGENT_CHOICE, USUAL_AGENTS, agent_title, agents_looked_for
from whyfor.service.ingest import IngestReport, ingest, ingest_for_hooks, is_sharing
from whyfor.terminal import output_width, say


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--agent", help=f"Only this agent: {AGENT_CHOICE}.")
@click.option(
    "--background", is_flag=True, hidden=True, help="For hooks: say nothing, whatever happens."
)
@json_option
def command(paths: tuple[Path, ...], agent: str | None, background: bool, as_json: bool) -> None:
    """Read what your agents wrote: everything the first time, then what is new.

    Without PATHS the agents' own directories are read. A path may be a transcript, a directory of
    them, or a copy of a home directory.

    \b
    Examples:
      whyfor ingest
      whyfor ingest --agent codex
      whyfor ingest ~/backup/old-laptop
    """
    if background:
        with suppress(WhyforError):
            settings = config.load()
            ingest_for_hooks(settings)
            if is_sharing(settings):
                from whyfor.service.sync import sync_after_hooks  # most people share nothing

                sync_after_hooks(settings)
        return
    settings = config.load()
    if as_json:
        from whyfor.model.wire.reports import wire_report  # here: few runs print JSON

        report = ingest(settings, paths, agent)
        print_json(wire_report(report))
        return
    with progress_bars("Reading", "Linking") as (announce, linking):
        report = ingest(settings, paths, agent, announce, linking)
    _render(report)


# field of the report, what is counted, what is said of it
_NOTICES = (
    ("unparsed", "line", "could not be parsed; kept as they are. See: whyfor doctor"),
    ("unknown_types", "record", "of unknown types; kept as they are. See: whyfor doctor"),
    ("withheld", "record", "from a pause or an excluded folder: not stored."),
    ("forgotten", "session", "older than [retention] allows: forgotten."),
    ("excluded", "session", "of excluded projects or agents: not stored."),
    (
        "unplaced",
        "session",
        "not stored while [exclude] names projects: they do not say where they ran.",
    ),
)


def _render(report: IngestReport) -> None:
    for repair in report.repairs:
        _print(f"Repaired: {repair}.", fg="yellow")
    if report.sessions + report.subagents == 0:
        _print("No agent has left a session here yet.")
        titles = ", ".join(map(agent_title, USUAL_AGENTS))
        others = len(agents_looked_for()) - len(USUAL_AGENTS)
        _print(f"Agents looked for: {titles} and {others} more: whyfor agents")
        _print("See what it would look like: whyfor demo")
    else:
        _render_kept(report)
    for item in report.unreadable[:5]:
        _print(f"Cannot read {item.path}: {item.reason}", fg="red")
    if len(report.unreadable) > 5:
        _print(f"… and {len(report.unreadable) - 5} more. See: whyfor doctor", fg="red")


def _print(line: str, **style: Any) -> None:
    """Print a line that ends between two words; without rich, which takes longer to import than
    an ingest that finds nothing new."""
    parts = wrap(line, output_width(), break_long_words=False, break_on_hyphens=False)
    for part in parts:
        say(part, **style)


def _render_kept(report: IngestReport) -> None:
    new = plural(report.new_records, "new record") if report.new_records else "Nothing new"
    _print(f"{new} in {plural(report.files, 'file')}, {report.seconds:.1f} s.")
    _print(
        f"Kept: {plural(report.sessions, 'session')}, {plural(report.subagents, 'subagent')}, "
        f"{plural(report.records, 'record')}, {plural(report.events, 'event')}, "
        f"{size_text(report.bytes)}."
    )
    for field, noun, words in _NOTICES:
        number = getattr(report, field)
        if number:
            _print(f"{plural(number, noun)} {words}", fg="yellow")
