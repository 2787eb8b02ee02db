"""The read side of questions about all sessions at once. Never writes, and reads indexes rather
than events."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw
import msgspec

from whyfor.model.query import Filters
from whyfor.model.sessions import Tokens
from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.read import session_filter

STEP = 900_000  # ms: a quarter of an hour divides every time zone's days
# As in the index events_wrong, word for word: SQLite uses it for nothing else.
_WRONG = """(kind='error' OR kind='turn.completed' AND instr(data, '"interrupted":true')
  OR kind='approval.resolved' AND instr(data, '"decision":"denied"')
  OR kind='tool.result' AND instr(data, '"failed":true') AND NOT instr(data, '"rejected":true'))"""
_TOKENS = ("input", "cache_read", "cache_write", "output", "reasoning")
_NEXT = (
    "(SELECT min(r.created_at) FROM events r INDEXED BY events_{index} WHERE "
    "r.session_id={session} "
    "AND r.created_at>{at} AND {which})"
)
_RETURNED = "r.kind='tool.result'"
_PROMPTED = "r.kind='user.prompt' AND r.actor='user'"


class SessionCounts(NamedTuple):
    """Of one agent in one project: sessions with the same number of turns each."""

    agent: str
    project: str | None
    each: int
    sessions: int
    recent: int  # of these: with something said since a moment
    subagents: int
    turns: int
    unknown: int  # turns of sessions whose tokens nobody wrote down
    tokens: Tokens


class ApprovalWait(NamedTuple):
    """An approval an agent waited for, and when the next thing happened that ends the wait."""

    session: int
    asked_at: int
    answered_at: int | None


class FailedStep(NamedTuple):
    session: int
    turn: int
    kind: str
    head: str
    ran: bool  # it has an exit code


class Insights:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def counted(self, filters: Filters, recent: int = 0) -> list[SessionCounts]:
        where, values = _where(filters)
        sums = ", ".join(f"sum(s.{name})" for name in _TOKENS)
        rows = fetch(
            self.db,
            "SELECT s.agent, p.identity, s.prompts, sum(s.parent IS NULL), sum(s.parent IS NULL "
            "AND s.ended_at >= ?), "
            "sum(s.parent IS NOT NULL), "
            "sum((s.parent IS NULL) * s.prompts), sum((s.parent IS NULL AND "
            "coalesce(s.input, s.cache_read, s.cache_write, s.output) IS NULL) * s.prompts), "
            f"{sums} "
            "FROM sessions s LEFT JOIN projects p ON p.id=s.project_id "
            f"WHERE {where} GROUP BY s.agent, s.project_id, s.prompts",
            (recent, *values),
        )
        return [
            SessionCounts(
                agent,
                project,
                each,
                sessions,
                lately or 0,
                subagents,
                turns,
                unknown,
                Tokens(*tokens),
            )
            for agent, project, each, sessions, lately, subagents, turns, unknown, *tokens in rows
        ]

    def by_model(self, filters: Filters) -> list[tuple[str, int, Tokens]]:
        """Main sessions and tokens; first by session, as the table lies, which is far cheaper."""
        where, values = _where(filters)
        few = filters.projects is not None
        # from left to right
        tables = "sessions s CROSS JOIN usage u" if few else "usage u CROSS JOIN sessions s"
        inner = ", ".join(f"sum(u.{name}) AS {name}" for name in _TOKENS)
        rows = fetch(
            self.db,
            f"SELECT model, sum(main), {', '.join(f'sum({name})' for name in _TOKENS)} FROM "
            "(SELECT s.parent IS NULL "
            f"AS main, coalesce(u.model, '(unknown)') AS model, {inner} FROM {tables} ON "
            "u.session_id=s.id "
            f"WHERE u.counts AND {where} GROUP BY u.session_id, 2) GROUP BY 1",
            values,
        )
        return [(model, sessions, Tokens(*tokens)) for model, sessions, *tokens in rows]

    def turns_by_time(self, filters: Filters, since: int, until: int) -> list[tuple[int, int]]:
        """By quarter of an hour since 1970, in order: how many turns of main sessions began."""
        where, values = _where(filters)
        return fetch(
            self.db,
            f"SELECT e.created_at / {STEP}, count(*) FROM events e INDEXED BY events_asked JOIN "
            "sessions s "
            "ON s.id=e.session_id WHERE e.kind='user.prompt' AND e.actor='user' AND e.created_at "
            "BETWEEN ? AND ? "
            f"AND s.parent IS NULL AND {where} GROUP BY 1 ORDER BY 1",
            (since, until, *values),
        )

    def first_at(self, filters: Filters) -> int | None:
        """When the oldest thing that is kept happened, whatever the period."""
        where, values = _where(msgspec.structs.replace(filters, since=None, until=None))
        found = fetch(self.db, f"SELECT min(s.started_at) FROM sessions s WHERE {where}", values)[
            0
        ][0]
        return int(found) if found is not None else None

    def wrong(self, filters: Filters) -> list[FailedStep]:
        """What went wrong in main sessions."""
        where, values = _where(filters)
        rows = fetch(
            self.db,
            "SELECT e.session_id, e.turn, e.kind, substr(e.text, 1, 120), instr(e.data, "
            "'\"exit_code\":') FROM "
            f"(SELECT * FROM events INDEXED BY events_wrong WHERE {_WRONG}) e JOIN sessions s ON "
            "s.id=e.session_id "
            f"WHERE s.parent IS NULL AND {where}",
            values,
        )
        return [
            FailedStep(session, turn, kind, head, bool(ran))
            for session, turn, kind, head, ran in rows
        ]

    def commits(self, filters: Filters, beyond: str) -> tuple[int, int]:
        """Commits with a story, and all that could have one: no merges, none without it for the
        reason `beyond`."""
        where: list[str] = ["1"]
        values: list[Any] = []
        if filters.projects is not None:
            where.append("project_id IN (SELECT value FROM json_each(?))")
            values.append(msgspec.json.encode(filters.projects).decode())
        for sign, limit in ((">=", filters.since), ("<=", filters.until)):
            if limit is not None:
                where.append(f"committed_at {sign} ?")
                values.append(limit)
        which = " AND ".join(where)
        told = fetch(
            self.db,
            "SELECT count(*) FROM checkpoints WHERE evidence IS NOT NULL AND superseded_by IS NULL "
            "AND NOT is_merge "
            f"AND {which}",
            values,
        )
        silent = fetch(
            self.db,
            f"SELECT count(*) FROM commits WHERE reason <> ? AND {which}",
            (beyond, *values),
        )
        return int(told[0][0]), int(told[0][0]) + int(silent[0][0])

    # -- approvals -------------------------------------------------------------------------------

    def told_approvals(self, filters: Filters) -> list[tuple[int, str, int, dict[str, Any]]]:
        """As transcripts tell of them: session, kind, when, data."""
        where, values = _where(filters)
        rows = fetch(
            self.db,
            "SELECT e.session_id, e.kind, e.created_at, e.data FROM events e INDEXED BY "
            "events_approvals "
            "JOIN sessions s ON s.id=e.session_id WHERE e.kind IN ('approval.requested', "
            "'approval.resolved') "
            f"AND e.created_at IS NOT NULL AND {where} ORDER BY e.session_id, e.created_at, e.id",
            values,
        )
        return [
            (number, kind, at, msgspec.json.decode(data) if data else {})
            for number, kind, at, data in rows
        ]

    def announced_approvals(
        self, filters: Filters, questions: frozenset[str]
    ) -> list[ApprovalWait]:
        """As hooks announce them; they end with the next result in that session, if no prompt
        comes first."""
        where, values = _where(filters)
        after = {"session": "s.id", "at": "g.at"}
        rows = fetch(
            self.db,
            "SELECT s.id, s.session_id, g.at, g.data, "
            f"{_NEXT.format(index='returned', which=_RETURNED, **after)}, "
            f"{_NEXT.format(index='asked', which=_PROMPTED, **after)} FROM signals g INDEXED BY "
            "signals_asked "
            "JOIN sessions s ON s.agent=g.session_agent AND s.session_id=g.session_id "
            f"WHERE g.event='PermissionRequest' AND {where}",
            values,
        )
        found = []
        for number, name, at, data, returned, prompted in rows:
            told = msgspec.json.decode(data)
            if str(told.get("tool_name")).lower() in questions:
                continue
            if isinstance(child := told.get("agent_id"), str) and child:
                returned = self._returned(name, child, at)
            ended = (
                returned
                if returned is not None and (prompted is None or returned <= prompted)
                else None
            )
            found.append(ApprovalWait(number, at, ended))
        return found

    def _returned(self, parent: str, child: str, at: int) -> int | None:
        """The next result in a subagent's session, which has its parent's id in its own."""
        sql = (
            f"SELECT {_NEXT.format(index='returned', which=_RETURNED, session='s.id', at='?')} "
            "FROM sessions s "
        )
        rows = fetch(
            self.db,
            sql + "WHERE s.parent=? AND instr(s.session_id, ?)=1",
            (at, parent, f"agent-{child}"),
        )
        return next((row[0] for row in rows if row[0] is not None), None)


def _where(filters: Filters) -> tuple[str, list[Any]]:
    where, values = session_filter(filters)
    return " AND ".join(where) or "1", values
