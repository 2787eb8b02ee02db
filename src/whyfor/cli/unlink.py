"""whyfor unlink"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json
from whyfor.model.wire.answers import WireUnlinked
from whyfor.service.unlink import undo_unlink, unlink


@click.command()
@click.argument("commit")
@click.argument("session", required=False)
@click.option("--undo", is_flag=True, help="Link again what was unlinked, by its evidence.")
@json_option
def command(commit: str, session: str | None, undo: bool, as_json: bool) -> None:
    """Remove a session, or every session, from a commit's story, whatever is found later.

    `whyfor show` says which sessions were unlinked, and --undo links them again.

    \b
    Examples:
      whyfor unlink 4be07d1
      whyfor unlink HEAD 3f05
      whyfor unlink --undo 4be07d1
    """
    settings = config.load()
    if undo:
        restored = undo_unlink(settings, Path.cwd(), commit, session)
        if as_json:
            print_json(WireUnlinked(commit, [], restored))
        else:
            console().print(
                f"{', '.join(restored)}: linked by evidence again. Read it: whyfor show {commit}"
            )
        return
    removed = unlink(settings, Path.cwd(), commit, session)
    if as_json:
        print_json(WireUnlinked(commit, removed, []))
    else:
        console().print(
            f"{', '.join(removed)} no longer linked. Undo: whyfor unlink --undo {commit}"
        )
