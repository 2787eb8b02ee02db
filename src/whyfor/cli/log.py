"""whyfor log"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.filters import since_option, until_option
from whyfor.cli.render import age_text, console, json_option, print_json, print_note
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.model.checkpoints import Part
from whyfor.model.stories import UNLINKED, CommitStory
from whyfor.model.text import label, one_line
from whyfor.model.wire.commits import wire_commit
from whyfor.service.agents import AGENT_CHOICE
from whyfor.service.log import LogFilter, log
from whyfor.service.shared import with_shared_stories

if TYPE_CHECKING:
    from rich.text import Text

_SCREEN = 50
PATHS = "whyfor.log.paths"  # in the context: what stood after --
CONFIDENCE = {"high": "●●●", "medium": "●●○", "low": "●○○"}


class LogCommand(click.Command):
    """Everything after -- is a path, as in git."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[PATHS] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


@click.command(cls=LogCommand)
@click.argument("revisions", required=False, metavar="[REV-RANGE] [-- PATH...]")
@click.option("--all", "everywhere", is_flag=True, help="Every branch and tag.")
@click.option("--branch", help="This branch instead of the current one.")
@click.option("--author", metavar="A", help="Commits of this author: a part of a name or address.")
@click.option("--agent", help=f"Commits with a story of this agent: {AGENT_CHOICE}.")
@click.option("--task", metavar="ID", help="Commits that came of work on this task.")
@since_option
@until_option
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    help="0 means all. Default: 50, or all with a range or --json.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    revisions: str | None,
    everywhere: bool,
    branch: str | None,
    author: str | None,
    agent: str | None,
    task: str | None,
    since: str | None,
    until: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """List commits and their stories, newest first; commits of one request next to each other.

    \b
    Examples:
      whyfor log
      whyfor log main..HEAD
      whyfor log -n 5 -- src/app.py
      whyfor log --agent codex --since 2w
      whyfor log --all --json
    """
    if len([given for given in (everywhere, revisions, branch) if given]) > 1:
        raise click.UsageError("give one of --all, --branch and a range")
    if limit is None:
        limit = 0 if as_json or revisions else _SCREEN
    where = LogFilter(
        revisions=branch or revisions,
        paths=tuple(ctx.meta.get(PATHS, ())),
        everywhere=everywhere,
        author=author,
        agent=agent,
        task=task,
        since=since,
        until=until,
    )
    settings = config.load()
    found = log(settings, Path.cwd(), where, limit)
    found, trouble = with_shared_stories(settings, Path.cwd(), found)
    if trouble:
        print_note(f"Only what is kept here; the team's server: {label(trouble)}")
    if as_json:
        print_json([wire_commit(told) for told in found])
    elif found:
        _render(found, limit)
    elif where == LogFilter():
        print_note("No commits here.")
    else:
        print_note("No commit fits. Fewer filters show more: whyfor log")


def _render(found: list[CommitStory], limit: int) -> None:
    _table(found)
    stories = sum(1 for told in found if _parts(told))
    print_note(f"{stories} of {len(found)} commits have a story. Read one: whyfor show COMMIT")
    if limit and len(found) == limit:
        print_note(f"The newest {limit}. More: --limit 0")


def _parts(told: CommitStory) -> list[Part]:
    return told.checkpoint.parts if told.checkpoint else []


def _table(found: list[CommitStory]) -> None:
    rows = FittedTable(
        *("", "commit", "when", "agent", "title", "prompts", "turns", "sure", "evidence"),
        title="title",
        right=("prompts", "turns"),
        drop=("turns", "prompts", "evidence", "sure"),
    )
    for told, branch in _nested(found):
        rows.add(*_row(told, branch))
    rows.print(console())


def _nested(found: list[CommitStory]) -> Iterator[tuple[CommitStory, str]]:
    """Yield commits, newest first, with the mark of their group; a group stands where its newest
    commit is, and ends with the commit that its request began with."""
    groups: dict[str, list[CommitStory]] = {}
    for told in found:
        key = told.commit.sha
        if told.checkpoint and told.checkpoint.parts:
            key = told.checkpoint.group_root
        groups.setdefault(key, []).append(told)
    for members in groups.values():
        for told in members:
            yield told, _branch(members, told)


def _branch(members: list[CommitStory], told: CommitStory) -> str:
    if len(members) == 1:
        return ""
    if told is members[0]:
        return "┌ "
    return "└ " if told is members[-1] else "├ "


def _row(told: CommitStory, branch: str) -> list[Text | str | AgentCell]:
    from rich.text import Text

    parts = _parts(told)
    style = "bold" if parts else "dim"
    sure = evidence = ""
    if told.checkpoint:
        sure = CONFIDENCE.get(told.checkpoint.confidence or "", "")
        evidence = told.checkpoint.evidence or ""
    return [
        Text(_sign(told), style=style),
        Text(told.commit.sha[:8], style=style),
        age_text(told.commit.committed_at),
        AgentCell(*(part.agent for part in parts)),
        _title(told, branch),
        str(sum(part.prompts for part in parts)) if parts else "",
        str(sum(part.turns for part in parts)) if parts else "",
        sure,
        Text(evidence, style="dim"),
    ]


def _title(told: CommitStory, branch: str) -> Text:
    from rich.text import Text

    checkpoint, title = told.checkpoint, told.commit.subject
    if told.annotation:
        title = told.annotation.title
    text = Text.assemble((branch, "dim"), (one_line(title), "" if _parts(told) else "dim"))
    if told.person:
        text.append(f"  from {label(told.person)}", style="cyan")
    if checkpoint and checkpoint.superseded_by:
        text.append(f"  superseded by {checkpoint.superseded_by[:8]}", style="yellow")
    if told.unlinked and not _parts(told):
        text.append(f"  {UNLINKED}", style="dim")
    if checkpoint and checkpoint.squashed_from:
        names = ", ".join(sha[:8] for sha in checkpoint.squashed_from)
        text.append(f"  squashed from {names}", style="dim")
    return text


def _sign(told: CommitStory) -> str:
    if _parts(told):
        return "●"
    return "⋈" if told.commit.is_merge else "·"
