"""whyfor context"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import json_option, print_json, print_note
from whyfor.model.wire.memory import wire_memory_block
from whyfor.service.context import TOKENS, ContextRequest, branch_context
from whyfor.terminal import say


@click.command()
@click.option("--branch", help="The branch to work on. Default: the one that is checked out.")
@click.option("--files", multiple=True, metavar="PATH…", help="Files that it will be about.")
@click.argument("more", nargs=-1, metavar="")
@click.option(
    "--tokens",
    type=click.IntRange(100, 2_250),
    default=TOKENS,
    show_default=True,
    help="How long it may be, about.",
)
@json_option
def command(
    branch: str | None,
    files: tuple[str, ...],
    more: tuple[str, ...],
    tokens: int,
    as_json: bool,
) -> None:
    """Print what an agent should know before it works on a branch.

    What was left open, the branch's commits and sessions, decisions and findings on the files it
    changes, what went wrong, commands and files. Secrets are removed.

    \b
    Examples:
      whyfor context
      whyfor context --branch pay-by-card --files src/pay.py src/card.py
    """
    if more and not files:
        raise click.UsageError(f"Give files after --files: {more[0]}")
    wanted = ContextRequest(branch, (*files, *more), tokens)
    block = branch_context(config.load(), Path.cwd(), wanted)
    if as_json:
        print_json(wire_memory_block(block))
    elif block.text:
        for line in block.text.split("\n"):
            say(line)
        print_note(f"About {block.tokens:,} of {block.budget:,} tokens.")
    else:
        print_note("Nothing is remembered of this repository yet.")
