"""approvals: what agents asked to be allowed, who answered, and how we know."""

from __future__ import annotations

from datetime import datetime

import msgspec

from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.model.approvals import ApprovalQuery, ListedApproval
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.times import DAY, parse_when, wall_clock
from whyfor.store.open import reading_local

STALE = DAY  # ms after which nobody waits for an answer any more, whatever was recorded


class ApprovalPage(msgspec.Struct, frozen=True):
    """Some decisions, newest first, how many there are, and where the next ones begin."""

    rows: list[ListedApproval]
    total: int
    next: tuple[int, int] | None = None


def list_approvals(
    settings: Settings, query: ApprovalQuery | None = None, *, since: str = ""
) -> ApprovalPage:
    """Return decisions on record. Raises BadInput for an unknown agent or time."""
    query = query or ApprovalQuery()
    if query.agent and query.agent not in AGENTS:
        raise BadInput(f"no such agent: {query.agent}", f"Agents: {', '.join(AGENTS)}.")
    if since:
        when = parse_when(since, datetime.now().astimezone())
        query = msgspec.structs.replace(query, since=when)
    if query.decision == "waiting":
        oldest = max(query.since or 0, wall_clock() - STALE)
        query = msgspec.structs.replace(query, since=oldest)
    try:
        with reading_local(settings) as store:
            rows = store.approvals.listed(query)
            total = store.approvals.count(query)
    except NotFound:  # nothing was read yet
        return ApprovalPage([], 0)
    more = query.limit is not None and len(rows) == query.limit
    last = (rows[-1].decision.asked_at, rows[-1].id) if more else None
    return ApprovalPage(rows, total, last)


def session_labels(
    settings: Settings, names: list[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str | None, str | None, str | None]]:
    """Return title, project and branch of these sessions, as far as they are known."""
    if not names:
        return {}
    try:
        with reading_local(settings) as store:
            numbers = store.sessions.numbers(names)
            known = store.sessions.by_number(list(numbers.values()))
    except NotFound:
        return {}
    found = {(name[0], name[1]): known[number] for name, number in numbers.items()}
    return {name: (each.title, each.project, each.branch) for name, each in found.items()}
