"""whyfor resume"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.pause import paused_line, repo_option, session_option
from whyfor.cli.render import json_option, moment_text, print_json
from whyfor.model.text import label
from whyfor.model.wire.reports import wire_pauses_ended
from whyfor.service.pause import resume, scope_of
from whyfor.terminal import say


@click.command()
@repo_option
@session_option
@json_option
def command(repo: str | None, session: str | None, as_json: bool) -> None:
    """Record again from now on. What happened during the pause is never recorded.

    Ends the pause that `whyfor pause` began with the same options.

    \b
    Examples:
      whyfor resume
      whyfor resume --repo
      whyfor resume --session 3f05
    """
    settings = config.load()
    report = resume(settings, scope_of(settings, Path.cwd(), repo, session))
    if as_json:
        print_json(wire_pauses_ended(report))
        return
    for item in report.changed:
        say(f"Recorded again: {label(item.where)}. The pause began {moment_text(item.since)}.")
    if not report.changed:
        say("That was not paused.")
    for item in report.paused:
        say(f"Still: {paused_line(item)}")
        say(f"  Record again: {item.resume}")
