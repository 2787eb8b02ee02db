"""Vectors of sessions: found by meaning. Their signs are apart: a search reads all of those, but
only few of the rest."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.memory import WaitingSession
from whyfor.model.query import Filters
from whyfor.model.vectors import SessionVectors, TurnMark, VectorBits, VectorCounts
from whyfor.store.sql.database import StoreDatabase, fetch, first_row
from whyfor.store.sql.filters import as_json, session_filter

# Sessions of people that something is remembered of, without vectors of this model or with old.
_WAITING = """
    FROM memories m
    JOIN sessions s ON s.id = m.session_id
    LEFT JOIN vectors v ON v.session_id = s.id
    WHERE s.parent IS NULL AND s.last_seq >= s.own_from
      AND (v.model IS DISTINCT FROM ? OR v.stale = 1)
"""
_ALL = 1 << 40
_encode = msgspec.msgpack.Encoder().encode
_marks = msgspec.msgpack.Decoder(tuple[TurnMark, ...]).decode


class SqlVectors:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def waiting(self, model: str, limit: int | None = None) -> list[WaitingSession]:
        rows = fetch(
            self.db,
            f"""
            SELECT s.id, s.agent, s.session_id, s.own_from, s.last_seq
            {_WAITING}
            ORDER BY s.ended_at DESC, s.id DESC
            LIMIT ?
            """,
            (model, _ALL if limit is None else limit),
        )
        return [WaitingSession(*row) for row in rows]

    def save(self, session: WaitingSession, vectors: SessionVectors) -> bool:
        current = first_row(
            self.db,
            """
            SELECT 1
            FROM memories m JOIN sessions s ON s.id = m.session_id
            WHERE s.id = ? AND s.agent = ? AND s.session_id = ?
              AND s.own_from = ? AND s.last_seq = ? AND m.last_seq = s.last_seq
            """,
            msgspec.structs.astuple(session)[:5],
        )
        if current is None:
            return False
        marks = _encode(vectors.turns)
        self.db.execute(
            """
            INSERT INTO vectors(session_id, model, stale, turns, marks, codes)
            VALUES(?, ?, 0, ?, ?, ?)
            ON CONFLICT(session_id) DO UPDATE
            SET model = excluded.model, stale = 0, turns = excluded.turns,
              marks = excluded.marks, codes = excluded.codes
            """,
            (session.number, vectors.model, len(vectors.turns), marks, vectors.codes),
        )
        self.db.execute(
            """
            INSERT INTO vector_bits(session_id, model, bits) VALUES(?, ?, ?)
            ON CONFLICT(session_id) DO UPDATE SET model = excluded.model, bits = excluded.bits
            """,
            (session.number, vectors.model, vectors.bits),
        )
        return True

    def load(self, model: str, sessions: Iterable[int]) -> dict[int, SessionVectors]:
        rows = fetch(
            self.db,
            """
            SELECT v.session_id, v.marks, b.bits, v.codes
            FROM vectors v JOIN vector_bits b ON b.session_id = v.session_id
            WHERE v.model = ? AND v.session_id IN (SELECT value FROM json_each(?))
            """,
            (model, as_json(sorted(sessions))),
        )
        return {
            number: SessionVectors(model, _marks(marks), bits, codes)
            for number, marks, bits, codes in rows
        }

    def bits(self, model: str, filters: Filters) -> list[VectorBits]:
        if filters.fields:
            return []
        where, values = session_filter(filters)
        if filters.committed:
            where.append("s.id IN (SELECT session_id FROM parts)")
        joined = "JOIN sessions s ON s.id = b.session_id" if where else ""
        rows = fetch(
            self.db,
            f"""
            SELECT b.session_id, b.bits
            FROM vector_bits b {joined}
            WHERE {" AND ".join(["b.model = ?", *where])}
            """,
            (model, *values),
        )
        return [VectorBits(*row) for row in rows]

    def count(self, model: str) -> VectorCounts:
        [(sessions, vectors)] = fetch(
            self.db, "SELECT count(*), coalesce(sum(turns), 0) FROM vectors WHERE model=?", (model,)
        )
        [(size,)] = fetch(
            self.db,
            """
            SELECT coalesce((SELECT sum(length(codes) + length(marks)) FROM vectors), 0)
              + coalesce((SELECT sum(length(bits)) FROM vector_bits), 0)
            """,
        )
        [(waiting,)] = fetch(self.db, f"SELECT count(*) {_WAITING}", (model,))
        return VectorCounts(sessions, vectors, size, waiting)

    def exist(self, model: str) -> bool:
        sql = "SELECT 1 FROM vector_bits WHERE model = ? LIMIT 1"
        return first_row(self.db, sql, (model,)) is not None

    def clear(self) -> None:
        for table in ("vectors", "vector_bits"):
            self.db.execute(f"DELETE FROM {table}")
