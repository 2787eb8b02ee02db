"""whyfor link"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, print_note, progress_bar
from whyfor.model.text import plural
from whyfor.model.wire.commits import wire_checkpoint
from whyfor.service.link import link, link_history


@click.command()
@click.argument("commit", required=False, metavar="[REV-RANGE | COMMIT SESSION]")
@click.argument("session", required=False, metavar="")
@json_option
def command(commit: str | None, session: str | None, as_json: bool) -> None:
    """Link commits to sessions again, or link one commit to one session by hand.

    Without arguments, every commit is examined that a stored session may have contributed to; with
    a range, those. With a commit and a session, the two are linked, whatever the evidence says;
    `whyfor unlink` undoes it.

    \b
    Examples:
      whyfor link
      whyfor link main..HEAD
      whyfor link 4be07d1 3f05
    """
    settings = config.load()
    if commit and session:
        checkpoint = link(settings, Path.cwd(), commit, session)
        if as_json:
            print_json(wire_checkpoint(checkpoint))
        else:
            console().print(f"Linked. Read it: whyfor show {checkpoint.commit[:8]}")
        return
    if as_json:
        report = link_history(settings, Path.cwd(), commit)
        print_json(report)
        return
    with progress_bar("Linking") as announce:
        report = link_history(settings, Path.cwd(), commit, announce)
    if report.project is None:
        print_note(
            "No session of this repository is kept. Did it move? whyfor projects alias OLD_PATH ."
        )
        return
    console().print(
        f"{plural(report.stories, 'commit')} of {report.commits:,} judged have a story, "
        f"{report.seconds:.1f} s."
    )
