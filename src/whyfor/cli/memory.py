"""whyfor memory"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.extras import install_command
from whyfor.cli.render import (
    age_text,
    console,
    json_option,
    moment_text,
    one_line,
    plural,
    print_json,
    print_note,
    progress_bar,
    project_text,
    size_text,
)
from whyfor.cli.tables import FittedTable
from whyfor.model.errors import MissingExtra
from whyfor.model.memory import (
    AskedSession,
    MemoryBlock,
    Quote,
    SessionSummary,
    StoredObservation,
    ToldSession,
)
from whyfor.model.query import SessionFilter
from whyfor.model.times import parse_iso
from whyfor.model.wire.memory import (
    WireNote,
    wire_memory_block,
    wire_memory_note,
    wire_memory_use,
    wire_model_round,
    wire_note_detail,
)
from whyfor.model.wire.reports import wire_report
from whyfor.service.agents import AGENT_CHOICE
from whyfor.service.memory import (
    MODEL_LIMIT,
    STATES,
    TYPES,
    MemoryQuery,
    NewNote,
    NoteDetail,
    add_note,
    ask_model_about_ended,
    edit_note,
    forget_note,
    mark_wrong,
    model_questions,
    pin,
    preview,
    short_note_ids,
    shown_detail,
    standing_notes,
    unpin,
    who_writes,
)
from whyfor.service.memory_index import index_sessions
from whyfor.service.memory_use import memory_use
from whyfor.service.team_notes import accept_note, team_notes
from whyfor.terminal import say

if TYPE_CHECKING:
    from rich.console import Console

_ID = 8
_TOLD = 5  # sessions that were told a note
_LABEL = re.compile(r"(?:- )?\[([^\]]+)\]")  # what a line of the block comes from
_MOMENTS = {"start": "at the start", "threads": "after a compaction", "prompt": "with a prompt"}
_NOBODY = "There is no session to ask about."
_AUTHORS = {"person": "you", "agent": "an agent"}
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
@click.option("--all", "every", is_flag=True, help="Also notes that do not hold any more.")
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
    every: bool,
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
      whyfor memory index
    """
    if ctx.invoked_subcommand is not None:
        return
    sessions = SessionFilter(project=project, agent=agent, since=since, branch=branch)
    query = MemoryQuery(sessions, types, states, file)
    found = standing_notes(config.load(), Path.cwd(), query, limit, every=every)
    if as_json:
        print_json([wire_memory_note(each) for each in found.rows])
        return
    if found.rows:
        _table(found.rows)
        if limit and len(found.rows) == limit:
            print_note(f"The newest {limit}. More: --limit 0, or --since, --type, --file")
    else:
        print_note("Nothing is remembered that fits. Notes come from finished turns.")
    if found.hidden:
        print_note(f"{plural(found.hidden, 'note')} left out that no longer hold: --all")


@command.command("index")
@click.option("--limit", type=click.IntRange(min=1), help="Sessions at most; the newest first.")
@click.option("--rebuild", is_flag=True, help="Make the model and all vectors anew.")
@json_option
def index_command(limit: int | None, rebuild: bool, as_json: bool) -> None:
    """Make the index by which search finds sessions by meaning.

    Search then also finds sessions that say the same in other words. Needs the extra `semantic`:
    a small model that runs on this machine. What was made stays if this is interrupted; the next
    run goes on from there, and `whyfor serve` does the same in the background.

    \b
    Examples:
      whyfor memory index
      whyfor memory index --limit 200
      whyfor memory index --rebuild
    """
    settings = config.load()
    try:
        with progress_bar("Reading sessions") as announce:
            report = index_sessions(settings, limit, announce, rebuild=rebuild)
    except MissingExtra as error:
        hint = f"Install them: {install_command('semantic')}"
        raise MissingExtra(error.message, error.hint or hint) from None
    if as_json:
        print_json(wire_report(report))
        return
    made, state = report.made, report.state
    if made.sessions:
        turns = plural(made.vectors, "turn")
        say(f"{plural(made.sessions, 'session')}, {turns}, {made.seconds:.1f} CPU seconds.")
    else:
        say("Nothing new.")
    size = size_text(state.vector_bytes + state.model_bytes)
    say(f"Indexed: {plural(state.sessions, 'session')}, {plural(state.vectors, 'turn')}, {size}.")
    if state.waiting:
        print_note(f"{plural(state.waiting, 'session')} still to do. Go on: whyfor memory index")


