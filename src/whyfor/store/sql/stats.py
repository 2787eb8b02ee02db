"""Figures about all sessions at once; reads indexes rather than events."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.events import SEQ_MASK
from whyfor.model.query import Filters
from whyfor.model.sessions import Tokens
from whyfor.model.stats import (
    QUARTER,
    ApprovalRecord,
    ApprovalWait,
    CostRow,
    FailedCommand,
    FailedStep,
    SessionCounts,
    StatsRow,
    StoreTotals,
    TurnTime,
)
from whyfor.store.sql.database import StoreDatabase, fetch, first_row, value
from whyfor.store.sql.filters import COUNTS, THREAD, WORKED, WRONG, as_json, session_filter
from whyfor.store.sql.work_stats import failed_commands, turn_times, turns_until_done

# What happened in a session, not in the one it is a copy of.
_OWN = f"(e.id & {SEQ_MASK}) >= s.own_from"
_TOKENS = ("input", "cache_read", "cache_write", "output", "reasoning", "cost")
_USED = (*_TOKENS, "partial")  # of a response
_SPENT = (*_TOKENS, "unpriced")  # of a session
_NEXT = """
    (SELECT min(r.created_at)
     FROM events r INDEXED BY events_{index}
     WHERE r.session_id={session} AND r.created_at>{at} AND {which})
