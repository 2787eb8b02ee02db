"""whyfor memory"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.render import (
    age_text,
    console,
    json_option,
    moment_text,
    one_line,
    plural,
    print_json,
    print_note,
    project_text,
)
from whyfor.cli.tables import FittedTable
from whyfor.model.memory import MemoryBlock, Quote, SessionSummary, StoredObservation
from whyfor.model.query import SessionFilter
from whyfor.model.wire.memory import (
    WireNoteDetail,
    wire_memory_block,
    wire_memory_note,
    wire_session_summary,
)
from whyfor.service.agents import AGENT_CHOICE
from whyfor.service.memory import (
    STATES,
    TOKENS,
    TYPES,
    MemoryQuery,
    NoteDetail,
    note_detail,
    notes,
    preview,
)
from whyfor.terminal import say

if TYPE_CHECKING:
    from rich.console import Console

_ID = 8
_STATE_STYLES = {"verified": "green", "hypothesis": "dim", "refuted": "strike dim"}


@click.group(invoke_without_command=True)
@click.option("--type", "types", multiple=True, metavar="TYPE", help=f"{', '.join(TYPES)}.")
@click.option("--state", "states", multiple=True, metavar="STATE", help=f"{', '.join(STATES)}.")
@click.option("--file", metavar="PATH", help="Notes about a file: its path, or the end of it.")
@click.option("--project", help="A directory, a remote URL, a name, or part of one.")
@click.option("--branch", help="Notes of sessions whose last branch was this one.")
@click.option("--agent", help=f"{AGENT_CHOICE}.")
@click.option("--since", metavar="D", help="2026-05-31, yesterday, 12h, 3d, 2w …")
@click.option(
    "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="0 means all."
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    types: tuple[str, ...],
    states: tuple[str, ...],
    file: str | None,
    project: str | None,
    branch: str | None,
    agent: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List what is remembered of past sessions, newest first.

    Notes are derived from what was recorded, without a model: what was fixed and how it was
    checked, what an agent found out or decided, what you corrected and what you asked for once and
    for all.

    \b
    Examples:
      whyfor memory --project .
      whyfor memory --type decision --type rule
      whyfor memory --file src/pay.py --since 2w
      whyfor memory show 1f3a
      whyfor memory preview
    """
    if ctx.invoked_subcommand is not None:
        return
    sessions = SessionFilter(project=project, agent=agent, since=since, branch=branch)
    found = notes(config.load(), MemoryQuery(sessions, types, states, file), limit)
    if as_json:
        print_json([wire_memory_note(each) for each in found])
    elif found:
        _table(found)
        if limit and len(found) == limit:
            print_note(f"The newest {limit}. More: --limit 0, or --since, --type, --file")
    else:
        print_note("Nothing is remembered that fits. Notes come from finished turns.")


@command.command("show")
@click.argument("note_id", metavar="ID")
@json_option
def show_command(note_id: str, as_json: bool) -> None:
    """Show one note, with the words it comes from and where they stand.

    \b
    Examples:
      whyfor memory show 1f3a
    """
    detail = note_detail(config.load(), note_id)
    if as_json:
        summary = detail.summary
        print_json(
            WireNoteDetail(
                wire_memory_note(detail.note),
                wire_session_summary(summary) if summary else None,
            )
        )
        return
    _print_detail(detail)


@command.command("preview")
@click.option(
    "--tokens",
    type=click.IntRange(100, 2_250),
    default=TOKENS,
    show_default=True,
    help="How long it may be, about.",
)
@json_option
def preview_command(tokens: int, as_json: bool) -> None:
    """Print what the next session in this repository would be told, and why.

    \b
    Examples:
      whyfor memory preview
      whyfor memory preview --tokens 600
    """
    block = preview(config.load(), Path.cwd(), tokens)
    if as_json:
        print_json(wire_memory_block(block))
    elif not block.text:
        print_note("Nothing is remembered of this repository yet.")
    else:
        _print_block(block)


def _print_block(block: MemoryBlock) -> None:
    for line in block.text.split("\n"):
        say(line)
    print_note("", f"About {block.tokens:,} of {block.budget:,} tokens. Why each line is in it:")
    reasons = Counter((line.section, line.why) for line in block.lines)
    for (section, why), number in reasons.items():
        print_note(f"  {section}: {plural(number, 'line')}, {why}")
    for section, number in block.left_out.items():
        print_note(f"  {section}: {plural(number, 'line')} did not fit")


def _table(found: list[StoredObservation]) -> None:
    from rich.text import Text

    made = FittedTable("id", "when", "type", "state", "title", title="title", wrap=True)
    for each in found:
        note = each.observation
        made.add(
            Text(note.key[:_ID], style="bold"),
            age_text(note.at),
            note.type,
            Text(note.state, style=_STATE_STYLES.get(note.state, "")),
            one_line(note.title),
        )
    made.print(console())


def _print_detail(detail: NoteDetail) -> None:
    stored = detail.note
    note = stored.observation
    out = console()
    out.print(one_line(note.title), style="bold")
    out.print(f"{note.type}, {note.state}, {moment_text(note.at)}, {project_text(stored.project)}")
    out.print(f"whyfor show {stored.agent}:{stored.session_id}  (turn {note.turn})", style="dim")
    _section(out, "Recorded", [*note.facts])
    _section(out, "Said", [_words(quote) for quote in note.evidence])
    _section(out, "Files written", [*note.files_written])
    _section(out, "Files read", [*note.files_read])
    if detail.summary:
        _print_summary(out, detail.summary)


def _print_summary(out: Console, summary: SessionSummary) -> None:
    _section(out, "The session was asked", [quote.text for quote in summary.request])
    _section(out, "It completed", [quote.text for quote in summary.completed])
    _section(out, "Next steps", [quote.text for quote in summary.next_steps])


def _section(out: Console, title: str, lines: list[str]) -> None:
    if not lines:
        return
    out.print()
    out.print(title, style="bold")
    for line in lines:
        out.print(f"  {one_line(line)}")


def _words(quote: Quote) -> str:
    return f"“{one_line(quote.text)}”"