@command.command("show")
@click.argument("note_id", metavar="ID")
@json_option
def show_command(note_id: str, as_json: bool) -> None:
    """Show one note, with the words it comes from and where they stand.

    \b
    Examples:
      whyfor memory show 1f3a
    """
    detail = shown_detail(config.load(), Path.cwd(), note_id)
    if as_json:
        print_json(wire_note_detail(detail.note, detail.summary, detail.said, detail.told))
        return
    _print_detail(detail)


@command.command("add")
@click.argument("text")
@click.option("--type", "kind", metavar="TYPE", help="Default: as the words tell.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file it is about.")
@click.option("--replaces", metavar="ID", help="The note it takes the place of.")
@json_option
def add_command(
    text: str, kind: str | None, files: tuple[str, ...], replaces: str | None, as_json: bool
) -> None:
    """Write a note about this repository down, for the sessions to come.

    \b
    Examples:
      whyfor memory add "Use pnpm, not npm"
      whyfor memory add "Refunds run at night" --type discovery --file src/refund.py
      whyfor memory add "Deploy from release branches only" --replaces 1f3a
    """
    settings = config.load()
    by, session = who_writes(settings)
    new = NewNote(text=text, type=kind, files=files, replaces=replaces, by=by, session=session)
    _print_changed("Noted", add_note(settings, Path.cwd(), new), as_json)


@command.command("team")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many."
)
@json_option
def team_command(limit: int, as_json: bool) -> None:
    """List notes that others of the team shared on this repository.

    No session is told any of them before you took it over: whyfor memory accept ID

    \b
    Examples:
      whyfor memory team
    """
    found = team_notes(config.load(), Path.cwd(), limit)
    if as_json:
        print_json(found)
        return
    if not found:
        print_note("Nobody shared a note that is not here.")
        return
    _team_table(found)
    accept = f"whyfor memory accept {found[0].id[:_ID]}"
    print_note(f"Sessions are told none of them. Take one over: {accept}")


@command.command("accept")
@click.argument("note_ids", metavar="ID...", nargs=-1, required=True)
@json_option
def accept_command(note_ids: tuple[str, ...], as_json: bool) -> None:
    """Take over notes of others, with their names: sessions to come may be told them.

    Only a person can. Undo it: whyfor memory forget ID

    \b
    Examples:
      whyfor memory accept 1f3a 90b2
    """
    settings = config.load()
    taken = [accept_note(settings, Path.cwd(), each) for each in note_ids]
    if as_json:
        print_json([wire_memory_note(each) for each in taken])
        return
    for note in taken:
        _print_changed("Taken over", note, as_json)


def _team_table(found: list[WireNote]) -> None:
    from rich.text import Text

    made = FittedTable("id", "when", "type", "from", "title", title="title", wrap=True)
    for note in found:
        made.add(
            Text(note.id[:_ID], style="bold"),
            age_text(parse_iso(note.at)),
            one_line(note.type),
            one_line(note.person or ""),
            one_line(note.title),
        )
    made.print(console())


@command.command("pin")
@click.argument("note_id", metavar="ID")
@json_option
def pin_command(note_id: str, as_json: bool) -> None:
    """Tell a note first, in every session to come.

    \b
    Examples:
      whyfor memory pin 1f3a
    """
    _print_changed("Pinned", pin(config.load(), note_id), as_json)


