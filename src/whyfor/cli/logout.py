"""whyfor logout"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.render import json_option, print_json
from whyfor.service.login import choose_server, logout
from whyfor.terminal import say


@click.command()
@click.argument("url", required=False)
@json_option
def command(url: str | None, as_json: bool) -> None:
    """Delete the token of a team server from this machine.

    The server revokes it, if it answers. What waits to be sent stays in the outbox.

    \b
    Examples:
      whyfor logout
    """
    settings = config.load()
    server = choose_server(settings, url)
    logout(settings, server)
    if as_json:
        print_json({"url": server})
    else:
        say(f"Logged out of {server}.")