"""
_RETURNED = "r.kind='tool.result'"
_PROMPTED = "r.kind='user.prompt' AND r.actor='user'"


class SqlStats:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def totals(self) -> StoreTotals:
        row = first_row(
            self.db,
            """
            SELECT
              (SELECT count(*) FROM sessions WHERE parent IS NULL),
              (SELECT count(*) FROM sessions WHERE parent IS NOT NULL),
              (SELECT coalesce(sum(records), 0) FROM sources),
              (SELECT coalesce(sum(last_seq), 0) FROM sessions),
              (SELECT coalesce(sum(g.stop - g.start), 0)
               FROM segments g JOIN sources o ON o.id=g.source_id
               WHERE o.agent<>'hook'),
              (SELECT count(*) FROM unparsed),
              (SELECT coalesce(sum(records), 0) FROM unknown_types)
            """,
        )
        return StoreTotals(*(row or ()))

    def grouped(self, by: str, filters: Filters) -> list[StatsRow]:
        group = {
            "agent": "s.agent",
            "project": "coalesce(p.identity, '(unknown)')",
            "model": "coalesce(u.model, '(unknown)')",
            "day": "strftime('%Y-%m-%d', u.created_at / 1000, 'unixepoch', 'localtime')",
        }[by]
        where, values = session_filter(filters)
        sums = ", ".join(f"sum(u.{name})" for name in _USED)
        condition = " AND ".join(["u.counts", *where])
        tokens = fetch(
            self.db,
            f"""
            SELECT {group}, count(DISTINCT CASE WHEN s.parent IS NULL THEN {THREAD} END), {sums}
            FROM usage u
            JOIN sessions s ON s.id=u.session_id
            LEFT JOIN projects p ON p.id=s.project_id
            WHERE {condition}
            GROUP BY 1
            """,
            values,
        )
        rows = [
            StatsRow(name or "(unknown)", sessions, None, Tokens(*rest))
            for name, sessions, *rest in tokens
        ]
        if by == "model":
            return rows
        return _with_turns(rows, self._turns(by, group, where, values))

    def _turns(
        self, by: str, group: str, where: list[str], values: list[Any]
    ) -> dict[str, tuple[int, int]]:
        """Return sessions and prompts of the same groups, also of those without token counts."""
        condition = " AND ".join(["s.parent IS NULL", *where])
        if by == "day":
            day = group.replace("u.created_at", "e.created_at")
            sql = f"""
                SELECT {day}, count(DISTINCT {THREAD}), count(*)
                FROM events e
                JOIN sessions s ON s.id=e.session_id
                LEFT JOIN projects p ON p.id=s.project_id
                WHERE e.kind='user.prompt' AND e.actor='user' AND {_OWN} AND {condition}
                GROUP BY 1
            """
        else:
            sql = f"""
                SELECT {group}, sum({COUNTS}), sum(s.prompts)
                FROM sessions s
                LEFT JOIN projects p ON p.id = s.project_id
                WHERE {condition}
                GROUP BY 1
            """
        return {
            name: (sessions, turns)
            for name, sessions, turns in fetch(self.db, sql, values)
            if name is not None
        }

    def counted(self, filters: Filters, recent: int = 0) -> list[SessionCounts]:
        where, values = _where(filters)
        sums = ", ".join(f"sum(s.{name})" for name in _SPENT)
        rows = fetch(
            self.db,
            f"""
            SELECT
              s.agent,
              p.identity,
              s.prompts,
              sum({COUNTS}),
              sum({COUNTS} AND s.ended_at >= ?),
              sum(s.parent IS NOT NULL AND {WORKED}),
              sum(CASE WHEN s.parent IS NULL THEN s.prompts ELSE 0 END),
              sum(CASE WHEN s.parent IS NULL
                        AND coalesce(s.input, s.cache_read, s.cache_write, s.output) IS NULL
                  THEN s.prompts ELSE 0 END),
              {sums}
            FROM sessions s LEFT JOIN projects p ON p.id=s.project_id
            WHERE {where}
            GROUP BY s.agent, s.project_id, p.identity, s.prompts
            """,
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
        where, values = _where(filters)
        few = filters.projects is not None
        # from left to right
        tables = "sessions s CROSS JOIN usage u" if few else "usage u CROSS JOIN sessions s"
        inner = ", ".join(f"sum(u.{name}) AS {name}" for name in _USED)
        sums = ", ".join(f"sum({name})" for name in _USED)
        rows = fetch(
            self.db,
            f"""
            SELECT model, sum(main), {sums}
            FROM (
              SELECT s.parent IS NULL AS main, coalesce(u.model, '(unknown)') AS model, {inner}
              FROM {tables} ON u.session_id=s.id
              WHERE u.counts AND {where}
              GROUP BY u.session_id, 1, 2
            ) m
            GROUP BY 1
            """,
            values,
        )
        return [(model, sessions, Tokens(*tokens)) for model, sessions, *tokens in rows]

    def costs(self, filters: Filters) -> list[CostRow]:
        alone = msgspec.structs.replace(filters, since=None, until=None)
        where, values = _where(alone)
        for sign, limit in ((">=", filters.since), ("<=", filters.until)):
            if limit is not None:
                where += f" AND u.created_at {sign} ?"
                values.append(limit)
        sums = ", ".join(f"sum(u.{name})" for name in _USED)
        day = "strftime('%Y-%m-%d', u.created_at / 1000, 'unixepoch', 'localtime')"
        rows = fetch(
            self.db,
            f"""
            SELECT {day}, s.agent, p.identity, u.model, count(*), sum(u.saved), {sums}
            FROM usage u
            JOIN sessions s ON s.id=u.session_id
            LEFT JOIN projects p ON p.id=s.project_id
            WHERE u.counts AND {where}
            GROUP BY 1, 2, 3, 4
            """,
            values,
        )
        return [
            CostRow(day, agent, project, model, responses, saved, Tokens(*counts))
            for day, agent, project, model, responses, saved, *counts in rows
        ]

    def turns_by_time(self, filters: Filters, since: int, until: int) -> list[tuple[int, int]]:
        where, values = _where(filters)
        return fetch(
            self.db,
            f"""
            SELECT e.created_at / {QUARTER}, count(*)
            FROM events e INDEXED BY events_asked
            JOIN sessions s ON s.id=e.session_id
            WHERE e.kind='user.prompt' AND e.actor='user' AND e.created_at BETWEEN ? AND ?
              AND s.parent IS NULL AND {_OWN} AND {where}
            GROUP BY 1
            ORDER BY 1
            """,
            (since, until, *values),
        )

    def first_at(self, filters: Filters) -> int | None:
        where, values = _where(msgspec.structs.replace(filters, since=None, until=None))
        found = value(self.db, f"SELECT min(s.started_at) FROM sessions s WHERE {where}", values)
        return int(found) if found is not None else None

    def wrong(self, filters: Filters) -> list[FailedStep]:
        where, values = _where(filters)
        rows = fetch(
            self.db,
            f"""
            SELECT e.session_id, e.turn, e.kind, substr(e.text, 1, 120),
                   json_type(e.data, '$.exit_code') IS NOT NULL, e.id & {SEQ_MASK}, e.created_at,
                   substr(e.text, 1, 600) || char(10) || substr(e.text, length(e.text) - 400)
            FROM (SELECT * FROM events INDEXED BY events_wrong WHERE {WRONG}) e
            JOIN sessions s ON s.id=e.session_id
            WHERE s.parent IS NULL AND {_OWN} AND {where}
            """,
            values,
        )
        return [
            FailedStep(session, turn, kind, head, bool(ran), *rest)
            for session, turn, kind, head, ran, *rest in rows
        ]

    def turns_until_done(self, filters: Filters) -> list[int]:
        return turns_until_done(self.db, filters)

    def failed_commands(self, filters: Filters) -> list[FailedCommand]:
        where, values = _where(filters)
        return failed_commands(self.db, f"{_OWN} AND {where}", values)

    def turn_times(self, filters: Filters) -> list[TurnTime]:
        return turn_times(self.db, _OWN, *_where(filters))

    def turn_costs(self, project: str, since: int) -> list[int]:
        rows = fetch(
            self.db,
            """
            SELECT sum(u.cost)
            FROM projects p
            JOIN sessions s ON s.project_id=p.id
            JOIN usage u ON u.session_id=s.id
            WHERE p.identity=? AND s.ended_at >= ? AND u.counts AND u.cost IS NOT NULL
            GROUP BY u.session_id, u.turn
            """,
            (project, since),
        )
        return [int(nano) for (nano,) in rows]

    def commits(self, filters: Filters, beyond: str) -> tuple[int, int]:
        where: list[str] = ["TRUE"]
        values: list[Any] = []
        if filters.projects is not None:
            where.append("project_id IN (SELECT value FROM json_each(?))")
            values.append(as_json(filters.projects))
        for sign, limit in ((">=", filters.since), ("<=", filters.until)):
            if limit is not None:
                where.append(f"committed_at {sign} ?")
                values.append(limit)
        which = " AND ".join(where)
        told = value(
            self.db,
            f"""
            SELECT count(*)
            FROM checkpoints
            WHERE evidence IS NOT NULL AND superseded_by IS NULL AND NOT is_merge AND {which}
            """,
            values,
        )
        sql = f"SELECT count(*) FROM commits WHERE reason <> ? AND {which}"
        silent = value(self.db, sql, (beyond, *values))
        return int(told), int(told) + int(silent)

    # -- approvals -------------------------------------------------------------------------------

    def told_approvals(self, filters: Filters) -> list[ApprovalRecord]:
        where, values = _where(filters)
        rows = fetch(
            self.db,
            f"""
            SELECT e.session_id, e.kind, e.created_at, e.data
            FROM events e INDEXED BY events_approvals
            JOIN sessions s ON s.id=e.session_id
            WHERE e.kind IN ('approval.requested', 'approval.resolved')
              AND e.created_at IS NOT NULL AND {_OWN} AND {where}
            ORDER BY e.session_id, e.created_at, e.id
            """,
            values,
        )
        return [
            ApprovalRecord(number, kind, at, msgspec.json.decode(data) if data else {})
            for number, kind, at, data in rows
        ]

    def announced_approvals(
        self, filters: Filters, questions: frozenset[str]
    ) -> list[ApprovalWait]:
        where, values = _where(filters)
        after = {"session": "s.id", "at": "g.at"}
        rows = fetch(
            self.db,
            f"""
            SELECT s.id, s.session_id, g.at, g.data,
              {_NEXT.format(index="returned", which=_RETURNED, **after)},
              {_NEXT.format(index="asked", which=_PROMPTED, **after)}
            FROM signals g INDEXED BY signals_asked
            JOIN sessions s ON s.agent=g.session_agent AND s.session_id=g.session_id
            WHERE g.event='PermissionRequest' AND {where}
            """,
            values,
        )
        found = []
        for number, name, at, data, returned, prompted in rows:
            told = msgspec.json.decode(data)
            if str(told.get("tool_name")).lower() in questions:
                continue
            if isinstance(child := told.get("agent_id"), str) and child:
                returned = self._returned(name, child, at)
            if returned is not None and prompted is not None and returned > prompted:
                returned = None  # another prompt came first
            found.append(ApprovalWait(number, at, returned))
        return found

    def _returned(self, parent: str, child: str, at: int) -> int | None:
        """Return the time of the next result in a subagent's session; its id contains its
        parent's."""
        sql = f"""
            SELECT {_NEXT.format(index="returned", which=_RETURNED, session="s.id", at="?")}
            FROM sessions s
            WHERE s.parent=? AND instr(s.session_id, ?)=1
        """
        rows = fetch(self.db, sql, (at, parent, f"agent-{child}"))
        return next((row[0] for row in rows if row[0] is not None), None)


def _where(filters: Filters) -> tuple[str, list[Any]]:
    where, values = session_filter(filters)
    return " AND ".join(where) or "TRUE", values


def _with_turns(rows: list[StatsRow], turns: dict[str, tuple[int, int]]) -> list[StatsRow]:
    """Return the rows with the counts from sessions, also of groups without token counts."""
    found = []
    for row in rows:
        sessions, count = turns.pop(row.name, (row.sessions, 0))
        found.append(StatsRow(row.name, sessions, count, row.tokens))
    return found + [StatsRow(name, *counts, Tokens()) for name, counts in turns.items()]
