"""whyfor tasks"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.filters import agent_option, project_option, since_option
from whyfor.cli.render import age_text, console, json_option, print_json, print_note
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.model.cost import cost_text, short_cost
from whyfor.model.tasks import TASK_STATUSES, TaskCounts, TaskView, TrackedTask
from whyfor.model.text import one_line, plural
from whyfor.model.wire.tasks import wire_task_view, wire_tasks
from whyfor.service.tasks import TaskRequest, task_list, task_view

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from whyfor.config import Settings

STATUS_WORDS = {
    "open": "in progress",
    "complete": "complete",
    "rejected": "rejected",
    "abandoned": "abandoned",
}
_STYLES = {"open": "blue", "complete": "green", "rejected": "red", "abandoned": "dim"}
_SHAPES = {"open": "◐", "complete": "✓", "rejected": "⊘", "abandoned": "◌"}
# Where a task is known from, in words.
EVIDENCE_WORDS = {
    "person": "you",
    "tracker": "the tracker",
    "command": "whyfor task",
    "tool": "a tracker's tools",
    "shell": "a tracker's commands",
    "trailer": "commit message",
    "branch": "branch name",
    "url": "a link in a prompt",
    "key": "a prompt",
}


@click.command()
@project_option
@agent_option
@since_option
@click.option("--status", type=click.Choice(TASK_STATUSES), help="Only tasks of this status.")
@click.option("--find", metavar="WORDS", default="", help="Only tasks with these in id or title.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True)
@json_option
def command(
    project: str | None,
    agent: str | None,
    since: str | None,
    status: str | None,
    find: str,
    limit: int,
    as_json: bool,
) -> None:
    """List the tasks that sessions worked on, and what became of each; worked on last first.

    A task is a beads issue, or the id of any tracker: in a branch name, in a commit's Fixes or
    Closes, as a link in a prompt, or said with whyfor task. See one: whyfor show TASK.

    \b
    Examples:
      whyfor tasks
      whyfor tasks --status open --project .
      whyfor tasks --since 4w --json
    """
    asked = TaskRequest(
        project=project or "",
        agent=agent or "",
        since=since or "",
        status=status or "",
        q=find,
    )
    found = task_list(config.load(), asked, limit)
    if as_json:
        print_json(wire_tasks(found.rows, found.fits, found.counts, found.next))
        return
    if not found.rows:
        print_note(
            "No task fits. Fewer filters show more: whyfor tasks"
            if found.known
            else "No tasks yet: sessions name none. Begin one: whyfor task start ID"
        )
        return
    _table(found.rows)
    print_note(_counted(found.counts))
    if len(found.rows) < found.fits:
        print_note(f"{len(found.rows)} of {found.fits}. More: --limit {found.fits}")


def _counted(counts: TaskCounts) -> str:
    numbers = [f"{getattr(counts, status):,} {STATUS_WORDS[status]}" for status in TASK_STATUSES]
    without = f"{counts.without:,} of {plural(counts.sessions, 'session')} belong to no task"
    return f"{', '.join(numbers)}; {without}."


def _table(rows: list[TrackedTask]) -> None:
    table = FittedTable(
        *("task", "status", "title", "when", "sessions", "commits", "turns", "cost"),
        title="title",
        right=("sessions", "commits", "turns", "cost"),
        drop=("turns", "commits"),
        fold=("sessions", "cost", "when"),
    )
    for row in rows:
        table.add(
            _bold(one_line(row.key)),
            status_text(row.status),
            one_line(row.title) or "(no title)",
            age_text(row.last_at),
            str(row.sessions),
            str(row.commits) if row.commits else "",
            str(row.turns) if row.turns else "",
            short_cost(row.cost),
        )
    table.print(console())


def _bold(text: str) -> Text:
    from rich.text import Text

    return Text(text, style="bold")


def status_text(status: str) -> Text:
    """Return a status as shape and words."""
    from rich.text import Text

    return Text(f"{_SHAPES[status]} {STATUS_WORDS[status]}", style=_STYLES[status])


# -- one task ------------------------------------------------------------------------------------


def print_task(settings: Settings, key: str, *, as_json: bool) -> None:
    """Print one task, whole."""
    view = task_view(settings, key)
    if as_json:
        print_json(wire_task_view(view))
        return
    out = console()
    _head(out, view)
    _decisions(out, view)
    _sessions(out, view)
    _commits(out, view)


def _head(out: Console, view: TaskView) -> None:
    task = view.task
    title = _bold(one_line(task.key))
    title.append("  ").append_text(status_text(task.status))
    title.append(f"  {one_line(task.title)}" if task.title else "")
    out.print(title)
    took = [plural(task.turns, "turn")]
    if view.worked:
        took.append(f"{max(1, view.worked // 60_000)} min of work")
    told = ", ".join(EVIDENCE_WORDS[each] for each in task.evidence) or "unknown"
    facts = {
        "why": f"{task.reason} ({task.confidence} confidence)",
        "who": one_line(task.who) or "unknown",
        "took": ", ".join(took),
        "cost": cost_text(task.cost),
        "told by": told,
    }
    for name, fact in facts.items():
        out.print(f"   {name:8} {fact}", style="dim")


def _decisions(out: Console, view: TaskView) -> None:
    for each in view.decisions:
        out.print()
        line = status_text(each.status)
        line.append(f"  {age_text(each.at)}", style="dim")
        out.print(line)
        if each.text:
            out.print(f"   “{one_line(each.text)}”")


def _sessions(out: Console, view: TaskView) -> None:
    if not view.sessions:
        return
    out.print()
    table = FittedTable(
        *("agent", "id", "when", "title", "turns", "cost"), title="title", right=("turns", "cost")
    )
    for each in view.sessions:
        session = each.session
        table.add(
            AgentCell(session.agent),
            session.session_id[:8],
            age_text(session.ended_at),
            one_line(session.title) or "(no prompt)",
            str(each.run.turns),
            short_cost(each.cost),
        )
    table.print(out)


def _commits(out: Console, view: TaskView) -> None:
    if view.commits:
        out.print()
    for each in view.commits:
        out.print(f"   {each.sha[:7]}  {one_line(each.subject)}  ({each.evidence})")
