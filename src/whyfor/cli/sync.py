"""whyfor sync"""

from __future__ import annotations

import sys

import click
import msgspec

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, size_text
from whyfor.config import Settings
from whyfor.model.errors import BadInput
from whyfor.model.sync import Remote
from whyfor.model.text import label, one_line, plural
from whyfor.service.sync import (
    StoryPreview,
    SyncReport,
    agree,
    preview_sync,
    remotes_to_confirm,
    sync_now,
)
from whyfor.terminal import confirm, say

_LATER = {"push": "what you push", "all": "every session", "ask": "what you name"}
_SHOWN = 20  # stories of one list


@click.command()
@click.option("--once", is_flag=True, help="Send what waits and stop. This is the default.")
@click.option(
    "--preview", "only_preview", is_flag=True, help="Show what would leave; send nothing."
)
@click.option("--yes", "-y", is_flag=True, help="Agree to the first upload without being asked.")
@json_option
def command(once: bool, only_preview: bool, yes: bool, as_json: bool) -> None:
    """Send the stories of pushed commits to the team, without secrets.

    The first time, everything that would leave is shown, and you are asked once. After that, `git
    push` is enough.

    \b
    Examples:
      whyfor sync --preview
      whyfor sync
      whyfor sync --preview --json
    """
    del once  # there is nothing else: `whyfor serve` goes on
    settings = config.load()
    if only_preview:
        _show_preview(settings, as_json)
        return
    for remote in remotes_to_confirm(settings):
        if not yes:
            _ask(settings, remote, as_json)
        agree(settings, remote)
    report = sync_now(settings)
    if as_json:
        print_json(msgspec.to_builtins(report))
    else:
        _render(report)


def _show_preview(settings: Settings, as_json: bool) -> None:
    found = preview_sync(settings, lines=as_json)
    if as_json:
        bodies = [
            {"remote": msgspec.to_builtins(remote), "stories": msgspec.to_builtins(stories)}
            for remote, stories in found
        ]
        print_json(bodies)
        return
    if not found:
        say("Nothing leaves this machine. Share a repository: whyfor remote add URL")
    for remote, stories in found:
        _list(remote, stories)


def _ask(settings: Settings, remote: Remote, as_json: bool) -> None:
    if as_json or not sys.stdin.isatty():
        raise BadInput(
            "nobody has agreed yet to what would leave",
            "Look at it: whyfor sync --preview. Then: whyfor sync --yes",
        )
    for each, stories in preview_sync(settings):
        if each.project == remote.project:
            _list(each, stories)
    question = f"Send this to {remote.url}, and {_LATER[remote.share]} from now on?"
    if not confirm(question, stderr=True):
        raise click.Abort


def _list(remote: Remote, stories: list[StoryPreview]) -> None:
    out = console()
    size = sum(each.bytes for each in stories)
    number = plural(len(stories), "story", "stories")
    where = f"{remote.name} at {remote.url}" if remote.name else remote.url
    out.print(f"To {where}: {number}, {size_text(size)}", soft_wrap=True)
    for each in stories[:_SHOWN]:
        name = each.name[:8] if ":" not in each.name else each.name
        out.print(f"  {name}  {one_line(label(each.title))[:60]}", soft_wrap=True)
        out.print(f"      {_facts(each)}", style="dim", soft_wrap=True)
    if len(stories) > _SHOWN:
        out.print(f"  … and {len(stories) - _SHOWN} more (--json lists them all)")
    out.print("  Every word of it: whyfor sync --preview --json", style="dim")


def _facts(story: StoryPreview) -> str:
    if story.error:
        return f"cannot leave: {story.error}"
    places = sum(story.redacted.values())
    words = [size_text(story.bytes), plural(len(story.sessions), "session")]
    words.append(f"{plural(places, 'place')} redacted")
    if story.withheld:
        words.append(f"{plural(story.withheld, 'range')} held back")
    return ", ".join(words)


def _render(report: SyncReport) -> None:
    out = console()
    if report.busy:
        out.print("Another process is sending just now.")
    for each in report.remotes:
        words = [f"{each.sent} sent"]
        if each.refused:
            words.append(f"{each.refused} refused")
        left = each.waiting - each.sent - each.refused
        if left > 0:
            words.append(f"{left} waiting")
        out.print(f"{each.url}: {', '.join(words)}", soft_wrap=True)
        if each.error:
            out.print(f"  {each.error}", style="yellow", soft_wrap=True)
            out.print(f"  {each.hint}" if each.hint else "  Nothing is lost.", style="dim")
