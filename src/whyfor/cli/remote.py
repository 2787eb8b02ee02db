"""whyfor remote"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from whyfor import config
from whyfor.cli.render import age_text, console, json_option, moment_text, print_json
from whyfor.model.sync import SHARES
from whyfor.model.text import plural
from whyfor.service.remote import RemoteState, add_remote, list_remotes, remove_remote
from whyfor.terminal import say


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Share the stories of a repository with a team, or stop sharing them.

    Nothing leaves this machine before you have seen what would, and agreed: whyfor sync

    \b
    Examples:
      whyfor remote add https://whyfor.example
      whyfor remote add git+ssh://git@host/team/stories.git
      whyfor remote status
      whyfor remote remove

    Without a command: what is shared, and how things stand.
    """
    if ctx.invoked_subcommand is None:
        _show(as_json)


@command.command("add")
@click.argument("url")
@click.option("--project", metavar="NAME", help="The team's project. Default: of the same name.")
@click.option(
    "--share",
    type=click.Choice(SHARES),
    default="push",
    show_default=True,
    help="What is shared: what was pushed, every session, or what you name.",
)
@json_option
def add(url: str, project: str | None, share: str, as_json: bool) -> None:
    """Share this repository with a team server, or through a git repository for stories."""
    found = add_remote(config.load(), Path.cwd(), url, project, share)
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    if found.team_project:
        say(f"{found.project} is shared with {found.team_project} at {found.url} ({found.share}).")
    else:
        say(f"{found.project} is shared through {found.url} ({found.share}).")
        say("There is no search, and there are no roles: who can read it can read every story.")
    if found.reads_only:
        say("You read what others share. Nothing of yours leaves: you are a viewer of the project.")
    elif not found.confirmed:
        say("Nothing has left yet. See what would, and agree: whyfor sync")


@command.command("status")
@json_option
def status(as_json: bool) -> None:
    """Show what is shared, what waits, and what went wrong."""
    _show(as_json)


def _show(as_json: bool) -> None:
    found = list_remotes(config.load())
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    if not found:
        say("Nothing leaves this machine. Share a repository: whyfor remote add URL")
    for each in found:
        _render(each)


@command.command("remove")
@json_option
def remove(as_json: bool) -> None:
    """Stop sharing this repository. What was sent stays with the team."""
    gone = remove_remote(config.load(), Path.cwd())
    if as_json:
        print_json(msgspec.to_builtins(gone))
        return
    say(f"No longer shared with {gone.url}. To take back what was sent: whyfor keep-local ID")


def _render(found: RemoteState) -> None:
    out = console()
    where = f"{found.url}  {found.team_project}".rstrip()
    out.print(f"{found.project}  {where}", soft_wrap=True)
    words = [f"shares {_SHARE[found.share]}"]
    if found.paused:
        words.append("paused")
    if not found.confirmed:
        words.append("you have not agreed yet: whyfor sync")
    if not found.logged_in:
        words.append(f"nobody is logged in: whyfor login {found.url}")
    out.print(f"  {', '.join(words)}", style="dim", soft_wrap=True)
    waiting = plural(found.waiting, "story", "stories") + " waiting"
    if found.oldest_waiting is not None:
        waiting += f" (oldest {age_text(found.oldest_waiting)})"
    out.print(
        f"  {waiting}, {found.sent} sent, {found.refused} refused, "
        f"{found.held} held back, {found.local} not pushed"
    )
    if found.error:
        again = f"; again {moment_text(found.next_try)}" if found.next_try else ""
        out.print(f"  {found.error}{again}", style="yellow", soft_wrap=True)


_SHARE = {
    "push": "what was pushed",
    "all": "every session",
    "ask": "what you name: whyfor share ID",
}
