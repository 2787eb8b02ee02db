"""What is remembered of sessions: summaries, observations, commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from whyfor.model.errors import Ambiguous, NotFound
from whyfor.model.events import SEQ_BITS, SEQ_MASK, StoredEvent
from whyfor.model.memory import (
    PRINTED_MAX,
    CommandCount,
    MemoryFilter,
    ModelCall,
    NoteCounts,
    NotePlace,
    NoteStatement,
    Observation,
    ProjectCommand,
    ProjectNotes,
    SessionMemory,
    SessionSummary,
    StoredObservation,
    TouchedFile,
    WaitingSession,
    apply_statements,
    statement_id,
)
from whyfor.model.titles import ProposedTitle
from whyfor.store.sql.database import StoreDatabase, fetch, stepped
from whyfor.store.sql.filters import as_json, session_filter
from whyfor.store.sql.search_index import index_card
from whyfor.store.sql.titles import headline

# Where a note belongs: to its session, a subagent's to the branch of its caller; or as it says.
_PLACES = """
    SELECT n.key, t.id,
      coalesce(t.agent, n.agent) AS agent,
      coalesce(t.session_id, n.session_name) AS session_id,
      t.parent,
      CASE WHEN t.id IS NULL THEN n.project_id ELSE t.project_id END AS project_id,
      coalesce(t.branch, u.branch, n.branch) AS branch
    FROM observations n
    LEFT JOIN sessions t ON t.id = n.session_id
    LEFT JOIN sessions u ON u.agent = t.agent AND u.session_id = t.parent
"""
_STORED = f"""
    SELECT o.body, s.agent, s.session_id, s.parent, p.identity, s.branch,
      (SELECT r.key FROM observations r WHERE r.replaces = o.key ORDER BY r.at DESC LIMIT 1)
    FROM observations o
    JOIN ({_PLACES}) s ON s.key = o.key
    LEFT JOIN projects p ON p.id = s.project_id
"""
_CURRENT = "NOT EXISTS (SELECT 1 FROM observations r WHERE r.replaces = o.key)"
_TEXT = """(
    SELECT concat_ws(
      ' ', b ->> '$.title', b ->> '$.narrative', b ->> '$.facts')
    FROM (SELECT CAST(o.body AS TEXT) AS b) t)"""
# The words of what was said, the data of what was done; of what was printed the beginning.
_COMMAND_MAX = 500  # characters of a command that a person gave the agent
_EVENTS = f"""
    SELECT id & {SEQ_MASK}, turn, kind, source, confidence, created_at, observed_at, actor,
      CASE
        WHEN kind IN ('user.prompt', 'assistant.message', 'question.asked', 'tool.call') THEN text
        WHEN kind = 'tool.result' THEN substr(text, 1, {PRINTED_MAX})
        WHEN kind = 'status.changed' AND actor = 'user' THEN substr(text, 1, {_COMMAND_MAX})
        ELSE ''
      END,
      name,
      CASE
        WHEN kind IN ('tool.call', 'tool.result', 'question.asked', 'turn.completed') THEN data
      END
    FROM events
    WHERE id BETWEEN ? AND ?
    ORDER BY id
