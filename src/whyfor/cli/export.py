"""whyfor export"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.complete import complete_reference
from whyfor.cli.render import json_option, print_note
from whyfor.model.text import plural
from whyfor.terminal import write_data

if TYPE_CHECKING:
    from whyfor.service.export import Exported

FORMATS = ("markdown", "html", "json")


@click.command()
@click.argument("reference", metavar="COMMIT|RANGE|SESSION", shell_complete=complete_reference)
@click.option("--format", "form", type=click.Choice(FORMATS), default="markdown", show_default=True)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead."
)
@click.option("--thinking", is_flag=True, help="Include the agent's thinking.")
@click.option(
    "--tools", is_flag=True, help="Include every tool call with its changes and result, folded."
)
@click.option("--no-redact", is_flag=True, help="Keep secrets, and report them on stderr.")
@json_option
def command(
    reference: str,
    form: str,
    output: Path | None,
    thinking: bool,
    tools: bool,
    no_redact: bool,
    as_json: bool,
) -> None:
    """Print the story of a branch, a commit or a session as one document to share. Secrets are
    redacted.

    \b
    Examples:
      whyfor export main..HEAD                                    for a pull request
      whyfor export HEAD --format html --output story.html
      whyfor export 3f05 --tools
    """
    from whyfor.service.export import ExportRequest, encoded, export, save

    wanted = ExportRequest("json" if as_json else form, thinking, tools, redact=not no_redact)
    made = export(config.load(), reference, Path.cwd(), wanted)
    if output is None:
        write_data(encoded(made.text))
    else:
        save(output, made.text)
        print_note(f"Written to {output}")
    if said := _said(made, no_redact):
        print_note(said)


def _said(made: Exported, no_redact: bool) -> str:
    from whyfor.service.redact import describe_counts

    found = made.found
    if not no_redact:
        return describe_counts(found.counts, found.values)
    if not found.counts:
        return "Not redacted; no secret was found in it."
    each = ", ".join(f"{found.values[rule]:,} {rule}" for rule in found.counts)
    where = f", from {', '.join(found.sessions)}" if found.sessions else ""
    return f"NOT REDACTED: {plural(sum(found.values.values()), 'secret')} in it now: {each}{where}"
