"""whyfor task"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import json_option, print_json, print_note
from whyfor.model.tasks import TaskSaying
from whyfor.model.text import one_line
from whyfor.model.wire.tasks import wire_task_statement
from whyfor.service.tasks import SpokenTask, say_task

_WORDS: dict[str, str] = {
    "start": "is in progress",
    "done": "is complete",
    "reject": "is rejected",
    "abandon": "is abandoned",
    "add": "has this session now",
    "remove": "no longer has this session",
}
session_option = click.option(
    "--session", metavar="ID", default="", help="Of this session. Default: the one this runs in."
)
reason_option = click.option("--reason", metavar="TEXT", default="", help="Why, in your words.")


@click.group()
def command() -> None:
    """Say that a task begins, is done, is rejected or is given up.

    An agent can say it of the session it runs in; you can say it of any session, or of the task as
    a whole, also to correct what was found. What you say is kept and wins over what was found
    before it.

    \b
    Examples:
      whyfor task start SHOP-12
      whyfor task done SHOP-12
      whyfor task reject SHOP-12 --reason "Too slow for large baskets"
      whyfor task add SHOP-12 --session 3f05
    """


@command.command()
@click.argument("task", metavar="TASK")
@session_option
@reason_option
@json_option
def start(task: str, session: str, reason: str, as_json: bool) -> None:
    """Say that work on a task begins, or goes on."""
    _say("start", task, session, reason, as_json=as_json)


@command.command()
@click.argument("task", metavar="TASK")
@session_option
@reason_option
@json_option
def done(task: str, session: str, reason: str, as_json: bool) -> None:
    """Say that a task is complete."""
    _say("done", task, session, reason, as_json=as_json)


@command.command()
@click.argument("task", metavar="TASK")
@session_option
@reason_option
@json_option
def reject(task: str, session: str, reason: str, as_json: bool) -> None:
    """Say that the work on a task is not wanted."""
    _say("reject", task, session, reason, as_json=as_json)


@command.command()
@click.argument("task", metavar="TASK")
@session_option
@reason_option
@json_option
def abandon(task: str, session: str, reason: str, as_json: bool) -> None:
    """Say that nobody works on a task any more."""
    _say("abandon", task, session, reason, as_json=as_json)


@command.command()
@click.argument("task", metavar="TASK")
@click.option("--session", metavar="ID", required=True, help="The session.")
@json_option
def add(task: str, session: str, as_json: bool) -> None:
    """Say that a session worked on a task."""
    _say("add", task, session, "", as_json=as_json)


@command.command()
@click.argument("task", metavar="TASK")
@click.option("--session", metavar="ID", required=True, help="The session.")
@json_option
def remove(task: str, session: str, as_json: bool) -> None:
    """Say that a session did not work on a task."""
    _say("remove", task, session, "", as_json=as_json)


def _say(action: TaskSaying, task: str, session: str, reason: str, *, as_json: bool) -> None:
    spoken = SpokenTask(task, action, session, reason)
    said = say_task(config.load(), spoken, Path.cwd())
    if as_json:
        print_json(wire_task_statement(said))
    else:
        print_note(f"{one_line(said.key)} {_WORDS[action]}.")
