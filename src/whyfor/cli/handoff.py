"""whyfor handoff"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.complete import complete_reference
from whyfor.cli.render import json_option, print_json, print_note
from whyfor.model.wire.reports import wire_report
from whyfor.terminal import write_data


@click.command()
@click.argument("session", metavar="SESSION", shell_complete=complete_reference)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead."
)
@json_option
def command(session: str, output: Path | None, as_json: bool) -> None:
    """Write what the next person, or agent, must know of a session, as Markdown.

    What was asked, done, decided and left open, the commands and how they ended, the commits and
    how to go on. Every line was said or recorded: no model is asked. Secrets are redacted.

    \b
    Examples:
      whyfor handoff 3f05
      whyfor handoff claude:3f05 --output HANDOFF.md
    """
    from whyfor.service.export import encoded, save
    from whyfor.service.export.handoff import write_handoff
    from whyfor.service.redact import describe_counts

    made = write_handoff(config.load(), session)
    if as_json:
        print_json(wire_report(made.note))
    elif output is not None:
        save(output, made.text)
        print_note(f"Written to {output}")
    else:
        write_data(encoded(made.text))
    if said := describe_counts(made.found.counts, made.found.values):
        print_note(said)
