"""What linking reads and stores: candidate sessions for commits, and how far each was examined."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.sessions import CandidateSession, CommitAuthor
from whyfor.store.sql.database import StoreDatabase, fetch, first_row
from whyfor.store.sql.filters import as_json

_CANDIDATE = """
    s.id, s.agent, s.session_id, s.parent, s.project_id, s.started_at, s.ended_at, s.last_seq
"""
_GIVEN = "iif(s.copy_of IS NULL AND s.parent IS NULL, s.own_from - 1, 0)"


class SqliteLinks:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def grown(self) -> list[tuple[int, int]]:
        rows = fetch(
            self.db,
            """
            SELECT s.id, s.project_id
            FROM sessions s
            LEFT JOIN linked l ON l.project_id=s.project_id AND l.session_id=s.id
            WHERE s.project_id IS NOT NULL AND s.last_seq > coalesce(l.last_seq, -1)
            """,
        )
        return [(session, project) for session, project in rows]

    def hooked_projects(self, after: int) -> set[int]:
        rows = fetch(
            self.db,
            """
            SELECT p.project_id
            FROM signals g
            JOIN places p ON p.cwd=g.repository
            WHERE g.id > ? AND g.agent='git'
            """,
            (after,),
        )
        return {project for (project,) in rows}

    def lengths(self, project: int) -> list[tuple[int, int]]:
        rows = fetch(self.db, "SELECT id, last_seq FROM sessions WHERE project_id=?", (project,))
        return [(session, last) for session, last in rows]

    def candidates(self, project: int, sessions: Iterable[int]) -> list[CandidateSession]:
        listed = as_json(sorted(sessions))
        rows = fetch(
            self.db,
            f"""
            SELECT {_CANDIDATE}, coalesce(l.last_seq, -1), s.cwd, {_GIVEN}
            FROM sessions s
            LEFT JOIN linked l ON l.session_id=s.id AND l.project_id=?1
            WHERE s.project_id=?1
               OR s.id IN (SELECT value FROM json_each(?2))
               OR s.session_id IN (
                   SELECT parent FROM sessions WHERE id IN (SELECT value FROM json_each(?2)))
            """,
            (project, listed),
        )
        return [CandidateSession(*row) for row in rows]

    def candidate(self, agent: str, session_id: str) -> CandidateSession | None:
        row = first_row(
            self.db,
            f"""
            SELECT {_CANDIDATE}, -1, s.cwd, {_GIVEN}
            FROM sessions s
            WHERE s.agent=? AND s.session_id=?
            """,
            (agent, session_id),
        )
        return CandidateSession(*row) if row else None

    def activity(self, session: int, most: int | None = None) -> tuple[int, bytes] | None:
        row = first_row(
            self.db,
            """
            SELECT last_seq, body
            FROM acts
            WHERE session_id=?1 AND (?2 IS NULL OR octet_length(body) <= ?2)
            """,
            (session, most),
        )
        return (int(row[0]), bytes(row[1])) if row else None

    def origins(self, session: int) -> list[int]:
        rows = fetch(
            self.db,
            """
            SELECT o.id
            FROM sessions s
            JOIN sessions o ON o.session_id=s.forked_from
            WHERE s.id=?1
            UNION
            SELECT b.session_id
            FROM usage a
            JOIN usage b ON b.key=a.key AND b.counts
            WHERE a.session_id=?1 AND NOT a.counts
            """,
            (session,),
        )
        return [origin for (origin,) in rows]

    def authors(self) -> list[CommitAuthor]:
        rows = fetch(
            self.db,
            """
            SELECT DISTINCT s.cwd, c.author, c.email
            FROM parts q
            JOIN checkpoints c ON c.sha=q.sha
            JOIN sessions s ON s.id=q.session_id
            WHERE q.role='made' AND q.evidence IN ('hook', 'output')
            """,
        )
        return [CommitAuthor(*row) for row in rows]

    def tips(self, project: int) -> list[str] | None:
        row = first_row(self.db, "SELECT shas FROM tips WHERE project_id=?", (project,))
        return msgspec.json.decode(row[0], type=list[str]) if row else None

    # -- writing, in the caller's transaction ----------------------------------------------------

    def save_tips(self, project: int, shas: list[str]) -> None:
        self.db.execute("INSERT OR REPLACE INTO tips VALUES(?,?)", (project, as_json(shas)))

    def save_activity(self, rows: Iterable[tuple[int, int, bytes]]) -> None:
        self.db.executemany("INSERT OR REPLACE INTO acts VALUES(?,?,?)", rows)

    def save_looked(self, project: int, rows: Iterable[tuple[int, int]]) -> None:
        self.db.executemany(
            "INSERT OR REPLACE INTO linked VALUES(?,?,?)", [(project, *row) for row in rows]
        )
