"""whyfor status"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.pause import paused_line
from whyfor.cli.render import age_text, agent, console, json_option, print_json, printed_ids
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.model.reports import LastCapture, OpenWork, StatusReport
from whyfor.model.sessions import Session
from whyfor.model.stories import CommitStory
from whyfor.model.text import one_line, plural
from whyfor.model.wire.reports import wire_status_report
from whyfor.service.agents import agent_title
from whyfor.service.status import status, waiting_stories

if TYPE_CHECKING:
    from rich.console import Console

_FILES = 4


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Show the state here: the last commit's story, active sessions, uncommitted work, capture.

    \b
    Examples:
      whyfor status
      whyfor status --json
    """
    settings = config.load()
    found = status(settings, Path.cwd())
    if as_json:
        print_json(wire_status_report(found))
        return
    _render(found)
    _render_sharing(settings)


def _render(found: StatusReport) -> None:
    out = console()
    for pause in found.paused:
        out.print(paused_line(pause), style="yellow")
        out.print(f"  Record again: {pause.resume}", style="dim")
    if found.head is None:
        out.print("No commit here.", style="dim")
    else:
        _render_head(out, found.head)
    out.print()
    if found.active:
        _render_active(out, found.active)
    else:
        out.print(_none_open(found.last), style="dim")
    for item in found.open:
        _render_open(out, item)
    if found.unread:
        out.print()
        out.print(_unread(found.unread), style="yellow")
    out.print()
    _render_capture(out, found.capture)


def _render_sharing(settings: config.Settings) -> None:
    """Say how much waits for the team's server, and since when; nothing if all was sent."""
    waiting = waiting_stories(settings)
    if waiting is None:
        return
    number = plural(waiting.number, "story", "stories")
    line = f"Not sent to the team yet: {number}, the oldest {age_text(waiting.since)}."
    console().print(f"{line} See: whyfor remote status", style="yellow" if waiting.error else "dim")
    if waiting.error:
        console().print(f"  {one_line(waiting.error)}", style="yellow")


def _render_head(out: Console, head: CommitStory) -> None:
    from rich.text import Text

    sha, subject = head.commit.sha[:8], one_line(head.commit.subject)
    out.print(Text.assemble(("HEAD  ", "dim"), (sha, "bold"), f"  {subject}"))
    parts = head.checkpoint.parts if head.checkpoint else []
    ids = printed_ids(parts)
    for part in parts:
        line = agent(part.agent)
        line.append(f" {ids[part.name]}  {plural(part.new_messages, 'message')}", style="")
        line.append(f"  {part.evidence}, {part.confidence} confidence", style="dim")
        out.print(Text.assemble("      ", line))
    if not parts:
        out.print(f"      no story: {head.reason_text}", style="dim")


def _render_active(out: Console, sessions: list[Session]) -> None:
    rows = FittedTable(
        *("agent", "active", "last word", "title", "messages"),
        title="title",
        right=("messages",),
        drop=("messages",),
    )
    ids = printed_ids(sessions)
    for session in sessions:
        rows.add(
            AgentCell(session.agent),
            ids[session.name],
            age_text(session.ended_at),
            one_line(session.title) or "(no prompt)",
            str(session.messages),
        )
    rows.print(out)


def _render_open(out: Console, item: OpenWork) -> None:
    from rich.text import Text

    out.print()
    out.print(Text.assemble("Not in a commit yet: ", agent(item.session.agent), f" {_open(item)}"))
    for path in item.files[:_FILES]:
        out.print(f"      {path}", style="dim")
    if len(item.files) > _FILES:
        out.print(f"      … {len(item.files) - _FILES} more", style="dim")


def _render_capture(out: Console, captures: list[LastCapture]) -> None:
    rows = FittedTable("agent", "last record", "last hook", title="agent", wrap=True)
    for capture in captures:
        if capture.last_record_at or capture.last_hook_at:
            rows.add(
                agent_title(capture.agent),
                age_text(capture.last_record_at) if capture.last_record_at else "never",
                age_text(capture.last_hook_at) if capture.last_hook_at else "never",
            )
    rows.print(out)


def _unread(unread: dict[str, str]) -> str:
    """Return one line: how many files could not be compared, and the first with its reason."""
    path, reason = min(unread.items())
    more = f" and {plural(len(unread) - 1, 'more file')}" if len(unread) > 1 else ""
    return one_line(f"Could not look at {path}{more}: {reason}")


def _none_open(last: Session | None) -> str:
    if last is None:
        return "No session was open here in the last day."
    title = one_line(last.title)[:50] or "(no prompt)"
    return (
        f"No session is open here. The last was {agent_title(last.agent)} "
        f"{printed_ids([last])[last.name]} {title} ({age_text(last.ended_at)})."
    )


def _open(item: OpenWork) -> str:
    ident = printed_ids([item.session])[item.session.name]
    title = one_line(item.session.title)[:50]
    files = plural(len(item.files), "file")
    return f"{ident} {title}, {plural(item.prompts, 'prompt')}, {files}"
