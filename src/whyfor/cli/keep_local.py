"""whyfor keep-local"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from whyfor import config
from whyfor.cli.render import json_option, print_json
from whyfor.service.share import keep_local
from whyfor.terminal import say


@click.command("keep-local")
@click.argument("reference", metavar="COMMIT|SESSION")
@json_option
def command(reference: str, as_json: bool) -> None:
    """Keep a commit's story or a session on this machine; take back what the team has of it.

    \b
    Examples:
      whyfor keep-local 3f05a2c1
      whyfor keep-local HEAD
    """
    found = keep_local(config.load(), reference, Path.cwd())
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    say(f"{found.name} stays on this machine.")
    if found.was_sent:
        say("What the team has of it goes with the next: whyfor sync")
