"""whyfor review"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, print_note
from whyfor.model.characters import show_code
from whyfor.model.review import ChangeReview, ReviewFinding
from whyfor.model.text import one_line, plural
from whyfor.model.wire.review import wire_review
from whyfor.service.agents import agent_title
from whyfor.service.review import review_change

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 4  # findings on one screen
_LINES = 2  # of code in each
_WORDS = 150  # characters of what was decided
_KINDS = {
    "undoes": "undoes what was decided",
    "returns": "brings back what was taken out",
    "failed": "tries again what failed",
    "rule": "breaks a rule",
}


@click.command()
@click.argument("revisions", required=False, metavar="[RANGE]")
@click.option("--staged", is_flag=True, help="Only what is staged, as a pre-commit hook wants it.")
@click.option("--all", "everything", is_flag=True, help="Every finding, and the turns touched.")
@click.option("--strict", is_flag=True, help="Exit with 1 if something is undone.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    revisions: str | None,
    staged: bool,
    everything: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Show what a change is about to undo of what earlier turns decided.

    Prints nothing if there is nothing to say. Without a range: what is staged, else what is not
    committed, else what is not pushed.

    \b
    Examples:
      whyfor review
      whyfor review --staged --strict
      whyfor review main...topic
    """
    if revisions is not None and staged:
        raise click.UsageError("give a range or --staged, not both")
    found = review_change(config.load(), Path.cwd(), revisions, staged=staged)
    if as_json:
        print_json(wire_review(found))
    else:
        _print(found, everything=everything)
    if strict and found.findings:
        ctx.exit(1)


def _print(found: ChangeReview, *, everything: bool) -> None:
    out = console()
    shown = found.findings if everything else found.findings[:_SHOWN]
    if shown:
        number = plural(len(found.findings), "thing")
        files = plural(found.files, "file")
        out.print(f"{number} to look at before this goes in ({found.what}, {files})", style="bold")
    for finding in shown:
        out.print()
        _print_finding(out, finding)
    if len(found.findings) > len(shown):
        out.print()
        out.print(f"{len(found.findings) - len(shown)} more: whyfor review --all", style="dim")
    if everything:
        for turn in found.touched:
            who = f"{agent_title(turn.who.agent)} turn {turn.who.turn}"
            lines = plural(turn.lines, "line")
            out.print(f"{one_line(turn.path)}: {lines} of {who} touched", style="dim")
    for left in found.left_out:
        print_note(f"Not looked at: {left}")


def _print_finding(out: Console, found: ReviewFinding) -> None:
    first = found.lines[0]
    out.print(f"{one_line(found.path)}:{first.number}  {_KINDS[found.kind]}", style="bold")
    for line in found.lines[:_LINES]:
        code = show_code(line.text).replace("\t", "    ").strip()
        out.print(f"  {line.sign} {code}", no_wrap=True, overflow="ellipsis")
    if len(found.lines) > _LINES:
        out.print(f"    … {plural(len(found.lines) - _LINES, 'more line')}", style="dim")
    out.print(f"  {_source(found)}", style="dim", no_wrap=True, overflow="ellipsis")
    if found.decision.question:
        question = one_line(found.decision.question)[:_WORDS]
        out.print(f"  ? {question}", style="dim", no_wrap=True, overflow="ellipsis")
    said = one_line(found.decision.text)
    cut = said if len(said) <= _WORDS else said[: _WORDS - 1] + "…"
    out.print(f"  ▌ {cut}", style="bold")
    out.print(f"  {found.decision.kind}: {one_line(found.because)}", style="dim")


def _source(found: ReviewFinding) -> str:
    """Claude Code turn 2, 4be07d1a Charge once when the gateway times out"""
    who = found.who
    parts = [agent_title(who.agent)] if who.agent else ["a note"]
    if who.turn is not None and who.agent:
        parts[0] += f" turn {who.turn}"
    if found.commit:
        parts.append(f"{found.commit[:8]} {one_line(found.summary)}")
    elif who.session_id:
        parts.append(f"session {who.session_id[:8]}")
    return ", ".join(parts)
