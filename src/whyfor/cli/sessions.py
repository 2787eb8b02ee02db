"""whyfor sessions"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from whyfor import config
from whyfor.cli.filters import (
    agent_option,
    project_option,
    since_option,
    task_option,
    until_option,
)
from whyfor.cli.render import (
    age_text,
    console,
    count,
    json_option,
    print_json,
    print_note,
    printed_ids,
    projects_apart,
)
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.model.cost import cost_of, short_cost
from whyfor.model.listing import LIST_SORTS
from whyfor.model.query import SessionFilter
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
@task_option
@click.option(
    "--sort",
    type=click.Choice(LIST_SORTS),
    default="last",
    show_default=True,
    help="By last activity, by beginning, by time worked, by tokens used, or by their price.",
)
@click.option(
    "-n", "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="0 means all."
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Unfold resumes, forks, restored copies and subagents.",
)
@json_option
def command(
    project: str | None,
    agent: str | None,
    since: str | None,
    until: str | None,
    branch: str | None,
    file: str | None,
    task: str | None,
    sort: str,
    limit: int,
    everything: bool,
    as_json: bool,
) -> None:
    """List sessions, last active first; resumes, forks and copies are part of their original.

    \b
    Examples:
      whyfor sessions --since 3d
      whyfor sessions --project . --agent codex
      whyfor sessions --file auth/login.py
      whyfor sessions --sort tokens -n 10
      whyfor sessions --all --limit 0 --json
    """
    where = SessionFilter(
        project=project,
        agent=agent,
        since=since,
        until=until,
        branch=branch,
        file=file,
        task=task,
    )
    settings = config.load()
    found = sessions(settings, where, limit=limit, everything=everything, sort=sort)
    left_out = excluded_note(settings)
    if left_out:
        print_note(left_out)
    if as_json:
        print_json(_json(found))
    elif found:
        _table(found, sort, everything=everything)
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


def _table(found: list[SessionFamily], sort: str, *, everything: bool) -> None:
    rows = FittedTable(
        *("agent", "id", "when", "project", "title", "turns", "commits", "tokens", "cost"),
        title="title",
        right=("turns", "commits", "tokens", "cost"),
        drop=("commits", "tokens" if sort == "cost" else "cost"),
        fold=("project", "turns", "cost" if sort == "cost" else "tokens", "when"),
    )
    listed = [each for family in found for each in (family.session, *family.children)]
    rows_of = [family.row.project for family in found]
    projects = projects_apart([*rows_of, *(each.project for each in listed)])
    words = _Words(printed_ids(listed), projects)
    for family in found:
        rows.add(*_row(family, words, sort))
        for child in family.children if everything else ():
            branch = "└ " if child is family.children[-1] else "├ "
            rows.add(*_child(family, child, words, branch))
    rows.print(console())


class _Words(NamedTuple):
    """What sessions and projects are called in this list."""

    ids: dict[str, str]
    projects: dict[str | None, str]


def _row(family: SessionFamily, words: _Words, sort: str) -> list[Text | str | AgentCell]:
    row, session = family.row, family.session
    mark = "lone subagent" if row.lone else row.folded
    return [
        AgentCell(row.agent),
        _id(words.ids[session.name], "bold"),
        age_text(row.began_at if sort == "started" else row.last_at),
        words.projects[row.project],
        _title(session, f"[{mark}] " if mark else ""),
        str(row.turns),
        str(row.commits) if row.commits else "",
        count(row.tokens),
        short_cost(row.cost),
    ]


def _child(
    family: SessionFamily, child: Session, words: _Words, branch: str
) -> list[Text | str | AgentCell]:
    """A part of a conversation, or a subagent, below its row."""
    part = next((part for part in family.row.parts if part.id == child.id), None)
    mark = f"{child.subagent}: " if child.subagent else ""
    if part is not None:
        mark = f"{part.words.lower()}: "
    return [
        AgentCell(child.agent),
        _id(words.ids[child.name], "dim"),
        age_text(child.ended_at or child.started_at),
        words.projects[child.project],
        _title(child, branch + mark),
        str(part.turns) if part else "",
        "",
        "" if child.unopened else count(child.tokens.total),
        "" if child.unopened else short_cost(cost_of(child.tokens)),
    ]


def _id(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(text, style=style)


def _title(session: Session, mark: str) -> Text:
    from rich.text import Text

    said = one_line(session.title)
    title = Text(mark, style="dim")
    if session.unopened:
        return title.append("nothing new in it")
    title = Text.assemble((mark, "dim"), (said or "(no prompt)", "" if said else "dim"))
    if session.unparsed:
        title.append(f"  {session.unparsed} unparsed", style="yellow")
    return title