"""
_SHORT = 8  # characters of a key that are shown at least
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_observation = msgspec.json.Decoder(Observation).decode
_summary = msgspec.json.Decoder(SessionSummary).decode
_statement = msgspec.json.Decoder(NoteStatement).decode


class SqlMemory:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def waiting(self, version: int) -> list[WaitingSession]:
        rows = fetch(
            self.db,
            """
            SELECT s.id, s.agent, s.session_id, s.own_from, s.last_seq, s.parent IS NOT NULL
            FROM sessions s
            LEFT JOIN memories m ON m.session_id = s.id
            WHERE s.last_seq IS DISTINCT FROM m.last_seq
              OR s.own_from IS DISTINCT FROM m.first_seq
              OR m.version IS DISTINCT FROM ?
            ORDER BY s.id
            """,
            (version,),
        )
        return [
            WaitingSession(number, agent, session_id, first, last, bool(subagent))
            for number, agent, session_id, first, last, subagent in rows
        ]

    def events(self, session: WaitingSession) -> Iterator[StoredEvent]:
        base = session.number << SEQ_BITS
        span = (base + session.first_seq, base + SEQ_MASK)
        for row in stepped(self.db, _EVENTS, span):
            data = row[-1]
            body = _decode(data) if data else None
            yield StoredEvent(*row[:-1], body)  # type: ignore[call-arg]  # ten fields

    def save(self, session: WaitingSession, memory: SessionMemory, version: int) -> None:
        number = session.number
        if fetch(self.db, "SELECT 1 FROM memories WHERE session_id = ?", (number,)):
            self._clear(number)
        self.db.execute("UPDATE vectors SET stale = 1 WHERE session_id = ?", (number,))
        self.db.execute(
            "INSERT INTO memories VALUES(?, ?, ?, ?, ?)",
            (number, session.first_seq, session.last_seq, version, _encode(memory.summary)),
        )
        index_card(self.db, number, memory.card)
        said = self._said_of(session)
        for note in memory.observations:
            self._put(apply_statements(note, said.pop(note.key, ())), number)
        for key in said:  # what a person wrote stays, also if the rules see no such note any more
            self._renew(key)
        self.db.executemany(
            "INSERT INTO session_commands VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
            [(number, *msgspec.structs.astuple(each)) for each in memory.commands],
        )

    def delete(self, session: int) -> None:
        self._clear(session)
        for table in ("vectors", "vector_bits"):
            self.db.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))

    def _clear(self, session: int) -> None:
        self.db.execute(
            """
            DELETE FROM observation_files
            WHERE key IN (SELECT key FROM observations WHERE session_id = ?)
            """,
            (session,),
        )
        for table in ("observations", "memories", "session_commands"):
            self.db.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))
        self.db.index.remove("cards", [session])

    def _said_of(self, session: WaitingSession) -> dict[str, list[NoteStatement]]:
        rows = fetch(
            self.db,
            """
            SELECT body FROM note_statements
            WHERE agent = ? AND session_id = ? AND session_id <> '' ORDER BY id
            """,
            (session.agent, session.session_id),
        )
        found: dict[str, list[NoteStatement]] = {}
        for (body,) in rows:
            said = _statement(body)
            found.setdefault(said.key, []).append(said)
        return found

    def _put(
        self, note: Observation | None, session: int, said: NoteStatement | None = None
    ) -> None:
        """Write an observation of a session; or of none, which says itself where it belongs."""
        if note is None:
            return
        place: tuple[Any, ...] = (None, None, "", "")
        if said is not None:
            project = fetch(self.db, "SELECT id FROM projects WHERE identity = ?", (said.project,))
            number = project[0][0] if project else None
            place = (number, said.branch, said.agent, said.session_id)
        self.db.execute(
            """
            INSERT INTO observations(
              key, session_id, type, state, at, body, pinned, replaces,
              project_id, branch, agent, session_name)
            VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT(key) DO UPDATE SET
              session_id=excluded.session_id, type=excluded.type, state=excluded.state,
              at=excluded.at, body=excluded.body, pinned=excluded.pinned,
              replaces=excluded.replaces, project_id=excluded.project_id, branch=excluded.branch,
              agent=excluded.agent, session_name=excluded.session_name
            """,
            (
                *(note.key, session, note.type, note.state, note.at, _encode(note)),
                *(note.pinned, note.replaces, *place),
            ),
        )
        self.db.executemany(
            "INSERT INTO observation_files VALUES(?, ?) ON CONFLICT DO NOTHING",
            [(path, note.key) for path in _files(note)],
        )

    def _drop(self, key: str) -> None:
        self.db.execute("DELETE FROM observations WHERE key = ?", (key,))
        self.db.execute("DELETE FROM observation_files WHERE key = ?", (key,))

    # -- what was said about them ----------------------------------------------------------------

    def state(self, statement: NoteStatement) -> None:
        self.db.execute(
            """
            INSERT INTO note_statements(key, at, action, agent, session_id, body)
            VALUES(?, ?, ?, ?, ?, ?)
            ON CONFLICT DO NOTHING
            """,
            (*statement_id(statement), statement.agent, statement.session_id, _encode(statement)),
        )
        self._renew(statement.key)

    def _renew(self, key: str) -> None:
        """Make one observation again from what was said about it."""
        said = self.said(key)
        rows = fetch(self.db, "SELECT session_id, body FROM observations WHERE key = ?", (key,))
        session, body = rows[0] if rows else (0, None)
        before = _observation(body) if session else None  # what was said before is in it
        after = apply_statements(before, said)
        self._drop(key)
        written = next((each for each in reversed(said) if each.action == "write"), None)
        self._put(after, session, None if session else written)

    def said(self, key: str) -> list[NoteStatement]:
        sql = "SELECT body FROM note_statements WHERE key = ? ORDER BY id"
        return [_statement(body) for (body,) in fetch(self.db, sql, (key,))]

    def all_said(self) -> list[NoteStatement]:
        rows = fetch(self.db, "SELECT body FROM note_statements ORDER BY id")
        return [_statement(body) for (body,) in rows]

    def model_calls(self, since: int) -> list[ModelCall]:
        sql = "SELECT body FROM note_statements WHERE action = 'asked' AND at >= ? ORDER BY id"
        found = (_statement(body).call for (body,) in fetch(self.db, sql, (since,)))
        return [call for call in found if call]

    def unasked(self, since: int, until: int, limit: int) -> list[WaitingSession]:
        rows = fetch(
            self.db,
            """
            SELECT s.id, s.agent, s.session_id, s.own_from, s.last_seq
            FROM sessions s
            WHERE s.parent IS NULL
              AND s.last_seq >= s.own_from
              AND s.ended_at BETWEEN ? AND ?
              AND NOT EXISTS (
                SELECT 1 FROM note_statements n
                WHERE n.action = 'asked' AND n.agent = s.agent AND n.session_id = s.session_id)
            ORDER BY s.ended_at DESC, s.id
            LIMIT ?
            """,
            (since, until, limit),
        )
        return [WaitingSession(*row) for row in rows]

    def keep_said(self, kept: Iterable[NoteStatement]) -> None:
        known = {statement_id(each) for each in kept}
        gone = [each for each in self.all_said() if statement_id(each) not in known]
        self.db.executemany(
            "DELETE FROM note_statements WHERE key = ? AND at = ? AND action = ?",
            [statement_id(each) for each in gone],
        )
        for key in dict.fromkeys(each.key for each in gone):
            # A derived one is made again from its session.
            self.db.execute(
                """
                UPDATE memories SET version = -1
                WHERE session_id IN (SELECT session_id FROM observations WHERE key = ?)
                """,
                (key,),
            )
            self._drop(key)
            self._renew(key)

    # -- reading ---------------------------------------------------------------------------------

    def name_session(self, session: int, title: ProposedTitle) -> None:
        self.db.execute(
            "UPDATE sessions SET title=?, title_rank=? WHERE id=? AND title_rank<?",
            (headline(title.text), title.rank, session, title.rank),
        )

    def summary(self, session: int) -> SessionSummary | None:
        rows = fetch(self.db, "SELECT summary FROM memories WHERE session_id = ?", (session,))
        return _summary(rows[0][0]) if rows else None

    def observations(self, wanted: MemoryFilter, limit: int | None) -> list[StoredObservation]:
        return self.note_page(wanted, -1 if limit is None else limit, None)

    def note_page(
        self, wanted: MemoryFilter, limit: int, after: NotePlace | None
    ) -> list[StoredObservation]:
        where, values = _conditions(wanted)
        if after is not None:
            where.append("(coalesce(o.at, -1) < ? OR (coalesce(o.at, -1) = ? AND o.key > ?))")
            values += [after.at, after.at, after.key]
        rows = fetch(
            self.db,
            f"""
            {_STORED}
            WHERE {" AND ".join(where) or "TRUE"}
            ORDER BY o.at DESC, o.key
            LIMIT ?
            """,
            (*values, limit),
        )
        return [_stored(row) for row in rows]

    def count(self, wanted: MemoryFilter) -> NoteCounts:
        where, values = _conditions(wanted)
        rows = fetch(
            self.db,
            f"""
            SELECT count(*), count(DISTINCT s.agent || ':' || nullif(s.session_id, '')),
              coalesce(sum(o.state <> 'refuted' AND {_CURRENT}), 0)
            FROM observations o
            JOIN ({_PLACES}) s ON s.key = o.key
            WHERE {" AND ".join(where) or "TRUE"}
            """,
            tuple(values),
        )
        return NoteCounts(*rows[0])

    def projects(self) -> list[ProjectNotes]:
        rows = fetch(
            self.db,
            f"""
            SELECT p.identity, count(*), max(o.at)
            FROM observations o
            JOIN ({_PLACES}) s ON s.key = o.key
            JOIN projects p ON p.id = s.project_id
            GROUP BY p.id
            ORDER BY max(o.at) DESC, p.identity
            """,
        )
        return [ProjectNotes(*row) for row in rows]

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

    def short_keys(self, keys: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for key in keys:
            beside = fetch(
                self.db,
                """
                SELECT max(key) FROM observations WHERE key < ?1
                UNION ALL
                SELECT min(key) FROM observations WHERE key > ?1
                """,
                (key,),
            )
            size = max(_SHORT, *(_shared(key, other or "") + 1 for (other,) in beside))
            found[key] = key[:size]
        return found

    def commands(self, projects: Iterable[int]) -> list[CommandCount]:
        rows = fetch(
            self.db,
            """
            SELECT family, max(latest), sum(runs), sum(ok), sum(failed), max(last_ok)
            FROM (
              SELECT c.family, c.runs, c.ok, c.failed, c.last_ok,
                first_value(c.command) OVER (
                  PARTITION BY c.family
                  ORDER BY c.last_ok DESC NULLS LAST, c.session_id) AS latest
              FROM session_commands c
              JOIN sessions s ON s.id = c.session_id
              WHERE s.project_id IN (SELECT value FROM json_each(?))) c
            GROUP BY family
            ORDER BY sum(ok) DESC, sum(runs) DESC, family
            """,
            (as_json(list(projects)),),
        )
        return [CommandCount(*row) for row in rows]

    def changed_commands(self) -> list[int]:
        rows = fetch(self.db, "SELECT project_id FROM changed_commands ORDER BY project_id")
        return [number for (number,) in rows]

    def project_commands(self, project: int) -> list[ProjectCommand]:
        rows = fetch(
            self.db,
            f"""
            SELECT c.family, c.command, c.runs, c.ok, c.failed, c.last_ok, c.ok_seq, s.id,
              coalesce(e.turn, 0)
            FROM sessions s
            JOIN session_commands c ON c.session_id = s.id
            LEFT JOIN events e ON e.id = (s.id << {SEQ_BITS}) + c.ok_seq
            WHERE s.project_id = ?
            ORDER BY c.family, coalesce(c.last_ok, 0), s.agent, s.session_id
            """,
            (project,),
        )
        found: dict[str, ProjectCommand] = {}
        for *counted, session, turn in rows:
            one = ProjectCommand(CommandCount(*counted), 1, session, turn)
            before = found.get(one.count.family)
            found[one.count.family] = _together(before, one) if before else one
        passed = [each for each in found.values() if each.count.ok]
        return sorted(passed, key=lambda each: (-each.count.ok, each.count.family))

    def save_commands(self, project: int, notes: Iterable[tuple[int, Observation]]) -> None:
        sql = "SELECT key FROM observations WHERE type = 'command' AND project_id = ?"
        for (key,) in fetch(self.db, f"{sql} AND session_id <> 0", (project,)):
            self._drop(key)
        for session, note in notes:
            self._put(apply_statements(note, self.said(note.key)), session)
            values = (project, note.key)
            self.db.execute("UPDATE observations SET project_id = ? WHERE key = ?", values)
        self.db.execute("DELETE FROM changed_commands WHERE project_id = ?", (project,))

    def last_user(self, kind: str, name: str, projects: Iterable[int]) -> int | None:
        used = "session_commands u" if kind == "run" else "touches u"
        fits = "u.family = ?1" if kind == "run" else "instr('/' || u.path || '/', ?1) > 0"
        path = name.strip("/").removeprefix(".")
        rows = fetch(
            self.db,
            f"""
            SELECT s.id
            FROM {used}
            JOIN sessions s ON s.id = u.session_id
            WHERE s.project_id IN (SELECT value FROM json_each(?2)) AND {fits}
            ORDER BY s.ended_at DESC, s.id DESC
            LIMIT 1
            """,
            (name if kind == "run" else f"/{path}/" if path else "/", as_json(list(projects))),
        )
        return int(rows[0][0]) if rows else None

    def printed(self, session: int) -> list[str]:
        sql = "SELECT text FROM events WHERE session_id = ? AND kind = 'tool.result'"
        return [text for (text,) in fetch(self.db, sql, (session,))]

    def touched(self, session: int) -> set[str]:
        sql = "SELECT DISTINCT path FROM touches WHERE session_id = ?"
        return {path for (path,) in fetch(self.db, sql, (session,))}

    def questions(self, session: int) -> list[str]:
        rows = fetch(
            self.db,
            """
            SELECT t.text
            FROM events e
            JOIN event_texts t ON t.id = e.id
            WHERE e.session_id = ? AND e.kind = 'tool.call'
              AND (e.name LIKE '%whyfor%' OR t.text LIKE '%whyfor%')
            """,
            (session,),
        )
        return [text for (text,) in rows]

    def files(self, projects: Iterable[int], limit: int) -> list[TouchedFile]:
        rows = fetch(
            self.db,
            """
            SELECT t.path, max(s.ended_at), count(DISTINCT s.id), sum(t.action = 'write') > 0
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


