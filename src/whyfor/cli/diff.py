"""whyfor diff"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import agent, console, fitted, json_option, note, print_json, table
from whyfor.model.reports import CommitRange
from whyfor.model.text import one_line, plural, spent
from whyfor.service.status import between, between_json


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
    found = between(config.load(), Path.cwd(), old, new)
    if as_json:
        print_json(between_json(found))
        return
    if not found.commits:
        note(f"No commits in {old}..{new}.")
        return
    _tell(found)


def _tell(found: CommitRange) -> None:
    from rich.text import Text

    out = console()
    stories = sum(1 for told in found.commits if told.checkpoint and told.checkpoint.parts)
    out.print(
        f"{plural(len(found.commits), 'commit')}, {stories} with a story; "
        f"{plural(found.messages, 'message')}"
    )
    if found.sessions:
        out.print(spent(found.tokens), style="dim")
        out.print()
        made = table("", "session", "messages", "title", right=("messages",))
        for session, messages in found.sessions:
            made.add_row(
                agent(session.agent), session.session_id[:8], str(messages), one_line(session.title)
            )
        out.print(fitted(made, 3, out))
    for said in found.prompts:
        out.print()
        out.print(
            Text.assemble(
                ("▌ ", "bold #6f7ee0"), (said.role, "dim"), f"  {one_line(said.text)[:400]}"
            )
        )