@command.command("unpin")
@click.argument("note_id", metavar="ID")
@json_option
def unpin_command(note_id: str, as_json: bool) -> None:
    """Undo `memory pin`.

    \b
    Examples:
      whyfor memory unpin 1f3a
    """
    _print_changed("No longer pinned", unpin(config.load(), note_id), as_json)


@command.command("edit")
@click.argument("note_id", metavar="ID")
@click.argument("text")
@json_option
def edit_command(note_id: str, text: str, as_json: bool) -> None:
    """Replace the words of a note. `memory show` keeps the former ones.

    \b
    Examples:
      whyfor memory edit 1f3a "Refunds run at night, and only on weekdays"
    """
    settings = config.load()
    _print_changed("Changed", edit_note(settings, note_id, text, who_writes(settings)[0]), as_json)


@command.command("wrong")
@click.argument("note_id", metavar="ID")
@json_option
def wrong_command(note_id: str, as_json: bool) -> None:
    """Mark a note as wrong: no session is told it any more.

    \b
    Examples:
      whyfor memory wrong 1f3a
    """
    _print_changed("Marked as wrong", mark_wrong(config.load(), note_id), as_json)


@command.command("forget")
@click.argument("note_id", metavar="ID")
@json_option
def forget_command(note_id: str, as_json: bool) -> None:
    """Delete a note for good. The session that it comes from stays.

    \b
    Examples:
      whyfor memory forget 1f3a
    """
    _print_changed("Forgotten", forget_note(config.load(), note_id), as_json)


@command.command("ask")
@click.option("--since", metavar="D", help="2026-05-31, yesterday, 12h, 3d … Default: 24h.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=MODEL_LIMIT,
    show_default=True,
    help="Sessions at most.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be sent, and send nothing.")
@json_option
def ask_command(since: str | None, limit: int, dry_run: bool, as_json: bool) -> None:
    """Ask the model of [memory.model] about ended sessions.

    Each session is asked about once, ten minutes after its last event. What the model notes
    without quoting the session is rejected.

    \b
    whyfor memory ask --dry-run      what would be sent, without secrets
    whyfor memory ask --since 7d
    """
    settings = config.load()
    if dry_run:
        questions = model_questions(settings, since, limit)
        if as_json:
            print_json(questions)
            return
        for line in "\n\n".join(questions).splitlines() or [_NOBODY]:
            say(line)
        return
    done = ask_model_about_ended(settings, since, limit, None if as_json else _print_asked)
    if as_json:
        print_json(wire_model_round(done))
        return
    if not done.asked and not done.stopped:
        say(_NOBODY)
    if done.stopped:
        print_note(done.stopped, done.hint)


def _print_asked(asked: AskedSession) -> None:
    call = asked.call
    if call.outcome != "ok":
        say(f"{asked.name}: no notes, {call.outcome}")
        return
    cost = "" if call.cost is None else f", cost {call.cost:.4f}"
    tokens = f"{call.sent:,} tokens sent, {call.received:,} received{cost}"
    rejected = f", {call.rejected} rejected" if call.rejected else ""
    say(f"{asked.name}: {plural(call.kept, 'note')}{rejected} ({tokens})")


@command.command("preview")
@click.option(
    "--tokens",
    type=click.IntRange(100, 2_250),
    help="How long it may be, about. Default: the setting memory.tokens.",
)
@json_option
def preview_command(tokens: int | None, as_json: bool) -> None:
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


@command.command("use")
@click.option("--since", metavar="D", help="2026-05-31, yesterday, 12h, 3d … Default: ever.")
@json_option
def use_command(since: str | None, as_json: bool) -> None:
    """Say what sessions used of what they were told.

    Files that were named to a session and that it then read or wrote; ids that it then looked up.

    \b
    Examples:
      whyfor memory use
      whyfor memory use --since 2w
    """
    found = memory_use(config.load(), since)
    if as_json:
        print_json([wire_memory_use(each) for each in found])
        return
    if not found:
        print_note("No session was told anything.", "Let them be told: whyfor init --memory")
        return
    headings = ("told", "sessions", "times", "tokens", "files used", "ids looked up")
    rows = FittedTable(*headings, title="told", right=headings[1:])
    for each in found:
        files = f"{each.files_used:,} of {each.files:,}"
        ids = f"{each.fetched:,} of {each.sources:,}"
        counts = (f"{each.sessions:,}", f"{each.times:,}", f"{each.tokens:,}")
        rows.add(_MOMENTS[each.part], *counts, files, ids)
    rows.print(console())


