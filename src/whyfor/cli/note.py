"""whyfor note"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json
from whyfor.model.checkpoints import TAGS, Note
from whyfor.model.wire.commits import wire_checkpoint
from whyfor.service.note import note


@click.command()
@click.argument("commit", required=False)
@click.option("--title", help="What the commit does, in fewer than 50 characters.")
@click.option("--intent", help="The problem, the solution, the effect.")
@click.option(
    "--alternative",
    "alternatives",
    multiple=True,
    help="An alternative that was rejected; can be repeated.",
)
@click.option("--summary", help="What the diff changes.")
@click.option("--tag", type=click.Choice(TAGS, case_sensitive=False), help="The kind of change.")
@json_option
def command(
    commit: str | None,
    title: str | None,
    intent: str | None,
    alternatives: tuple[str, ...],
    summary: str | None,
    tag: str | None,
    as_json: bool,
) -> None:
    """Explain what a commit is for. Default: HEAD. Parts that you leave out stay as they were
    derived.

    \b
    Examples:
      whyfor note --title "Retry dropped connections" --tag BUGFIX
      whyfor note 4be07d1 --intent "Charges ran twice → one key per attempt → no double charge" \\
        --alternative "Ask the gateway first: one more request, and still a gap"
    """
    said = Note(title, intent, list(alternatives) or None, summary, tag)
    checkpoint = note(config.load(), Path.cwd(), commit, said)
    if as_json:
        print_json(wire_checkpoint(checkpoint) if checkpoint else None)
    elif checkpoint is None:
        console().print(f"Noted. Read it: whyfor show {commit or 'HEAD'}")
    else:
        console().print(f"Noted. Read it: whyfor show {checkpoint.commit[:8]}")
