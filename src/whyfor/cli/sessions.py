"""whyfor sessions"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.filters import agent_option, project_option, since_option, until_option
from whyfor.cli.render import (
    age_text,
    console,
    count,
    json_option,
    print_json,
    print_note,
    printed_ids,
    project_text,
)
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.model.query import SESSION_SORTS, SessionFilter
from whyfor.model.sessions import Session
from whyfor.model.text import one_line
from whyfor.model.wire.sessions import WireSession, wire_session
from whyfor.service.sessions import SessionFamily, excluded_note, sessions

if TYPE_CHECKING:
    from rich.text import Text


@click.command()
@project_option
@agent_option
@since_option
@until_option
@click.option("--branch", help="Sessions whose last branch was this one.")
@click.option(
    "--file", metavar="PATH", help="Sessions that changed this file: a path, or any end of one."
)
@click.option(
    "--sort",
    type=click.Choice(SESSION_SORTS),
    default="last",
    show_default=True,
    help="By last activity, by beginning, or by tokens used.",
)
@click.option(
    "-n", "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="0 means all."
)
@click.option("--all", "everything", is_flag=True, help="Include subagents, below their parents.")
@json_option
def command(
    project: str | None,
    agent: str | None,
    since: str | None,
    until: str | None,
    branch: str | None,
    file: str | None,
    sort: str,
    limit: int,
    everything: bool,
    as_json: bool,
) -> None:
    """List sessions, last active first.

    \b
    Examples:
      whyfor sessions --since 3d
      whyfor sessions --project . --agent codex
      whyfor sessions --file auth/login.py
      whyfor sessions --sort tokens -n 10
      whyfor sessions --all --limit 0 --json
    """
    where = SessionFilter(
        project=project, agent=agent, since=since, until=until, branch=branch, file=file
    )
    settings = config.load()
    found = sessions(settings, where, limit=limit, everything=everything, sort=sort)
    left_out = excluded_note(settings)
    if left_out:
        print_note(left_out)
    if as_json:
        print_json(_json(found))
    elif found:
        _table(found, sort)
        if limit and len(found) == limit:
            print_note(f"The first {limit}. More: --limit 0, or --since, --project")
    elif where != SessionFilter():
        print_note("No session fits. Fewer filters, or: whyfor ingest")
    else:
        print_note("No session is kept yet.")


def _json(found: list[SessionFamily]) -> list[WireSession]:
    rows = []
    for family in found:
        rows.append(wire_session(family.session))
        rows += [wire_session(child) for child in family.children]
    return rows


def _table(found: list[SessionFamily], sort: str) -> None:
    last = "tokens" if sort == "tokens" else "out"
    rows = FittedTable(
        *("agent", "id", "when", "project", "title", "prompts", "tools", last),
        title="title",
        right=("prompts", "tools", last),
        drop=("tools", "prompts", last),
        fold=("project", "when"),
    )
    listed = [each for family in found for each in (family.session, *family.children)]
    ids = printed_ids(listed)
    for family in found:
        rows.add(*_row(family.session, ids, sort))
        for child in family.children:
            branch = "└ " if child is family.children[-1] else "├ "
            rows.add(*_row(child, ids, sort, branch))
    rows.print(console())


def _row(
    session: Session, ids: dict[str, str], sort: str, branch: str = ""
) -> list[Text | str | AgentCell]:
    from rich.text import Text

    said = one_line(session.title)
    subagent = f"{session.subagent}: " if session.subagent else ""
    title = Text.assemble((branch, "dim"), (subagent, "dim"))
    title.append(said or "(no prompt)", style="" if said else "dim")
    if session.unparsed:
        title.append(f"  {session.unparsed} unparsed", style="yellow")
    when = session.started_at if sort == "started" else session.ended_at or session.started_at
    used = session.tokens.total if sort == "tokens" else session.tokens.output
    return [
        AgentCell(session.agent),
        Text(ids[session.name], style="dim" if branch else "bold"),
        age_text(when),
        project_text(session.project),
        title,
        "" if branch else str(session.prompts),
        str(session.tool_calls),
        count(used),
    ]