def _print_changed(done: str, note: StoredObservation, as_json: bool) -> None:
    if as_json:
        print_json(wire_memory_note(note))
        return
    kept = note.observation
    print_note(f"{done}: {kept.key[:_ID]} ({kept.type}) {one_line(kept.title)}")


def _print_block(block: MemoryBlock) -> None:
    for line in block.text.split("\n"):
        say(line)
    print_note("", f"About {block.tokens:,} of {block.budget:,} tokens. Why each line is in it:")
    for told in block.lines:
        named = _LABEL.match(told.text)
        print_note(f"  {told.section}: {named[1] if named else told.source}: {told.why}")
    for section, number in block.left_out.items():
        print_note(f"  {section}: {plural(number, 'line')} did not fit")


def _table(found: list[StoredObservation]) -> None:
    from rich.text import Text

    headings = ("id", "when", "type", "state", "title")
    made = FittedTable(*headings, title="title", fold=("when", "state"), wrap=True)
    ids = short_note_ids(config.load(), [each.observation.key for each in found])
    for each in found:
        note = each.observation
        made.add(
            Text(ids[note.key], style="bold"),
            age_text(note.at),
            note.type,
            Text(_state(each), style=_STATE_STYLES.get(note.state, "")),
            Text.assemble(one_line(note.title), (_doubt(each), "dim")),
        )
    made.print(console())


def _doubt(stored: StoredObservation) -> str:
    """What git says against a note, to stand after its title."""
    standing = stored.standing
    if standing.gone:
        return f" ({standing.gone})"
    doubts = ["file changed since"] if standing.changed else []
    doubts += ["on another branch"] if standing.elsewhere else []
    return f" ({', '.join(doubts)})" if doubts else ""


def _state(stored: StoredObservation) -> str:
    if stored.superseded_by:
        return "replaced"
    return "pinned" if stored.observation.pinned else stored.observation.state


def _print_detail(detail: NoteDetail) -> None:
    stored = detail.note
    note = stored.observation
    out = console()
    out.print(one_line(note.title), style="bold")
    out.print(f"{note.type}, {note.state}, {moment_text(note.at)}, {project_text(stored.project)}")
    if stored.session_id:
        out.print(
            f"whyfor show {stored.agent}:{stored.session_id}  (turn {note.turn})", style="dim"
        )
    if doubt := _doubt(stored).strip(" ()"):
        out.print(f"Now: {doubt}", style="yellow")
    _section(out, "Recorded", [*note.facts])
    _section(out, "Said", [_words(quote) for quote in note.evidence])
    written = [said.text for said in detail.said if said.text]
    _section(out, f"Written by {_AUTHORS.get(note.by, note.by)}", written[-1:])
    _section(out, "It read before", written[:-1])
    _section(out, "Files written", [*note.files_written])
    _section(out, "Files read", [*note.files_read])
    _print_told(out, detail.told)
    if detail.summary:
        _print_summary(out, detail.summary)


def _print_told(out: Console, told: Sequence[ToldSession]) -> None:
    """Print the sessions that were told a note, the newest of them."""
    lines = [
        f"{one.agent}:{one.session_id}  {moment_text(one.at)}  {one.title or 'not kept'}"
        for one in told[:_TOLD]
    ]
    if len(told) > _TOLD:
        lines.append(f"{len(told) - _TOLD:,} more: --json")
    _section(out, f"Told to {plural(len(told), 'session')}", lines)


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
