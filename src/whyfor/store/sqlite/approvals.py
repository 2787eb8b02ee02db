"""What agents asked to be allowed, and who answered."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.approvals import (
    ApprovalDecision,
    ApprovalQuery,
    ChangedSession,
    ListedApproval,
)
from whyfor.model.events import SEQ_BITS
from whyfor.store.sqlite.connection import StoreConnection, fetch, first_row

# Signals that are about a request: what was asked, an answer of ours, a denial by the agent itself.
_ABOUT = (
    "(json_extract(data, '$.asked') IS NOT NULL OR json_extract(data, '$.answer') IS NOT NULL "
    "OR event IN ('PermissionRequest', 'permissionRequest', 'PermissionDenied'))"
)
_decode = msgspec.msgpack.Decoder(ApprovalDecision).decode


class SqliteApprovals:
    def __init__(self, db: StoreConnection) -> None:
        self.db = db

    def changed(self, after: int) -> list[ChangedSession]:
        rows = fetch(
            self.db,
            f"""
            SELECT s.agent, s.session_id, s.id, s.last_seq
            FROM sessions s
            LEFT JOIN approval_scans a ON a.session_id=s.id
            WHERE s.last_seq IS DISTINCT FROM a.last_seq
            UNION
            SELECT g.session_agent, g.session_id, s.id, coalesce(s.last_seq, 0)
            FROM signals g
            LEFT JOIN sessions s ON s.agent=g.session_agent AND s.session_id=g.session_id
            WHERE g.id > ? AND g.session_id IS NOT NULL AND {_ABOUT.replace("data", "g.data")}
            """,
            (after,),
        )
        return [ChangedSession(*row) for row in rows]

    def has_requests(self, session: ChangedSession) -> bool:
        name = (session.agent, session.session_id)
        sql = f"SELECT 1 FROM signals WHERE session_agent=? AND session_id=? AND {_ABOUT} LIMIT 1"
        if first_row(self.db, sql, name):
            return True
        sql = """
            SELECT 1 FROM events
            WHERE id BETWEEN ? AND ?
              AND (kind IN ('approval.requested', 'approval.resolved') OR denied)
            LIMIT 1
        """
        base = (session.number or 0) << SEQ_BITS
        span = (base, base + (1 << SEQ_BITS) - 1)
        return session.number is not None and bool(first_row(self.db, sql, span))

    def save(self, session: ChangedSession, found: list[ApprovalDecision]) -> None:
        name = (session.agent, session.session_id)
        self.db.execute("DELETE FROM approvals WHERE agent=? AND session_id=?", name)
        rows = [
            (*name, each.asked_at, each.decision, each.by, msgspec.msgpack.encode(each))
            for each in found
        ]
        self.db.executemany(
            "INSERT INTO approvals(agent, session_id, asked_at, decision, answered_by, body) "
            "VALUES(?, ?, ?, ?, ?, ?)",
            rows,
        )
        if session.number is not None:
            scan = (session.number, session.last_seq)
            self.db.execute("INSERT OR REPLACE INTO approval_scans VALUES(?, ?)", scan)

    def listed(self, query: ApprovalQuery) -> list[ListedApproval]:
        where, values = _where(query)
        if query.before is not None:
            where += " AND (a.asked_at, a.id) < (?, ?)"
            values += list(query.before)
        limit = -1 if query.limit is None else query.limit
        rows = fetch(
            self.db,
            f"""
            SELECT a.id, a.body, s.title, p.identity
            FROM approvals a
            LEFT JOIN sessions s ON s.agent=a.agent AND s.session_id=a.session_id
            LEFT JOIN projects p ON p.id=s.project_id
            WHERE {where} ORDER BY a.asked_at DESC, a.id DESC LIMIT ?
            """,
            (*values, limit),
        )
        return [
            ListedApproval(id=ident, decision=_decode(body), title=title, project=project)
            for ident, body, title, project in rows
        ]

    def count(self, query: ApprovalQuery) -> int:
        where, values = _where(query)
        sql = f"""
            SELECT count(*) FROM approvals a
            LEFT JOIN sessions s ON s.agent=a.agent AND s.session_id=a.session_id
            LEFT JOIN projects p ON p.id=s.project_id
            WHERE {where}
        """
        return int(fetch(self.db, sql, tuple(values))[0][0])


def _where(query: ApprovalQuery) -> tuple[str, list[Any]]:
    asked = {
        "a.agent = ?": query.agent,
        "a.asked_at >= ?": query.since,
        "a.decision = ?": query.decision,
        "a.answered_by = ?": query.by,
        "p.identity = ?": query.project,
    }
    given = {condition: value for condition, value in asked.items() if value}
    return " AND ".join(["1", *given]), list(given.values())
