"""whyfor diff"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, print_note, printed_ids
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.model.reports import CommitRange
from whyfor.model.text import one_line, plural, tokens_text
from whyfor.model.wire.commits import wire_commit_range
from whyfor.service.diff import compare_commits

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B", default="HEAD")
@json_option
def command(old: str, new: str, as_json: bool) -> None:
    """Show what was said between two commits: sessions, messages, tokens and prompts, after A, up
    to and including B.

    \b
    Examples:
      whyfor diff main HEAD
      whyfor diff HEAD~3
    """
    found = compare_commits(config.load(), Path.cwd(), old, new)
    if as_json:
        print_json(wire_commit_range(found))
        return
    if not found.commits:
        print_note(f"No commits in {old}..{new}.")
        return
    _render(found)


def _render(found: CommitRange) -> None:
    from rich.text import Text

    out = console()
    stories = sum(1 for told in found.commits if told.checkpoint and told.checkpoint.parts)
    commits, messages = plural(len(found.commits), "commit"), plural(found.messages, "message")
    out.print(f"{commits}, {stories} with a story; {messages}")
    if found.sessions:
        out.print(tokens_text(found.tokens), style="dim")
        out.print()
        _render_sessions(found, out)
    for said in found.prompts:
        out.print()
        words = f"  {one_line(said.text)[:400]}"
        out.print(Text.assemble(("▌ ", "bold #6f7ee0"), (said.role, "dim"), words))


def _render_sessions(found: CommitRange, out: Console) -> None:
    headings = ("agent", "session", "messages", "title")
    rows = FittedTable(*headings, title="title", right=("messages",), drop=("messages",))
    ids = printed_ids(session for session, _ in found.sessions)
    for session, number in found.sessions:
        title = one_line(session.title)
        rows.add(AgentCell(session.agent), ids[session.name], f"{number:,}", title)
    rows.print(out)
