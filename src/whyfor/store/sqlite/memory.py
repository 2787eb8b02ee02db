"""What is remembered of sessions: summaries, observations, commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

from whyfor.model.errors import Ambiguous, NotFound
from whyfor.model.memory import (
    CommandCount,
    MemoryFilter,
    Observation,
    SessionMemory,
    SessionSummary,
    StoredObservation,
    TouchedFile,
    WaitingSession,
)
from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.filters import as_json, session_filter

_STORED = """
    SELECT o.body, s.agent, s.session_id, s.parent, p.identity, s.branch
    FROM observations o
    JOIN sessions s ON s.id = o.session_id
    LEFT JOIN projects p ON p.id = s.project_id
"""
_encode = msgspec.json.Encoder().encode
_observation = msgspec.json.Decoder(Observation).decode
_summary = msgspec.json.Decoder(SessionSummary).decode


class SqliteMemory:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def waiting(self, version: int) -> list[WaitingSession]:
        rows = fetch(
            self.db,
            """
            SELECT s.id, s.agent, s.session_id, s.own_from, s.last_seq, s.parent IS NOT NULL
            FROM sessions s
            LEFT JOIN memories m ON m.session_id = s.id
            WHERE s.last_seq IS NOT m.last_seq
              OR s.own_from IS NOT m.first_seq
              OR m.version IS NOT ?
            ORDER BY s.id
            """,
            (version,),
        )
        return [
            WaitingSession(number, agent, session_id, first, last, bool(subagent))
            for number, agent, session_id, first, last, subagent in rows
        ]

    def save(self, session: WaitingSession, memory: SessionMemory, version: int) -> None:
        number = session.number
        self.delete(number)
        self.db.execute(
            "INSERT INTO memories VALUES(?, ?, ?, ?, ?)",
            (number, session.first_seq, session.last_seq, version, _encode(memory.summary)),
        )
        self.db.executemany(
            "INSERT OR REPLACE INTO observations VALUES(?, ?, ?, ?, ?, ?)",
            [
                (each.key, number, each.type, each.state, each.at, _encode(each))
                for each in memory.observations
            ],
        )
        self.db.executemany(
            "INSERT OR IGNORE INTO observation_files VALUES(?, ?)",
            [(path, each.key) for each in memory.observations for path in _files(each)],
        )
        self.db.executemany(
            "INSERT INTO session_commands VALUES(?, ?, ?, ?, ?, ?, ?)",
            [(number, *msgspec.structs.astuple(each)) for each in memory.commands],
        )

    def delete(self, session: int) -> None:
        self.db.execute(
            """
            DELETE FROM observation_files
            WHERE key IN (SELECT key FROM observations WHERE session_id = ?)
            """,
            (session,),
        )
        for table in ("observations", "memories", "session_commands"):
            self.db.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))

    def summary(self, session: int) -> SessionSummary | None:
        rows = fetch(self.db, "SELECT summary FROM memories WHERE session_id = ?", (session,))
        return _summary(rows[0][0]) if rows else None

    def observations(self, wanted: MemoryFilter, limit: int | None) -> list[StoredObservation]:
        where, values = session_filter(wanted.sessions, "o.at")
        for column, given in (("o.type", wanted.types), ("o.state", wanted.states)):
            if given:
                where.append(f"{column} IN (SELECT value FROM json_each(?))")
                values.append(as_json(list(given)))
        if wanted.file:
            where.append(
                """
                o.key IN (
                  SELECT key FROM observation_files WHERE path = ? OR path LIKE ? ESCAPE '\\')
                """
            )
            values += [wanted.file, "%/" + _escaped(wanted.file)]
        rows = fetch(
            self.db,
            f"""
            {_STORED}
            WHERE {" AND ".join(where) or "1"}
            ORDER BY o.at DESC, o.key
            LIMIT ?
            """,
            (*values, -1 if limit is None else limit),
        )
        return [_stored(row) for row in rows]

    def observation(self, key: str) -> StoredObservation:
        rows = fetch(
            self.db,
            f"{_STORED} WHERE o.key >= ? AND o.key < ? ORDER BY o.key LIMIT 3",
            (key, key + "\U0010ffff"),
        )
        if not rows or not key:
            raise NotFound(f"no note is called {key!r}", "List them: whyfor memory")
        if len(rows) > 1:
            raise Ambiguous(f"{key!r} fits several notes", "Give more of the id.")
        return _stored(rows[0])

    def commands(self, projects: Iterable[int]) -> list[CommandCount]:
        rows = fetch(
            self.db,
            """
            SELECT c.family, c.command, sum(c.runs), sum(c.ok), sum(c.failed), max(c.last_ok)
            FROM session_commands c
            JOIN sessions s ON s.id = c.session_id
            WHERE s.project_id IN (SELECT value FROM json_each(?))
            GROUP BY c.family
            ORDER BY sum(c.ok) DESC, sum(c.runs) DESC, c.family
            """,
            (as_json(list(projects)),),
        )
        return [CommandCount(*row) for row in rows]

    def files(self, projects: Iterable[int], limit: int) -> list[TouchedFile]:
        rows = fetch(
            self.db,
            """
            SELECT t.path, max(s.ended_at), count(DISTINCT s.id), max(t.action = 'write')
            FROM sessions s
            JOIN touches t ON t.session_id = s.id AND t.seq >= s.own_from
            WHERE s.project_id IN (SELECT value FROM json_each(?))
            GROUP BY t.path
            ORDER BY max(s.ended_at) DESC, count(DISTINCT s.id) DESC, t.path
            LIMIT ?
            """,
            (as_json(list(projects)), limit),
        )
        return [
            TouchedFile(path, last, sessions, bool(written))
            for path, last, sessions, written in rows
        ]


def _stored(row: tuple[Any, ...]) -> StoredObservation:
    return StoredObservation(_observation(row[0]), *row[1:])


def _files(note: Observation) -> dict[str, None]:
    return dict.fromkeys((*note.files_written, *note.files_read))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
