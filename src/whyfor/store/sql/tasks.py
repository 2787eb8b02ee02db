"""Tasks: what trackers and people say of them, and which parts of sessions were spent on them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.events import SEQ_BITS, SEQ_MASK, StoredEvent
from whyfor.model.memory import WaitingSession
from whyfor.model.tasks import StoredRun, TaskIssue, TaskRun, TaskStatement, said_id
from whyfor.store.sql.database import StoreDatabase, fetch
from whyfor.store.sql.filters import as_json, escape_like

# Calls of a shell or a tracker's tools that name a task, and what a person said.
_EVENTS = f"""
    SELECT id & {SEQ_MASK}, turn, kind, source, confidence, created_at, observed_at, actor,
      substr(text, 1, 8000), name, data
    FROM events
    WHERE id BETWEEN ? AND ?
      AND (kind IN ('user.prompt', 'approval.resolved')
        OR kind = 'tool.call'
          AND (data LIKE '%bd %' OR data LIKE '%git%commit%' OR name LIKE '%beads%'))
    ORDER BY id
"""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_run = msgspec.json.Decoder(TaskRun).decode
_issue = msgspec.json.Decoder(TaskIssue).decode
_statement = msgspec.json.Decoder(TaskStatement).decode


class SqlTasks:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    # -- runs ------------------------------------------------------------------------------------

    def waiting(self, version: int) -> list[WaitingSession]:
        rows = fetch(
            self.db,
            """
            SELECT s.id, s.agent, s.session_id, s.own_from, s.last_seq, s.parent IS NOT NULL
            FROM sessions s
            LEFT JOIN task_scans t ON t.session_id = s.id
            WHERE s.last_seq IS DISTINCT FROM t.last_seq OR t.version IS DISTINCT FROM ?
            ORDER BY s.id
            """,
            (version,),
        )
        return [
            WaitingSession(number, agent, session_id, first, last, bool(subagent))
            for number, agent, session_id, first, last, subagent in rows
        ]

    def events(self, session: WaitingSession) -> list[StoredEvent]:
        base = session.number << SEQ_BITS
        rows = fetch(self.db, _EVENTS, (base + session.first_seq, base + SEQ_MASK))
        found = []
        for *fields, data in rows:
            body = _decode(data) if data else None
            found.append(StoredEvent(*fields, body))  # type: ignore[call-arg]  # ten fields
        return found

    def save(self, session: WaitingSession, runs: Iterable[TaskRun], version: int) -> None:
        self.delete(session.number)
        self.db.execute(
            "INSERT INTO task_scans VALUES(?, ?, ?)", (session.number, session.last_seq, version)
        )
        self.db.executemany(
            "INSERT INTO task_runs VALUES(?, ?, ?)",
            [(session.number, run.key, _encode(run)) for run in runs],
        )

    def delete(self, session: int) -> None:
        for table in ("task_runs", "task_scans"):
            self.db.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))

    def runs(
        self,
        *,
        keys: Iterable[str] | None = None,
        projects: Iterable[int] | None = None,
        since: int | None = None,
    ) -> list[StoredRun]:
        where, values = ["TRUE"], list[object]()
        if keys is not None:
            where.append("r.key IN (SELECT value FROM json_each(?))")
            values.append(as_json(list(keys)))
        if projects is not None:
            where.append("s.project_id IN (SELECT value FROM json_each(?))")
            values.append(as_json(list(projects)))
        if since is not None:
            where.append("s.ended_at >= ?")
            values.append(since)
        rows = fetch(
            self.db,
            f"""
            SELECT r.body, r.session_id, p.identity
            FROM task_runs r
            JOIN sessions s ON s.id = r.session_id
            LEFT JOIN projects p ON p.id = s.project_id
            WHERE {" AND ".join(where)}
            ORDER BY s.started_at, r.session_id, r.key
            """,
            tuple(values),
        )
        return [StoredRun(_run(body), session, project) for body, session, project in rows]

    def keys_like(self, key: str, limit: int) -> list[str]:
        rows = fetch(
            self.db,
            """
            SELECT key FROM (
              SELECT key FROM task_runs UNION SELECT key FROM task_statements
              UNION SELECT key FROM task_issues) k
            WHERE lower(substr(key, 1, ?)) = lower(?)
            ORDER BY key LIMIT ?
            """,
            (len(key), key, limit),
        )
        return [found for (found,) in rows]

    def ended(self, sessions: Iterable[int], words: Iterable[str]) -> dict[int, int]:
        rows = fetch(
            self.db,
            """
            SELECT s.id, max(g.at)
            FROM sessions s
            JOIN signals g ON g.session_agent = s.agent AND g.session_id = s.session_id
            WHERE s.id IN (SELECT value FROM json_each(?))
              AND g.event IN (SELECT value FROM json_each(?))
              AND g.at >= s.ended_at
            GROUP BY s.id
            """,
            (as_json(list(sessions)), as_json(list(words))),
        )
        return dict(rows)

    # -- what trackers say -----------------------------------------------------------------------

    def save_issue(self, issue: TaskIssue) -> None:
        self.db.execute(
            """
            INSERT INTO task_issues(project, key, closed_by, body) VALUES(?, ?, ?, ?)
            ON CONFLICT(project, key) DO UPDATE SET
              closed_by=excluded.closed_by, body=excluded.body
            """,
            (issue.project, issue.key, issue.closed_by, _encode(issue)),
        )
        if issue.closed_by:
            self._scan_again("session_id = ?", issue.closed_by)
        self._scan_again("branch LIKE ? ESCAPE '\\'", f"%{escape_like(issue.key)}%")

    def issues(self, project: str | None = None) -> list[TaskIssue]:
        where = "TRUE" if project is None else "project = ?"
        values = () if project is None else (project,)
        rows = fetch(
            self.db, f"SELECT body FROM task_issues WHERE {where} ORDER BY project, key", values
        )
        return [_issue(body) for (body,) in rows]

    def closed_by(self, session_id: str) -> list[TaskIssue]:
        sql = "SELECT body FROM task_issues WHERE closed_by = ? ORDER BY project, key"
        return [_issue(body) for (body,) in fetch(self.db, sql, (session_id,))]

    def keep_issues(self, kept: Iterable[TaskIssue]) -> None:
        """Delete all but these."""
        keep = {(issue.project, issue.key): issue for issue in kept}
        for issue in self.issues():
            if keep.get((issue.project, issue.key)) != issue:
                self.db.execute(
                    "DELETE FROM task_issues WHERE project = ? AND key = ?",
                    (issue.project, issue.key),
                )
                if wanted := keep.get((issue.project, issue.key)):
                    self.save_issue(wanted)

    # -- what people say -------------------------------------------------------------------------

    def state(self, statement: TaskStatement) -> None:
        self.db.execute(
            """
            INSERT INTO task_statements(project, key, at, action, agent, session_id, body)
            VALUES(?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO NOTHING
            """,
            (*said_id(statement), _encode(statement)),
        )
        if statement.session_id:
            self._scan_again("agent = ? AND session_id = ?", statement.agent, statement.session_id)

    def said(
        self, *, keys: Iterable[str] | None = None, session: tuple[str, str] | None = None
    ) -> list[TaskStatement]:
        where, values = ["TRUE"], list[object]()
        if keys is not None:
            where.append("key IN (SELECT value FROM json_each(?))")
            values.append(as_json(list(keys)))
        if session is not None:
            where.append("agent = ? AND session_id = ?")
            values += session
        rows = fetch(
            self.db,
            f"SELECT body FROM task_statements WHERE {' AND '.join(where)} ORDER BY at, id",
            tuple(values),
        )
        return [_statement(body) for (body,) in rows]

    def keep_said(self, kept: Iterable[TaskStatement]) -> None:
        keep = {said_id(each) for each in kept}
        for said in self.said():
            if said_id(said) not in keep:
                self.db.execute(
                    """
                    DELETE FROM task_statements WHERE project = ? AND key = ? AND at = ?
                      AND action = ? AND agent = ? AND session_id = ?
                    """,
                    said_id(said),
                )
                if said.session_id:
                    self._scan_again("agent = ? AND session_id = ?", said.agent, said.session_id)

    def _scan_again(self, where: str, *values: str) -> None:
        self.db.execute(
            f"""
            UPDATE task_scans SET version = 0
            WHERE session_id IN (SELECT id FROM sessions WHERE {where})
            """,
            values,
        )
