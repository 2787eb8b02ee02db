"""whyfor approvals"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.filters import agent_option, since_option
from whyfor.cli.render import (
    console,
    duration_text,
    json_option,
    moment_text,
    print_json,
    print_note,
)
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.model.approvals import ApprovalQuery, ListedApproval
from whyfor.model.text import label, one_line, plural
from whyfor.model.wire.approvals import wire_approval_decision
from whyfor.service.approvals import list_approvals

BY = {
    "terminal": "you, terminal",
    "browser": "you, browser",
    "rule": "rule",
    "agent": "the agent",
    "nobody": "nobody",
    "unknown": "unknown",
}
_STYLE = {"allowed": "green", "denied": "red", "waiting": "bold yellow", "unanswered": "dim"}


@click.command()
@click.option("--pending", is_flag=True, help="Only requests that wait for an answer.")
@since_option
@agent_option
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most.")
@json_option
def command(pending: bool, since: str | None, agent: str | None, limit: int, as_json: bool) -> None:
    """List what agents asked to be allowed, newest first: what was decided, by whom, how we know.

    A request is answered in the agent's terminal, on the page Approvals of `whyfor serve`, by one
    of your rules, by the agent itself (its settings, its automatic mode), or by nobody.

    \b
    Examples:
      whyfor approvals
      whyfor approvals --pending
      whyfor approvals --since 7d --agent claude --json > approvals.json
    """
    query = ApprovalQuery(
        agent=agent, decision="waiting" if pending else "", limit=None if as_json else limit
    )
    found = list_approvals(config.load(), query, since=since or "")
    if as_json:
        print_json([wire_approval_decision(row) for row in found.rows])
        return
    if not found.rows:
        chosen = bool(agent or since)
        nothing = "Nothing of that was asked." if chosen else "No agent asked for anything yet."
        print_note("Nobody waits for you." if pending else nothing)
        return
    _table(found.rows)
    if found.next and found.total > len(found.rows):
        print_note(f"{len(found.rows)} of {found.total:,}; more: --limit")


def _table(rows: list[ListedApproval]) -> None:
    from rich.text import Text

    headings = ("asked", "agent", "action", "decision", "by", "after")
    table = FittedTable(*headings, title="action", fold=("after", "by"))
    for row in rows:
        made = row.decision
        by = f"rule {made.rule}" if made.by == "rule" else BY[made.by]
        if made.decision == "waiting":
            by = ""
        waited = made.waited_ms
        after = "" if waited is None else f"{'' if made.exact else '≤ '}{duration_text(waited)}"
        table.add(
            Text(moment_text(made.asked_at), style="dim"),
            AgentCell(made.agent),
            Text(label(one_line(made.action or made.tool or "unknown"))),
            Text(made.decision, style=_STYLE[made.decision]),
            by,
            after,
        )
    out = console()
    table.print(out)
    waiting = sum(row.decision.decision == "waiting" for row in rows)
    if waiting:
        print_note(f"{plural(waiting, 'request')} may still wait for you: whyfor serve")