def _conditions(wanted: MemoryFilter) -> tuple[list[str], list[Any]]:
    """Return the conditions on observations `o` and their places `s`."""
    where, values = session_filter(msgspec.structs.replace(wanted.sessions, person=None), "o.at")
    if wanted.sessions.person is not None:
        where.append("o.person = ?")
        values.append(wanted.sessions.person)
    among = (
        ("o.type", wanted.types or None),
        ("o.state", wanted.states or None),
        ("o.session_id", wanted.numbers),
    )
    for column, given in among:
        if given is not None:
            where.append(f"{column} IN (SELECT value FROM json_each(?))")
            values.append(as_json(list(given)))
    if wanted.pinned:
        where.append("o.pinned")
    if wanted.current:
        where.append(_CURRENT)
    if wanted.file:
        where.append(
            """
            o.key IN (SELECT key FROM observation_files WHERE path = ? OR path LIKE ? ESCAPE '\\')
            """
        )
        values += [wanted.file, "%/" + _escaped(wanted.file)]
    if wanted.paths is not None:
        where.append(
            """
            o.key IN (
              SELECT key FROM observation_files WHERE path IN (SELECT value FROM json_each(?)))
            """
        )
        values.append(as_json(list(wanted.paths)))
    for word in wanted.words:
        where.append(f"{_TEXT} LIKE ? ESCAPE '\\'")
        values.append(f"%{_escaped(word)}%")
    return where, values


def _together(before: ProjectCommand, later: ProjectCommand) -> ProjectCommand:
    """Return the counts of both, and the rest of the one that passed last."""
    one, other = before.count, later.count
    last = later if other.ok else before
    count = msgspec.structs.replace(
        last.count,
        runs=one.runs + other.runs,
        ok=one.ok + other.ok,
        failed=one.failed + other.failed,
    )
    return ProjectCommand(count, before.sessions + 1, last.session, last.turn)


def _stored(row: tuple[Any, ...]) -> StoredObservation:
    return StoredObservation(_observation(row[0]), *row[1:])


def _files(note: Observation) -> dict[str, None]:
    return dict.fromkeys((*note.files_written, *note.files_read))


def _shared(one: str, other: str) -> int:
    """Return how many characters two keys begin with alike."""
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return place
    return min(len(one), len(other))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
