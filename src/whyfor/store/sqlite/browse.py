"""The read side of what runs for long: pages of sessions and events, and what is new since a
moment. Never writes."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from whyfor.model.events import StoredEvent
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.read import StoreRows, session_filter
from whyfor.store.sqlite.schema import SEQ_BITS

_OLDEST = -(1 << 62)  # stands for an unknown beginning: such sessions come last


class Browser:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.reader = StoreRows(db)

    def sessions(
        self, filters: Filters, before: tuple[int, int] | None, limit: int, *, subagents: bool
    ) -> list[tuple[tuple[int, int], Session]]:
        """Newest first, after the place of the last one seen; each with its own place."""
        where, values = session_filter(filters)
        if not subagents:
            where.append("s.parent IS NULL")
        if before is not None:
            where.append(f"(coalesce(s.started_at, {_OLDEST}), s.id) < (?, ?)")
            values += before
        rows = fetch(
            self.db,
            f"SELECT s.id, coalesce(s.started_at, {_OLDEST}) FROM sessions s WHERE "
            f"{' AND '.join(where) or '1'} "
            "ORDER BY s.started_at DESC, s.id DESC LIMIT ?",
            (*values, limit),
        )
        found = self.reader.by_number([number for number, _ in rows])
        return [((began, number), found[number]) for number, began in rows]

    def project_of(self, sha: str) -> int | None:
        """The project a commit was seen in."""
        sql = (
            "SELECT project_id FROM checkpoints WHERE sha=?1 UNION SELECT project_id FROM commits "
            "WHERE sha=?1"
        )
        rows = fetch(self.db, sql, (sha,))
        return int(rows[0][0]) if rows else None

    def active(self) -> dict[int, tuple[int, int | None]]:
        """By project: how many main sessions, and when something was last said."""
        sql = (
            "SELECT project_id, count(*), max(ended_at) FROM sessions INDEXED BY sessions_lately "
            "WHERE parent IS NULL AND project_id IS NOT NULL GROUP BY 1"
        )
        return {number: (sessions, last) for number, sessions, last in fetch(self.db, sql)}

    # -- at a glance -----------------------------------------------------------------------------

    def last_seqs(self, sessions: list[int]) -> dict[int, int]:
        sql = "SELECT id, last_seq FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
        return dict(fetch(self.db, sql, (str(sessions),)))

    def committed(self, sessions: list[int]) -> dict[int, int]:
        """How many commits hold work of a session, rewritten ones once."""
        sql = (
            "SELECT p.session_id, count(*) FROM parts p JOIN checkpoints c ON c.sha=p.sha "
            "WHERE c.superseded_by IS NULL AND p.session_id IN (SELECT value FROM json_each(?)) "
            "GROUP BY 1"
        )
        return dict(fetch(self.db, sql, (str(sessions),)))

    def tail(self, session: int, limit: int, cut: int) -> list[StoredEvent]:
        """The last events in order: words and calls, no longer than that; data four times as
        long is left out."""
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT id, turn, kind, source, confidence, created_at, observed_at, actor, "
            "CASE WHEN kind IN ('tool.result', 'assistant.thinking') THEN '' ELSE substr(text, 1, "
            "?) END, name, "
            "CASE WHEN octet_length(data) <= ? THEN data END "
            "FROM events WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?",
            (cut, 4 * cut, base, base + (1 << SEQ_BITS) - 1, limit),
        )
        found = []
        for ident, *fields, data in reversed(rows):
            body = msgspec.json.decode(data) if data else None
            found.append(StoredEvent(ident - base, *fields, body))  # type: ignore[call-arg]  # nine columns, nine fields
        return found

    def long(self, session: int, among: int, size: int) -> list[StoredEvent]:
        """Of a session's last events the calls and requests with more bytes than that, newest
        first."""
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1 FROM (SELECT id, kind, text, data FROM events WHERE id BETWEEN ?1 AND "
            "?2 ORDER BY id DESC "
            "LIMIT ?3) WHERE kind IN ('tool.call', 'approval.requested') AND "
            "max(octet_length(text), "
            "coalesce(octet_length(data), 0)) > ?4"
        )
        rows = fetch(self.db, sql, (base, base + (1 << SEQ_BITS) - 1, among, size))
        return [event for (seq,) in rows for event in self.reader.events(session, seq, seq)]

    # -- what is new -----------------------------------------------------------------------------

    def lengths(self) -> dict[int, int]:
        """Every session's last seq."""
        return dict(fetch(self.db, "SELECT id, last_seq FROM sessions WHERE last_seq > 0"))

    def observed(self, session: int, seq: int) -> tuple[int, int]:
        """When the event at a seq, or the one before it if that is gone, was observed; and its
        seq. Zeros: none."""
        base = session << SEQ_BITS
        sql = (
            "SELECT observed_at, id - ?1 FROM events WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC "
            "LIMIT 1"
        )
        rows = fetch(self.db, sql, (base, base + seq))
        return (rows[0][0], rows[0][1]) if rows else (0, 0)

    def last(self, session: int) -> int:
        """The seq of a session's last event; 0 if it has none."""
        return self.observed(session, (1 << SEQ_BITS) - 1)[1]

    def stretch(self, session: int, after: int, limit: int) -> list[StoredEvent]:
        found: list[StoredEvent] = []
        for event in self.reader.events(session, after + 1):
            found.append(event)
            if len(found) >= limit:
                break
        return found

    def names(self, sessions: list[int]) -> dict[int, tuple[Any, ...]]:
        """Agent, id, parent, project of sessions by their numbers."""
        sql = (
            "SELECT s.id, s.agent, s.session_id, s.parent, p.identity FROM sessions s "
            "LEFT JOIN projects p ON p.id=s.project_id WHERE s.id IN (SELECT value FROM "
            "json_each(?))"
        )
        return {row[0]: row[1:] for row in fetch(self.db, sql, (str(sessions),))}

    def version(self) -> int:
        """Another number whenever another connection has changed the database."""
        return int(fetch(self.db, "PRAGMA data_version")[0][0])
