"""whyfor log"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import (
    age,
    agent,
    console,
    fitted,
    json_option,
    note,
    one_line,
    print_json,
    table,
)
from whyfor.model.stories import CommitStory
from whyfor.service.log import commit_story_json, log

_SCREEN = 50
CONFIDENCE = {"high": "●●●", "medium": "●●○", "low": "●○○"}


@click.command()
@click.argument("revisions", required=False, metavar="[REV-RANGE]")
@click.option(
    "--all", "everywhere", is_flag=True, help="Every branch and tag, not only where you are."
)
@click.option(
    "--limit", type=click.IntRange(min=0), help="0 is all; 50 unless you give a range or --json."
)
@json_option
def command(revisions: str | None, everywhere: bool, limit: int | None, as_json: bool) -> None:
    """Commits and their stories, newest first; commits of one request under the first of them.

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
        print_json([commit_story_json(told) for told in found])
        return
    if not found:
        note("No commits here." if revisions is None else f"No commits in {revisions}.")
        return
    _table(found)
    stories = sum(1 for told in found if told.checkpoint and told.checkpoint.parts)
    note(f"{stories} of {len(found)} commits have a story. Read one: whyfor show COMMIT")
    if limit and len(found) == limit:
        note(f"The newest {limit}. More: --limit 0")


def _table(found: list[CommitStory]) -> None:
    right = ("prompts", "turns")
    made = table(
        "", "commit", "when", "", "title", "prompts", "turns", "sure", "evidence", right=right
    )
    for told, depth, last in _nested(found):
        _row(made, told, ("└ " if last else "├ ") if depth else "")
    out = console()
    out.print(fitted(made, 4, out))


def _nested(found: list[CommitStory]) -> list[tuple[CommitStory, int, bool]]:
    """Where the newest of a group stands, the group stands: its root first, then what followed."""
    groups: dict[str, list[CommitStory]] = {}
    for told in found:
        key = (
            told.checkpoint.group_root
            if told.checkpoint and told.checkpoint.parts
            else told.commit.sha
        )
        groups.setdefault(key, []).append(told)
    rows: list[tuple[CommitStory, int, bool]] = []
    for members in groups.values():
        root, *rest = reversed(members)
        rows.append((root, 0, False))
        rows += [(told, 1, told is rest[-1]) for told in rest]
    return rows


def _row(made: object, told: CommitStory, branch: str) -> None:
    from rich.text import Text

    checkpoint = told.checkpoint
    parts = checkpoint.parts if checkpoint else []
    marks = Text()
    for index, name in enumerate(dict.fromkeys(part.agent for part in parts)):
        marks.append(" " if index else "")
        marks.append_text(agent(name))
    title = (
        checkpoint.annotation.title if checkpoint and checkpoint.annotation else told.commit.subject
    )
    text = Text.assemble((branch, "dim"), (one_line(title), "" if parts else "dim"))
    if checkpoint and checkpoint.superseded_by:
        text.append(f"  superseded by {checkpoint.superseded_by[:8]}", style="yellow")
    made.add_row(  # type: ignore[attr-defined]
        Text("●", style="bold")
        if parts
        else Text("⋈" if told.commit.is_merge else "·", style="dim"),
        Text(told.commit.sha[:8], style="bold" if parts else "dim"),
        age(told.commit.committed_at),
        marks,
        text,
        str(sum(part.prompts for part in parts)) if parts else "",
        str(sum(part.turns for part in parts)) if parts else "",
        CONFIDENCE.get(checkpoint.confidence or "", "") if checkpoint else "",
        Text((checkpoint.evidence or "") if checkpoint else "", style="dim"),
    )
