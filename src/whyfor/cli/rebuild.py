"""whyfor rebuild"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, progress_bar, size_text
from whyfor.model.text import plural
from whyfor.service.rebuild import rebuild


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Create the database again from the journal and the stored segments.

    Everything derived (sessions, events, search) comes out the same. Safe at any time. A journal
    that lost lines is first completed from the database. The segments themselves are never changed.
    """
    settings = config.load()
    if as_json:
        report = rebuild(settings)
        print_json(report)
    else:
        out = console()
        with progress_bar("Rebuilding") as announce:
            report = rebuild(settings, announce)
        out.print(
            f"Rebuilt {plural(report.sessions, 'session')}, {plural(report.records, 'record')}, "
            f"{plural(report.events, 'event')} from {size_text(report.bytes)} "
            f"in {report.seconds:.1f} s."
        )
        for repair in report.repairs:
            out.print(f"Repaired: {repair}.", style="yellow")
        for gap in report.gaps:
            out.print(
                f"Missing: bytes {gap.start}–{gap.end} of {gap.path}: {gap.reason}", style="red"
            )
    if report.gaps:
        raise click.exceptions.Exit(1)
