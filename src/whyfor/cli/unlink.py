"""whyfor unlink"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json
from whyfor.model.wire.answers import WireUnlinked
from whyfor.service.unlink import unlink


@click.command()
@click.argument("commit")
@click.argument("session", required=False)
@json_option
def command(commit: str, session: str | None, as_json: bool) -> None:
    """Remove a session, or every session, from a commit's story, whatever is found later.

    \b
    Examples:
      whyfor unlink 4be07d1
      whyfor unlink HEAD 3f05
    """
    removed = unlink(config.load(), Path.cwd(), commit, session)
    if as_json:
        print_json(WireUnlinked(commit, removed))
    else:
        console().print(
            f"{', '.join(removed)} no longer linked. Back again: whyfor link {commit} SESSION"
        )
