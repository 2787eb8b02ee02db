"""whyfor pause"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import json_option, moment_text, print_json
from whyfor.model.reports import Paused
from whyfor.model.text import label
from whyfor.model.wire.reports import wire_pauses_begun
from whyfor.service.pause import pause, scope_of, seconds_of
from whyfor.terminal import say

repo_option = click.option(
    "--repo",
    is_flag=False,
    flag_value=".",
    metavar="[PATH]",
    help="Only this repository, or the one at PATH, with its worktrees.",
)
session_option = click.option(
    "--session",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Only one session. Default: the session that runs this command.",
)


@click.command()
@repo_option
@session_option
@click.option(
    "--for",
    "length",
    metavar="TIME",
    help="How long: 30m, 2h, 1h30m, 3d. Default: until `whyfor resume`.",
)
@json_option
def command(repo: str | None, session: str | None, length: str | None, as_json: bool) -> None:
    """Stop recording: everywhere, in one repository, or for one session.

    What happens during a pause is never stored, not even when the agent's file is read later.
    `whyfor status` shows the pause; `whyfor resume` ends it.

    \b
    Examples:
      whyfor pause
      whyfor pause --for 30m
      whyfor pause --repo
      whyfor pause --session            inside an agent's session
    """
    settings = config.load()
    seconds = seconds_of(length) if length is not None else None
    report = pause(settings, scope_of(settings, Path.cwd(), repo, session), seconds)
    if as_json:
        print_json(wire_pauses_begun(report))
        return
    if not report.changed:
        say("Paused already, and for longer.")
    for item in report.changed or report.paused:
        say(paused_line(item))
        say(f"  Record again: {item.resume}")


def paused_line(item: Paused) -> str:
    """Describe a pause on one line: where, since when, until when."""
    end = f", until {moment_text(item.until)}" if item.until else ", until you resume"
    return f"Nothing is recorded: {label(item.where)}, since {moment_text(item.since)}{end}."
