"""whyfor whoami"""

from __future__ import annotations

import click
import msgspec

from whyfor import config
from whyfor.cli.login import login_line
from whyfor.cli.render import json_option, print_json
from whyfor.service.login import choose_server, who_am_i
from whyfor.terminal import say


@click.command()
@click.argument("url", required=False)
@json_option
def command(url: str | None, as_json: bool) -> None:
    """Ask a team server whom it knows this machine as.

    \b
    Examples:
      whyfor whoami
    """
    settings = config.load()
    found = who_am_i(settings, choose_server(settings, url))
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        say(login_line(found))
