"""whyfor notes"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, print_note
from whyfor.model.text import plural
from whyfor.model.wire.reports import wire_report


@click.group()
def command() -> None:
    """Take over what other tools' git notes say of lines.

    \b
    Examples:
      whyfor notes import
      whyfor notes import --ref refs/notes/origin/ai
    """


@command.command("import")
@click.option(
    "--ref", default="refs/notes/ai", show_default=True, help="Where the notes of git-ai are."
)
@json_option
def import_command(ref: str, as_json: bool) -> None:
    """Take over what git-ai's notes in this repository say of lines.

    `blame`, `why` and `lines` then show them with the evidence `note`, where our own records tell
    nothing surer. A line is taken over only if its commit adds it. Run it again for newer notes.

    \b
    Examples:
      whyfor notes import
      git fetch origin refs/notes/ai:refs/notes/ai && whyfor notes import
    """
    from whyfor.service.exchange.note_import import import_notes

    report = import_notes(config.load(), Path.cwd(), ref)
    if as_json:
        print_json(wire_report(report))
        return
    out = console()
    out.print(
        f"{plural(report.lines, 'line')} of {plural(report.commits, 'commit')} taken over "
        f"from {ref}."
    )
    if report.refused:
        out.print(
            f"{plural(report.refused, 'line')} claimed that their commits do not add: left out."
        )
    if report.gone:
        print_note(f"{plural(report.gone, 'noted commit')} not in this repository.")
    if report.unread:
        print_note(f"{plural(len(report.unread), 'note')} not in git-ai's layout: left out.")
