"""How work went: turns until a commit, checks that failed, times between turns."""

from __future__ import annotations

from typing import Any

from whyfor.model.query import Filters
from whyfor.model.stats import FailedCommand, TurnTime
from whyfor.store.sql.database import StoreDatabase, fetch
from whyfor.store.sql.filters import WRONG, as_json

_NEAR = 60  # events between a call and its result, at most


def turns_until_done(db: StoreDatabase, filters: Filters) -> list[int]:
    """Return, for each request that ended in commits, the turns that went into them."""
    where, values = _commits_where(filters)
    rows = fetch(
        db,
        f"""
        SELECT sum(p.turns)
        FROM checkpoints c
        JOIN parts p ON p.sha=c.sha
        WHERE c.evidence IS NOT NULL AND c.superseded_by IS NULL AND NOT c.is_merge AND {where}
        GROUP BY c.group_root
        """,
        values,
    )
    return [int(turns) for (turns,) in rows if turns]


def _commits_where(filters: Filters) -> tuple[str, list[Any]]:
    where: list[str] = ["TRUE"]
    values: list[Any] = []
    if filters.projects is not None:
        where.append("c.project_id IN (SELECT value FROM json_each(?))")
        values.append(as_json(filters.projects))
    for sign, limit in ((">=", filters.since), ("<=", filters.until)):
        if limit is not None:
            where.append(f"c.committed_at {sign} ?")
            values.append(limit)
    return " AND ".join(where), values


def failed_commands(db: StoreDatabase, where: str, values: Any) -> list[FailedCommand]:
    """Return the commands that failed in sessions, in their order."""
    rows = fetch(
        db,
        f"""
        SELECT e.session_id, e.turn,
          (SELECT coalesce(c.data ->> '$.input.command', c.data ->> '$.input.cmd')
           FROM events c
           WHERE c.id BETWEEN e.id - {_NEAR} AND e.id - 1 AND c.kind='tool.call'
             AND c.data ->> '$.id' = e.data ->> '$.id'
           ORDER BY c.id DESC LIMIT 1)
        FROM (SELECT * FROM events INDEXED BY events_wrong WHERE {WRONG}) e
        JOIN sessions s ON s.id=e.session_id
        WHERE e.kind='tool.result' AND s.parent IS NULL AND {where}
        ORDER BY e.id
        """,
        values,
    )
    return [FailedCommand(session, turn, text) for session, turn, text in rows if text]


def turn_times(db: StoreDatabase, own: str, where: str, values: Any) -> list[TurnTime]:
    """Return when people asked, and when the last response to it was there."""
    asked = fetch(
        db,
        f"""
        SELECT e.session_id, e.turn, e.created_at
        FROM events e INDEXED BY events_asked
        JOIN sessions s ON s.id=e.session_id
        WHERE e.kind='user.prompt' AND e.actor='user' AND e.created_at IS NOT NULL
          AND s.parent IS NULL AND {own} AND {where}
        ORDER BY e.session_id, e.created_at
        """,
        values,
    )
    answered = fetch(
        db,
        f"""
        SELECT u.session_id, u.turn, max(u.created_at)
        FROM usage u
        JOIN sessions s ON s.id=u.session_id
        WHERE u.created_at IS NOT NULL AND s.parent IS NULL AND {where}
        GROUP BY u.session_id, u.turn
        """,
        values,
    )
    last = {(session, turn): at for session, turn, at in answered}
    return [TurnTime(session, turn, at, last.get((session, turn))) for session, turn, at in asked]
