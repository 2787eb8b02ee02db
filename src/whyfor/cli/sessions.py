"""whyfor sessions"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.render import (
    age,
    agent,
    console,
    count,
    fitted,
    json_option,
    note,
    print_json,
    project,
    table,
)
from whyfor.model.sessions import Session
from whyfor.model.text import one_line
from whyfor.service.exclude import excluded_note
from whyfor.service.sessions import SessionFamily, SessionFilter, session_json, sessions


@click.command()
@click.option("--project", help="A directory, a remote URL, a name, or part of one.")
@click.option("--agent", help="claude, codex, gemini, copilot or opencode.")
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
    if left_out := excluded_note(settings):
        note(left_out)
    if as_json:
        print_json([session_json(s) for item in found for s in (item.session, *item.children)])
        return
    if not found:
        filtered = project or agent or since or until or branch
        note(
            "No session fits. Fewer filters, or: whyfor ingest"
            if filtered
            else "No session is kept yet."
        )
        return
    _table(found)
    if limit and len(found) == limit:
        note(f"The newest {limit}. More: --limit 0, or --since, --project")


def _table(found: list[SessionFamily]) -> None:
    made = table(
        "",
        "id",
        "when",
        "project",
        "title",
        "prompts",
        "tools",
        "out",
        right=("prompts", "tools", "out"),
    )
    for item in found:
        _row(made, item.session)
        for index, child in enumerate(item.children):
            _row(made, child, branch="└ " if index == len(item.children) - 1 else "├ ")
    out = console()
    out.print(fitted(made, 4, out))


def _row(made: object, session: Session, branch: str = "") -> None:
    from rich.text import Text

    said = one_line(session.title)
    title = Text.assemble(
        (branch, "dim"), (f"{session.subagent}: " if session.subagent else "", "dim")
    )
    title.append(said or "(no prompt)", style="" if said else "dim")
    if session.unparsed:
        title.append(f"  {session.unparsed} unparsed", style="yellow")
    ident = session.session_id
    made.add_row(  # type: ignore[attr-defined]
        agent(session.agent),
        Text(
            ident[:14] if ident.startswith(("agent-", "ses_")) else ident[:8],
            style="dim" if branch else "bold",
        ),
        age(session.started_at),
        project(session.project)[:24],
        title,
        str(session.prompts) if not branch else "",
        str(session.tool_calls),
        count(session.tokens.output),
    )
