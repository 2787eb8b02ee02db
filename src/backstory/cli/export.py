"""backstory export"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from backstory import config
from backstory.cli.render import json_option, note

FORMATS = ("markdown", "html", "json")


@click.command()
@click.argument("reference", metavar="COMMIT|RANGE|SESSION")
@click.option("--format", "form", type=click.Choice(FORMATS), default="markdown", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead.")
@click.option("--thinking", is_flag=True, help="With what the agent thought.")
@click.option("--tools", is_flag=True, help="With every tool call, its changes and its result, folded.")
@json_option
def command(reference: str, form: str, output: Path | None, thinking: bool, tools: bool, as_json: bool) -> None:
    """The story of a branch, a commit or a session in one piece, to be shared.

    \b
    Examples:
      backstory export main..HEAD                                    for a pull request
      backstory export HEAD --format html --output story.html
      backstory export 3f05 --tools
    """
    from backstory.service.exporting import encoded, export, save

    text = export(config.load(), reference, Path.cwd(), "json" if as_json else form, thinking=thinking, tools=tools)
    if output is None:
        sys.stdout.buffer.write(encoded(text))
    else:
        save(output, text)
        note(f"Written to {output}")
    note("Not redacted: read it before you share it.")
