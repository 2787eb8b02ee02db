"""whyfor login"""

from __future__ import annotations

import sys

import click
import msgspec

from whyfor import config
from whyfor.cli.render import json_option, print_json
from whyfor.model.text import label
from whyfor.service.login import (
    LoginState,
    begin_login,
    choose_server,
    finish_login,
    login_with_token,
)
from whyfor.terminal import say


@click.command()
@click.argument("url", required=False)
@click.option("--token", "with_token", is_flag=True, help="Read a personal token from stdin.")
@json_option
def command(url: str | None, with_token: bool, as_json: bool) -> None:
    """Let a team server know this machine: compare a code in your browser.

    The token is kept in a file that only you can read.

    \b
    Examples:
      whyfor login https://whyfor.example
      whyfor login https://whyfor.example --token < token.txt
    """
    settings = config.load()
    server = choose_server(settings, url)
    if with_token:
        found = login_with_token(settings, server, sys.stdin.read())
    else:
        login = begin_login(server)
        say(f"Open {label(login.verification_uri)} and enter {label(login.user_code)}", stderr=True)
        say("Waiting for you to let this machine in …", stderr=True)
        found = finish_login(settings, server, login)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        say(login_line(found))


def login_line(found: LoginState) -> str:
    """Say whom a server knows this machine as."""
    projects = ", ".join(map(label, found.projects)) or "no project yet"
    return f"{found.url} knows you as {label(found.name)} <{label(found.email)}>: {projects}"
