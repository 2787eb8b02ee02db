"""whyfor share"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from whyfor import config
from whyfor.cli.render import json_option, print_json
from whyfor.service.share import share
from whyfor.terminal import say


@click.command()
@click.argument("reference", metavar="COMMIT|SESSION")
@json_option
def command(reference: str, as_json: bool) -> None:
    """Share a commit's story or a whole session with the team, pushed or not.

    \b
    Examples:
      whyfor share HEAD
      whyfor share 3f05a2c1
    """
    found = share(config.load(), reference, Path.cwd())
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        say(f"{found.name} is shared with the next: whyfor sync")
