"""whyfor status"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.agents import AGENTS
from whyfor.cli.pause import paused_line
from whyfor.cli.render import (
    age,
    agent,
    console,
    fitted,
    json_option,
    one_line,
    plural,
    print_json,
    table,
)
from whyfor.model.reports import OpenWork, StatusReport
from whyfor.service.status import status, status_json

_FILES = 4


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Where things stand here: the last commit's story, sessions at work, work in no commit yet,
    capture.

    \b
    Examples:
      whyfor status
      whyfor status --json
    """
    found = status(config.load(), Path.cwd())
    if as_json:
        print_json(status_json(found))
        return
    _tell(found)


def _tell(found: StatusReport) -> None:
    from rich.text import Text

    out = console()
    for pause in found.paused:
        out.print(paused_line(pause), style="yellow")
        out.print(f"  Record again: {pause.resume}", style="dim")
    head = found.head
    if head is None:
        out.print("No commit here.", style="dim")
    else:
        line = Text.assemble(
            ("HEAD  ", "dim"), (head.commit.sha[:8], "bold"), f"  {one_line(head.commit.subject)}"
        )
        out.print(line)
        parts = head.checkpoint.parts if head.checkpoint else []
        for part in parts:
            told = agent(part.agent)
            told.append(f" {part.session_id[:8]}  {plural(part.new_messages, 'message')}", style="")
            told.append(f"  {part.evidence}, {part.confidence} confidence", style="dim")
            out.print(Text.assemble("      ", told))
        if not parts:
            out.print(f"      no story: {head.reason}", style="dim")
    out.print()
    if found.active:
        made = table("", "active", "last word", "title", "messages", right=("messages",))
        for session in found.active:
            title = one_line(session.title) or "(no prompt)"
            made.add_row(
                agent(session.agent),
                session.session_id[:8],
                age(session.ended_at),
                title,
                str(session.messages),
            )
        out.print(fitted(made, 3, out))
    else:
        out.print("No session was active here in the last half hour.", style="dim")
    for item in found.open:
        out.print()
        out.print(
            Text.assemble("Not in a commit yet: ", agent(item.session.agent), f" {_open(item)}")
        )
        for path in item.files[:_FILES]:
            out.print(f"      {path}", style="dim")
        if len(item.files) > _FILES:
            out.print(f"      … {len(item.files) - _FILES} more", style="dim")
    if found.unread:
        out.print()
        out.print(_unread(found.unread), style="yellow")
    out.print()
    made = table("", "agent", "last record", "last hook")
    for capture in found.capture:
        if capture.last_record_at or capture.last_hook_at:
            made.add_row(
                agent(capture.agent),
                AGENTS[capture.agent].title,
                age(capture.last_record_at) if capture.last_record_at else "never",
                age(capture.last_hook_at) if capture.last_hook_at else "never",
            )
    out.print(made)


def _unread(unread: dict[str, str]) -> str:
    """One line: how many files were not looked at, and the first with its reason."""
    path, reason = min(unread.items())
    more = f" and {plural(len(unread) - 1, 'more file')}" if len(unread) > 1 else ""
    return one_line(f"Could not look at {path}{more}: {reason}")


def _open(item: OpenWork) -> str:
    title = one_line(item.session.title)[:50]
    return (
        f"{item.session.session_id[:8]} {title}, {plural(item.prompts, 'prompt')}, "
        f"{plural(len(item.files), 'file')}"
    )
