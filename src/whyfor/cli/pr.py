"""whyfor pr"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import json_option, print_json, print_note
from whyfor.model.wire.pull_request import wire_pull
from whyfor.service.pr import TOOLS, build_comment, send_comment
from whyfor.terminal import write_data


@click.command()
@click.argument("revisions", required=False, metavar="[RANGE]")
@click.option("--post", type=click.Choice(TOOLS), help="Put it at the branch's pull request.")
@click.option("--dry-run", is_flag=True, help="With --post: print it and post nothing.")
@json_option
def command(revisions: str | None, post: str | None, dry_run: bool, as_json: bool) -> None:
    """Tell the story of a pull request as one comment, without secrets.

    Prints Markdown. With --post the comment is created, or the earlier one is changed.

    \b
    Examples:
      whyfor pr
      whyfor pr main...topic
      whyfor pr --post gh
    """
    found = build_comment(config.load(), Path.cwd(), revisions)
    posted = None
    if post is not None and not dry_run:
        posted = send_comment(Path.cwd(), post, found.text)
    if as_json:
        print_json(wire_pull(found.story, found.text, posted))
    elif posted is not None:
        print_note(f"The comment at {posted.number} was {posted.action} with {posted.tool}.")
    else:
        write_data(found.text.encode("utf-8", "replace"))
    if found.found.counts:
        number = sum(found.found.counts.values())
        print_note(f"{number} secrets were taken out.")
