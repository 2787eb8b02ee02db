"""whyfor log"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.render import (
    age_text,
    agent,
    console,
    fitted,
    json_option,
    print_json,
    print_note,
    table,
)
from whyfor.model.checkpoints import Part
from whyfor.model.stories import CommitStory
from whyfor.model.text import one_line
from whyfor.model.wire.commits import wire_commit
from whyfor.service.log import log

if TYPE_CHECKING:
    from rich.text import Text

_SCREEN = 50
CONFIDENCE = {"high": "●●●", "medium": "●●○", "low": "●○○"}


@click.command()
@click.argument("revisions", required=False, metavar="[REV-RANGE]")
@click.option("--all", "everywhere", is_flag=True, help="Every branch and tag.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help="0 means all. Default: 50, or all with a range or --json.",
)
@json_option
def command(revisions: str | None, everywhere: bool, limit: int | None, as_json: bool) -> None:
    """List commits and their stories, newest first; commits of one request below the first of
    them.

    \b
    Examples:
      whyfor log
      whyfor log main..HEAD
      whyfor log --all --json
    """
    if everywhere and revisions:
        raise click.UsageError("--all has every commit; leave the range away")
    if limit is None:
        limit = 0 if as_json or revisions else _SCREEN
    found = log(config.load(), Path.cwd(), revisions, limit, everywhere=everywhere)
    if as_json:
        print_json([wire_commit(told) for told in found])
    elif found:
        _render(found, limit)
    else:
        print_note("No commits here." if revisions is None else f"No commits in {revisions}.")


def _render(found: list[CommitStory], limit: int) -> None:
    _table(found)
    stories = sum(1 for told in found if _parts(told))
    print_note(f"{stories} of {len(found)} commits have a story. Read one: whyfor show COMMIT")
    if limit and len(found) == limit:
        print_note(f"The newest {limit}. More: --limit 0")


def _parts(told: CommitStory) -> list[Part]:
    return told.checkpoint.parts if told.checkpoint else []


def _table(found: list[CommitStory]) -> None:
    rows = table(
        *("", "commit", "when", "", "title", "prompts", "turns", "sure", "evidence"),
        right=("prompts", "turns"),
    )
    for told, branch in _nested(found):
        rows.add_row(*_row(told, branch))
    out = console()
    out.print(fitted(rows, 4, out))


def _nested(found: list[CommitStory]) -> Iterator[tuple[CommitStory, str]]:
    """Yield commits with the branch mark of their group; a group stands where its newest commit
    is, root first."""
    groups: dict[str, list[CommitStory]] = {}
    for told in found:
        key = told.commit.sha
        if told.checkpoint and told.checkpoint.parts:
            key = told.checkpoint.group_root
        groups.setdefault(key, []).append(told)
    for members in groups.values():
        root, *rest = reversed(members)
        yield root, ""
        for told in rest:
            yield told, "└ " if told is rest[-1] else "├ "


def _row(told: CommitStory, branch: str) -> list[Text | str]:
    from rich.text import Text

    parts = _parts(told)
    names = dict.fromkeys(part.agent for part in parts)
    style = "bold" if parts else "dim"
    sure = evidence = ""
    if told.checkpoint:
        sure = CONFIDENCE.get(told.checkpoint.confidence or "", "")
        evidence = told.checkpoint.evidence or ""
    return [
        Text(_sign(told), style=style),
        Text(told.commit.sha[:8], style=style),
        age_text(told.commit.committed_at),
        Text(" ").join(agent(name) for name in names),
        _title(told, branch),
        str(sum(part.prompts for part in parts)) if parts else "",
        str(sum(part.turns for part in parts)) if parts else "",
        sure,
        Text(evidence, style="dim"),
    ]


def _title(told: CommitStory, branch: str) -> Text:
    from rich.text import Text

    checkpoint, title = told.checkpoint, told.commit.subject
    if checkpoint and checkpoint.annotation:
        title = checkpoint.annotation.title
    text = Text.assemble((branch, "dim"), (one_line(title), "" if _parts(told) else "dim"))
    if checkpoint and checkpoint.superseded_by:
        text.append(f"  superseded by {checkpoint.superseded_by[:8]}", style="yellow")
    return text


def _sign(told: CommitStory) -> str:
    if _parts(told):
        return "●"
    return "⋈" if told.commit.is_merge else "·"
