"""whyfor sessions"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.render import (
    age_text,
    agent,
    console,
    count,
    fitted,
    json_option,
    print_json,
    print_note,
    project_text,
    table,
)
from whyfor.model.query import SessionFilter
from whyfor.model.sessions import Session
from whyfor.model.text import one_line
from whyfor.model.wire.sessions import WireSession, wire_session
from whyfor.service.agents import AGENT_CHOICE
from whyfor.service.sessions import SessionFamily, excluded_note, sessions

if TYPE_CHECKING:
    from rich.text import Text


@click.command()
@click.option("--project", help="A directory, a remote URL, a name, or part of one.")
@click.option("--agent", help=f"{AGENT_CHOICE}.")
@click.option("--since", metavar="D", help="2026-05-31, yesterday, 12h, 3d, 2w …")
@click.option("--until", metavar="D", help="As --since; a date without a time means its end.")
@click.option("--branch", help="Sessions whose last branch was this one.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="0 means all."
)
@click.option("--all", "everything", is_flag=True, help="Include subagents, below their parents.")
@json_option
def command(
    project: str | None,
    agent: str | None,
    since: str | None,
    until: str | None,
    branch: str | None,
    limit: int,
    everything: bool,
    as_json: bool,
) -> None:
    """List sessions, newest first.

    \b
    Examples:
      whyfor sessions --since 3d
      whyfor sessions --project . --agent codex
      whyfor sessions --all --limit 0 --json
    """
    where = SessionFilter(project=project, agent=agent, since=since, until=until, branch=branch)
    settings = config.load()
    found = sessions(settings, where, limit=limit, everything=everything)
    left_out = excluded_note(settings)
    if left_out:
        print_note(left_out)
    if as_json:
        print_json(_json(found))
    elif found:
        _table(found)
        if limit and len(found) == limit:
            print_note(f"The newest {limit}. More: --limit 0, or --since, --project")
    elif project or agent or since or until or branch:
        print_note("No session fits. Fewer filters, or: whyfor ingest")
    else:
        print_note("No session is kept yet.")


def _json(found: list[SessionFamily]) -> list[WireSession]:
    rows = []
    for family in found:
        rows.append(wire_session(family.session))
        rows += [wire_session(child) for child in family.children]
    return rows


def _table(found: list[SessionFamily]) -> None:
    numbers = ("prompts", "tools", "out")
    rows = table("", "id", "when", "project", "title", *numbers, right=numbers)
    for family in found:
        rows.add_row(*_row(family.session))
        for child in family.children:
            rows.add_row(*_row(child, branch="└ " if child is family.children[-1] else "├ "))
    out = console()
    out.print(fitted(rows, 4, out))


def _row(session: Session, branch: str = "") -> list[Text | str]:
    from rich.text import Text

    said = one_line(session.title)
    subagent = f"{session.subagent}: " if session.subagent else ""
    title = Text.assemble((branch, "dim"), (subagent, "dim"))
    title.append(said or "(no prompt)", style="" if said else "dim")
    if session.unparsed:
        title.append(f"  {session.unparsed} unparsed", style="yellow")
    shown = 14 if session.session_id.startswith(("agent-", "ses_")) else 8
    return [
        agent(session.agent),
        Text(session.session_id[:shown], style="dim" if branch else "bold"),
        age_text(session.started_at),
        project_text(session.project)[:24],
        title,
        "" if branch else str(session.prompts),
        str(session.tool_calls),
        count(session.tokens.output),
    ]
