"""whyfor restore"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, printed_ids
from whyfor.model.errors import Busy, NotFound
from whyfor.model.sessions import Session
from whyfor.model.text import plural
from whyfor.service.restore import RestoreReport, RestoreRequest, open_sessions, restore, wanted
from whyfor.service.shared import shared_session, shared_story
from whyfor.terminal import confirm

if TYPE_CHECKING:
    from whyfor.service.shared import SharedReading

_TURNS = 5


@click.command()
@click.argument("commit", required=False, metavar="[COMMIT|SESSION]")
@click.option("--session", help="Only this session: up to COMMIT, or all of it without COMMIT.")
@click.option(
    "--agent",
    help="Resume in this agent, e.g. claude, codex, gemini. Other sessions are converted.",
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
    wish, settings = _wanted(settings, commit, session, agent, cwd)
    if brief:
        wish = msgspec.structs.replace(wish, turns=turns or _TURNS)
    if not yes and (busy := open_sessions(settings, cwd)):
        _confirm(busy, as_json)
    made = restore(settings, wish)
    if as_json:
        print_json(made)
    else:
        _tell(made)


def _wanted(
    settings: config.Settings, commit: str | None, session: str | None, agent: str | None, cwd: Path
) -> tuple[RestoreRequest, config.Settings]:
    """Return what is to be restored, and where it is kept: here, or in what others shared."""
    try:
        return wanted(settings, commit, session, agent, cwd), settings
    except NotFound:
        shared = _shared(settings, commit, session, cwd)
        if shared is None:
            raise
        wish = wanted(shared.settings, shared.name, None, agent, cwd)
        warning = f"these are words of {shared.who}, not yours: read them before you go on"
        titled = msgspec.structs.replace(
            wish, title=f"{shared.label}. {wish.title}", warnings=[*wish.warnings, warning]
        )
        return titled, shared.settings


def _shared(
    settings: config.Settings, commit: str | None, session: str | None, cwd: Path
) -> SharedReading | None:
    """Return what somebody shared of a commit, or of a session."""
    if session is not None:
        return shared_session(settings, session)[0] if commit is None else None
    found, _ = shared_story(settings, commit, cwd)
    if found is None and commit is not None:
        found, _ = shared_session(settings, commit)
    return found


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
