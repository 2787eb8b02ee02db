"""whyfor restore"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, printed_ids
from whyfor.model.errors import Busy
from whyfor.model.sessions import Session
from whyfor.model.text import plural
from whyfor.service.restore import RestoreReport, open_sessions, restore, wanted
from whyfor.terminal import confirm

_TURNS = 5


@click.command()
@click.argument("commit", required=False, metavar="[COMMIT|SESSION]")
@click.option("--session", help="Only this session: up to COMMIT, or all of it without COMMIT.")
@click.option(
    "--agent",
    help="Resume in this agent: claude, codex, gemini. Other sessions are converted.",
)
@click.option("--brief", is_flag=True, help="A summary, then only the last turns word for word.")
@click.option(
    "--turns",
    type=click.IntRange(min=1),
    help=f"How many turns --brief keeps word for word. Default: {_TURNS}.",
)
@click.option("--yes", is_flag=True, help="Do not ask when a session is open here.")
@json_option
def command(
    commit: str | None,
    session: str | None,
    agent: str | None,
    brief: bool,
    turns: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Restore the conversation behind COMMIT (default: HEAD), or SESSION, as a new session of the
    agent.

    It is written for the current directory, in the agent's own location, with a new id. Existing
    sessions are never changed.

    \b
    Examples:
      whyfor restore                        the conversation behind HEAD
      whyfor restore 126e95e --agent codex  continue in another agent
      whyfor restore --session 3f05         a whole session
      whyfor restore 3f05 --brief           a summary and its last turns
    """
    if turns is not None and not brief:
        raise click.UsageError("--turns goes with --brief.")
    settings, cwd = config.load(), Path.cwd().resolve()
    wish = wanted(settings, commit, session, agent, cwd)
    if brief:
        wish = msgspec.structs.replace(wish, turns=turns or _TURNS)
    if not yes and (busy := open_sessions(settings, cwd)):
        _confirm(busy, as_json)
    made = restore(settings, wish)
    if as_json:
        print_json(made)
    else:
        _tell(made)


def _confirm(busy: list[Session], as_json: bool) -> None:
    ids = printed_ids(busy[:3])
    named = ", ".join(f"{one.agent} {ids[f'{one.agent}:{one.session_id}']}" for one in busy[:3])
    told = f"{plural(len(busy), 'session')} open here: {named}"
    if as_json or not sys.stdin.isatty():
        raise Busy(
            told, "It will not be touched, but two may then change the same files. Go on: --yes"
        )
    if not confirm(f"{told}. Restore beside it?"):
        raise click.exceptions.Exit(1)


def _tell(made: RestoreReport) -> None:
    out = console()
    for one in made.sessions:
        out.print(f"{one['agent']} {one['session_id']}, up to event {one['up_to']}", style="dim")
    size = made.brief
    if size is not None:
        kept = f"{plural(size.turns, 'turn')} of {size.of_turns} word for word, after a summary"
        tokens = f"about {size.tokens_before:,} tokens before, {size.tokens_after:,} after"
        out.print(f"{kept}: {tokens}")
    for warning in made.warnings:
        out.print(f"! {warning}", style="yellow")
    out.print(f"Written: {made.path}")
    out.print(f"Resume it in {made.cwd}:")
    out.print(f"  {made.command}")
