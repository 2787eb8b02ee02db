"""whyfor without a command: where things stand here, and the next step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whyfor import config
from whyfor.cli.render import ago_text, console, print_note
from whyfor.model.errors import NotFound
from whyfor.model.reports import StatusReport
from whyfor.model.text import one_line, plural
from whyfor.service.agents import agent_title
from whyfor.service.init import hooked_repository
from whyfor.service.status import status

if TYPE_CHECKING:
    from rich.console import Console


def print_overview() -> None:
    settings, here = config.load(), Path.cwd()
    repository, hooked = hooked_repository(settings, here)
    out = console()
    try:
        found = status(settings, here)
    except NotFound:
        out.print("Nothing is kept yet.")
        _next(out, "whyfor init" if repository else "whyfor ingest", "whyfor demo")
        return
    _print_capture(out, found)
    if repository is None:
        out.print("No git repository here.", style="dim")
        _next(out, "whyfor sessions", "whyfor serve")
        return
    has_story = _print_repository(out, found)
    if not hooked:
        out.print("Hooks are not installed in this repository.", style="yellow")
        _next(out, "whyfor init", "whyfor log")
    else:
        _next(out, "whyfor show HEAD" if has_story else "whyfor log", "whyfor status")


def _print_capture(out: Console, found: StatusReport) -> None:
    heard = [each for each in found.capture if each.last_record_at]
    newest = max(heard, key=lambda each: each.last_record_at or 0, default=None)
    if newest is None:
        out.print("No session is stored yet.")
    else:
        agents = ", ".join(agent_title(each.agent) for each in heard)
        out.print(f"Recorded: {agents}. Last record: {ago_text(newest.last_record_at)}.")
    for pause in found.paused:
        out.print(f"Capture is paused {pause.where}. Record again: {pause.resume}", style="yellow")


def _print_repository(out: Console, found: StatusReport) -> bool:
    """Print what is known of the last commit and of open work; return whether it has a story."""
    parts = []
    if found.head is not None:
        checkpoint = found.head.checkpoint
        parts = checkpoint.parts if checkpoint else []
        commit = found.head.commit
        told = f"from {plural(len(parts), 'session')}" if parts else "without a story"
        out.print(f"HEAD {commit.sha[:8]} {told}: {one_line(commit.subject)}")
    if found.active:
        out.print(f"{plural(len(found.active), 'session')} active here.")
    if found.open:
        files = {path for item in found.open for path in item.files}
        out.print(f"Not in a commit yet: {plural(len(files), 'file')} that sessions changed.")
    return bool(parts)


def _next(out: Console, first: str, second: str) -> None:
    out.print()
    out.print(f"Next: {first}")
    out.print(f"Or:   {second}", style="dim")
    print_note("All commands: whyfor --help")
