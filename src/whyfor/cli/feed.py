"""whyfor feed"""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.filters import agent_option, project_option, since_option, task_option
from whyfor.cli.render import (
    agent as agent_mark,
)
from whyfor.cli.render import (
    console,
    json_option,
    moment_text,
    print_json,
    print_note,
    project_text,
)
from whyfor.model.text import label, one_line
from whyfor.model.times import parse_when
from whyfor.model.wire.work_feed import wire_entry
from whyfor.model.work_feed import WORK_KINDS, WORK_STATES, WorkEntry, WorkQuery
from whyfor.service.feed import follow_feed, work_feed
from whyfor.service.ingest import read_new

if TYPE_CHECKING:
    from rich.text import Text

_READ = 5.0  # seconds between two looks at what agents wrote, where no server runs
_STYLE = {
    "prompt": "bold blue",
    "question": "bold blue",
    "approval": "yellow",
    "failure": "red",
    "commit": "green",
    "done": "",
    "attention": "bold yellow",
}


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on as things happen, oldest first.")
@since_option
@project_option
@agent_option
@task_option
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(WORK_KINDS), help="Only these; repeatable."
)
@click.option(
    "--only",
    type=click.Choice(WORK_STATES),
    help="Sessions that wait for you, run tests, or had failures.",
)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most.")
@json_option
def command(
    follow: bool,
    since: str | None,
    project: str | None,
    agent: str | None,
    task: str | None,
    kinds: tuple[str, ...],
    only: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show what happened in all sessions, one line each, newest first.

    Prompts, questions, approvals, failures, commits, what agents said at the end of a turn, and
    what needed your attention; of the last day unless --since says otherwise.

    \b
    Examples:
      whyfor feed
      whyfor feed --follow
      whyfor feed --only waiting
      whyfor feed --kind failure --kind commit --since 3d --project shop
    """
    when = parse_when(since or "1d", datetime.now().astimezone())
    query = WorkQuery(
        since=when,
        kinds=tuple(kind for kind in WORK_KINDS if kind in kinds),
        project=project,
        agent=agent,
        task=task,
        only=next((state for state in WORK_STATES if state == only), ""),
        limit=limit,
    )
    settings = config.load()
    read_new(settings)
    if follow:
        with suppress(KeyboardInterrupt):
            _follow(settings, query, as_json=as_json)
        return
    found = work_feed(settings, query)
    if as_json:
        print_json([wire_entry(one) for one in found])
        return
    if not found:
        print_note("Nothing happened. A longer time: --since 7d")
    for one in found:
        console().print(_text(one), soft_wrap=False, no_wrap=True, overflow="ellipsis")


def _follow(settings: config.Settings, query: WorkQuery, *, as_json: bool) -> None:
    stop = threading.Event()

    def read() -> None:
        while not stop.wait(_READ):
            read_new(settings)

    threading.Thread(target=read, daemon=True).start()
    try:
        follow_feed(settings, query, lambda one: _tell(one, as_json), stop)
    finally:
        stop.set()


def _tell(entry: WorkEntry, as_json: bool) -> None:
    if as_json:
        print_json(wire_entry(entry))
    else:
        console().print(_text(entry), no_wrap=True, overflow="ellipsis")


def _text(entry: WorkEntry) -> Text:
    from rich.text import Text

    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(moment_text(entry.at), style="dim")
    line.append(f"  {entry.kind:9} ", style=_STYLE[entry.kind])
    if entry.agent:
        line.append_text(agent_mark(entry.agent))
        line.append(" ")
    if entry.project:
        line.append(f"{label(project_text(entry.project))}  ", style="dim")
    if entry.state:
        line.append(f"{entry.state}  ", style="dim")
    if entry.times > 1:
        line.append(f"{entry.times}×  ", style="dim")
    if entry.sha:
        line.append(f"{entry.sha[:7]}  ", style="dim")
    line.append(label(one_line(entry.text)))
    return line
