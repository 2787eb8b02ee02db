"""whyfor why"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.render import (
    barred_lines,
    console,
    json_option,
    moment_text,
    print_json,
    print_note,
)
from whyfor.model.blame import NOT_COMMITTED, LineWho
from whyfor.model.characters import show_code
from whyfor.model.ids import short_id
from whyfor.model.lines import MODIFIED_LINE, PERSON
from whyfor.model.text import clean, label, one_line
from whyfor.model.why import GoneText, LineReason
from whyfor.model.wire.lines import wire_gone, wire_reason
from whyfor.service.agents import agent_title
from whyfor.service.why import explain_gone, explain_lines

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 6  # lines of code
_WORDS = 1200  # characters of what was said


@click.command()
@click.argument("location", required=False, metavar="FILE:LINE[-B]")
@click.argument("revision", required=False, metavar="[REV]")
@click.option("--gone", metavar="TEXT", help="Find who removed this text; FILE narrows it.")
@json_option
def command(location: str | None, revision: str | None, gone: str | None, as_json: bool) -> None:
    """Show why a line is there: the turn that wrote it, what was asked, what the agent said.

    \b
    Examples:
      whyfor why src/app.py:42
      whyfor src/app.py:42
      whyfor why src/app.py:40-60 HEAD~3
      whyfor why --gone 'retry(' src/app.py
    """
    settings, cwd = config.load(), Path.cwd()
    if gone is not None:
        if revision is not None:
            raise click.UsageError("--gone looks in all commits of the branch: give no revision")
        removed = explain_gone(settings, cwd, gone, location)
        if as_json:
            print_json(wire_gone(removed))
        else:
            _print_gone(console(), removed)
        return
    if location is None:
        raise click.UsageError("give FILE:LINE, or --gone TEXT")
    found = explain_lines(settings, cwd, location, revision)
    if as_json:
        print_json([wire_reason(reason) for reason in found])
        return
    out = console()
    for number, reason in enumerate(found):
        if number:
            out.print()
        _print(out, reason)
    for note in dict.fromkeys(note for reason in found for note in reason.notes):
        print_note(label(note))


def _print(out: Console, found: LineReason) -> None:
    first, last = found.rows[0], found.rows[-1]
    where = f"{first.line}-{last.line}" if last.line > first.line else str(first.line)
    out.print(f"{found.path}:{where}", style="bold")
    for row in found.rows[:_SHOWN]:
        code = show_code(row.text).replace("\t", "    ")
        out.print(f"  {code}", no_wrap=True, overflow="ellipsis")
    if len(found.rows) > _SHOWN:
        out.print(f"  … {len(found.rows) - _SHOWN} more lines", style="dim")
    if first.commit == NOT_COMMITTED:
        out.print("Not committed yet.", style="dim")
    else:
        _commit(out, first.commit, first.time, first.summary)
    _print_who(out, found.who, found.tool, "Written", _unknown(found))
    _print_words(out, found.who, found.question, found.closing)
    _print_annotation(out, found)
    for earlier in found.history:
        who = _short(earlier.who)
        out.print(
            f"Before ({earlier.commit[:8]}, {who}): {show_code(earlier.text).strip()}",
            style="dim",
            no_wrap=True,
            overflow="ellipsis",
        )
    for near in found.nearby:
        out.print(
            f"Near: {agent_title(near.agent)} {short_id(near.session_id)}: {near.why}", style="dim"
        )
    if found.resume:
        out.print(f"Go on from there: {found.resume}", style="dim")


def _print_gone(out: Console, found: GoneText) -> None:
    out.print(f"{found.path}, removed:", style="bold")
    out.print(f"  {show_code(found.text)}", no_wrap=True, overflow="ellipsis")
    _commit(out, found.commit, found.time, found.summary)
    unknown = "Removed by nobody we know of: no recorded edit did it."
    _print_who(out, found.who, None, "Removed", unknown)
    _print_words(out, found.who, found.question, found.closing)
    if found.resume:
        out.print(f"Go on from there: {found.resume}", style="dim")


def _commit(out: Console, sha: str, seconds: int, summary: str) -> None:
    when = f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
    out.print(f"{sha[:8]}  {when}  {one_line(summary)}", style="dim")


def _unknown(found: LineReason) -> str:
    """What to say of a line that nobody is known for."""
    if found.who.kind == PERSON:
        return "Written by a person (inferred): a session made the commit, but not this line."
    if found.resume:
        return (
            "Written by nobody we know of: the sessions of this commit have no edit with it. "
            "A command, a formatter or a person may have written it."
        )
    where = "" if found.first.commit == NOT_COMMITTED else " of this commit"
    return f"Written by nobody we know of: no session here is known to have a part{where}."


def _print_annotation(out: Console, found: LineReason) -> None:
    """What the commit was for; what was only put together from the words above is not repeated."""
    note = found.annotation
    if note is None or (note.by == "derived" and found.who.asked is not None):
        return
    out.print(f"For: {one_line(note.intent) or note.title}")
    for weighed in note.alternatives:
        out.print(f"  weighed: {one_line(weighed)}", style="dim")


def _print_who(out: Console, who: LineWho, tool: str | None, verb: str, unknown: str) -> None:
    """Print who wrote or removed a line; `unknown` if that is not known."""
    if not who.agent:
        out.print(unknown)
        return
    parts = [f"{verb} by {agent_title(who.agent)}"]
    if who.model:
        parts.append(who.model)
    parts.append(f"session {short_id(who.session_id)}")
    parts.append(f"turn {who.turn}" if who.turn is not None else "turn unknown")
    if tool:
        parts.append(f"tool {tool}")
    if who.person:
        parts.append(f"from {label(who.person)}")
    out.print(", ".join(parts))
    how = f"evidence {who.evidence}, {who.confidence} confidence"
    if who.kind == MODIFIED_LINE:
        how += "; somebody changed the line since"
    out.print(how, style="dim")


def _print_words(out: Console, who: LineWho, question: str | None, closing: str | None) -> None:
    if question:
        out.print(f"? {clean(question)[:_WORDS]}", style="dim")
    if who.asked:
        when = f"  {moment_text(who.asked.at)}" if who.asked.at else ""
        out.print(f"▌ asked{when}", style="dim")
        for line in barred_lines(out, who.asked.text[:_WORDS], "bold"):
            out.print(line)
    if closing:
        out.print(clean(closing)[:_WORDS])


def _short(who: LineWho) -> str:
    if who.agent:
        return f"{agent_title(who.agent)} turn {who.turn}"
    return "a person, inferred" if who.kind == PERSON else "unknown"
