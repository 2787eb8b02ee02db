"""The database's part in forget: what belongs to what, which rows are deleted, and no byte left in
the file."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from whyfor.files import replace
from whyfor.locks import file_name, open_file
from whyfor.model.events import SEQ_BITS, EventPlace
from whyfor.model.sessions import SessionName
from whyfor.model.signals import Signal
from whyfor.store.journal import ForgottenEntry, SegmentEntry
from whyfor.store.sql.removal import SqlRemoval, last_event
from whyfor.store.sqlite.connection import StoreConnection, fetch
from whyfor.store.tombstones import SESSION, STORY, Tombstones, read_salt

READERS_MS = 5_000  # how long to wait for a reader that is still open


class SqliteForget(SqlRemoval):
    db: StoreConnection

    # -- tombstones ------------------------------------------------------------------------------

    def tombstones(self, home: Path) -> Tombstones:
        found = Tombstones(read_salt(home), set(), set(), {}, set(), set())
        for kind, name in fetch(self.db, "SELECT kind, name FROM forgotten"):
            if kind == "session":
                agent, _, ident = name.partition(":")
                found.sessions.add((agent, ident))
            elif kind == "commit":
                found.commits.add(name)
            elif kind == "string":
                found.add_strings([name])
            elif kind == "record":
                session, _, digest = name.rpartition("/")
                found.records.setdefault(session, set()).add(digest)
        return found

    def save_tombstones(self, entry: ForgottenEntry) -> None:
        rows = [("session", name) for name in entry.sessions]
        rows += [("commit", sha) for sha in entry.commits]
        rows += [("lost", sha) for sha in entry.lost]
        rows += [("string", digest) for digest in entry.strings]
        for session, digests in entry.records.items():
            rows += [("record", f"{session}/{digest}") for digest in digests]
        self.db.executemany("INSERT OR IGNORE INTO forgotten VALUES(?,?)", rows)

    def reasons(self) -> dict[str, str]:
        rows = fetch(self.db, "SELECT kind, name FROM forgotten WHERE kind IN ('commit', 'lost')")
        told = {"commit": STORY, "lost": SESSION}
        return {sha: told[kind] for kind, sha in sorted(rows, reverse=True)}

    # -- what belongs to what --------------------------------------------------------------------

    def descendants(self, names: Iterable[SessionName]) -> set[SessionName]:
        sql = """
            SELECT session_id FROM sessions WHERE agent=?1 AND parent=?2
            UNION
            SELECT session_id FROM sources WHERE agent=?1 AND parent=?2
        """
        found = set(names)
        todo = list(found)
        while todo:
            agent, ident = todo.pop()
            children = {(agent, child) for (child,) in fetch(self.db, sql, (agent, ident))}
            todo += children - found
            found |= children
        return found

    def children_begun(self, name: SessionName, first: int, last: int) -> set[SessionName]:
        rows = fetch(
            self.db,
            """
            SELECT agent, session_id
            FROM sessions
            WHERE agent=? AND parent=? AND started_at BETWEEN ? AND ?
            """,
            (*name, first, last),
        )
        return _names(rows)

    def has_transcript(self, name: SessionName) -> bool:
        sql = "SELECT 1 FROM sources WHERE agent=? AND session_id=? AND sidecar IS NULL"
        return bool(fetch(self.db, sql, name))

    def sessions_before(self, when: int) -> set[SessionName]:
        rows = fetch(
            self.db,
            """
            SELECT agent, session_id
            FROM sessions
            WHERE coalesce(ended_at, started_at) < ? AND parent IS NULL
            """,
            (when,),
        )
        return _names(rows)

    def subagents_before(self, when: int) -> set[SessionName]:
        rows = fetch(
            self.db,
            """
            SELECT agent, session_id
            FROM sessions s
            WHERE coalesce(ended_at, started_at) < ? AND parent IS NOT NULL
            AND EXISTS(
              SELECT 1 FROM sources o
              WHERE o.agent=s.agent AND o.session_id=s.session_id AND o.sidecar IS NULL
            )
            """,
            (when,),
        )
        return _names(rows)

    def has_signal_before(self, when: int) -> bool:
        return bool(fetch(self.db, "SELECT 1 FROM signals WHERE at < ? LIMIT 1", (when,)))

    def rewrites(self, sha: str) -> set[str]:
        pairs = fetch(
            self.db, "SELECT sha, superseded_by FROM checkpoints WHERE superseded_by IS NOT NULL"
        )
        found = {sha}
        size = 0
        while len(found) > size:
            size = len(found)
            for pair in pairs:
                if not found.isdisjoint(pair):
                    found.update(pair)
        return found

    def record_count(self, name: SessionName) -> int:
        sql = "SELECT coalesce(sum(records), 0) FROM sources WHERE agent=? AND session_id=?"
        return int(fetch(self.db, sql, name)[0][0])

    def forks(self, session_id: str) -> set[SessionName]:
        rows = fetch(
            self.db, "SELECT agent, session_id FROM sessions WHERE forked_from=?", (session_id,)
        )
        return _names(rows)

    def event_places(self, session: int) -> dict[int, EventPlace]:
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT key, id - ?, text FROM events WHERE id BETWEEN ? AND ?",
            (base, base, last_event(session)),
        )
        return {key: EventPlace(seq, text) for key, seq, text in rows}

    def sessions_with(self, keys: Iterable[int]) -> set[SessionName]:
        rows = fetch(
            self.db,
            """
            SELECT DISTINCT s.agent, s.session_id
            FROM sessions s CROSS JOIN json_each(?) k
            JOIN events e ON e.session_id=s.id AND e.key=k.value
            """,
            (_json(sorted(keys)),),
        )
        return _names(rows)

    def folders(self, names: Iterable[SessionName]) -> dict[SessionName, str]:
        sql = "SELECT cwd FROM sessions WHERE agent=? AND session_id=? AND cwd IS NOT NULL"
        return {name: cwd for name in names for (cwd,) in fetch(self.db, sql, name)}

    def line_digests(self, name: SessionName) -> list[str]:
        rows = fetch(
            self.db,
            """
            SELECT DISTINCT g.digest
            FROM segments g JOIN sources o ON o.id=g.source_id
            WHERE o.agent=? AND o.session_id=? AND o.framing='lines'
            """,
            name,
        )
        return [digest for (digest,) in rows]

    def source_positions(self, agent: str) -> dict[str, int]:
        return dict(fetch(self.db, "SELECT path, position FROM sources WHERE agent=?", (agent,)))

    def titles(self) -> dict[int, str]:
        return dict(fetch(self.db, "SELECT key, title FROM leaf_titles"))

    def signal_ids(self, signals: Iterable[Signal]) -> list[int]:
        sql = """
            SELECT id
            FROM signals
            WHERE agent=? AND at=? AND event=? AND session_id IS ? AND cwd IS ?
            ORDER BY id LIMIT ?
        """
        alike = Counter((s.agent, s.at, s.event, s.session_id, s.cwd) for s in signals)
        found: list[int] = []
        for values, number in alike.items():
            found += [row[0] for row in fetch(self.db, sql, (*values, number))]
        return found

    # -- rows to delete --------------------------------------------------------------------------

    def empty_session(self, session: int) -> None:
        self.db.execute("DELETE FROM authored_lines")  # it names sessions and what they wrote
        which = "(agent, session_id) = (SELECT agent, session_id FROM sessions WHERE id=?)"
        self.db.execute(f"DELETE FROM approvals WHERE {which}", (session,))
        self.db.execute("DELETE FROM approval_scans WHERE session_id=?", (session,))
        super().empty_session(session)

    def clear_folder(self, session: int) -> None:
        self.db.execute("UPDATE sessions SET cwd=NULL, project_id=NULL WHERE id=?", (session,))

    def reset_sources(self, names: Iterable[SessionName]) -> None:
        sql = "SELECT id FROM sources WHERE agent=?1 AND (session_id=?2 OR parent=?2)"
        sources = [row for name in names for row in fetch(self.db, sql, name)]
        for table in ("segments", "unparsed", "unknown_types", "hiding"):
            self.db.executemany(f"DELETE FROM {table} WHERE source_id=?", sources)
        self.db.executemany(
            """
            UPDATE sources SET
              generation=0, position=0, tail=0, head_hash=NULL, end_hash=NULL, state='{}',
              records=0, unparsed=0, error=NULL, cwd=NULL
            WHERE id=?
            """,
            sources,
        )

    def delete_signals(self, ids: Iterable[int]) -> None:
        self.db.executemany("DELETE FROM signals WHERE id=?", [(ident,) for ident in ids])
        self.db.execute(
            """
            UPDATE marks SET value=min(value, (SELECT coalesce(max(id), 0) FROM signals))
            WHERE name='signals'
            """
        )

    def delete_titles(self, keys: Iterable[int]) -> None:
        self.db.executemany("DELETE FROM leaf_titles WHERE key=?", [(key,) for key in keys])

    def put_titles(self, titles: dict[int, str]) -> None:
        self.db.executemany("INSERT OR REPLACE INTO leaf_titles VALUES(?,?)", titles.items())

    def drop_hints(self, names: set[SessionName]) -> None:
        rows = fetch(self.db, "SELECT sha, nearby FROM commits WHERE nearby IS NOT NULL")
        for sha, nearby in rows:
            hints = msgspec.json.decode(nearby)
            left = [
                hint for hint in hints if (hint.get("agent"), hint.get("session_id")) not in names
            ]
            if left != hints:
                kept = _json(left) if left else None
                self.db.execute("UPDATE commits SET nearby=? WHERE sha=?", (kept, sha))

    def keep_notes(self, kept: Iterable[tuple[str, int]]) -> None:
        known = set(kept)
        rows = [row for row in fetch(self.db, "SELECT sha, at FROM notes") if row not in known]
        self.db.executemany("DELETE FROM notes WHERE sha=? AND at=?", rows)

    def keep_overrides(self, kept: Iterable[tuple[str, str, str]]) -> None:
        known = set(kept)
        found = fetch(self.db, "SELECT sha, agent, session_id FROM overrides")
        self.db.executemany(
            "DELETE FROM overrides WHERE sha=? AND agent=? AND session_id=?",
            [row for row in found if row not in known],
        )

    # -- rows that change ------------------------------------------------------------------------

    def linked_whole(self, sessions: Iterable[int]) -> list[tuple[int, int]]:
        return fetch(
            self.db,
            """
            SELECT l.project_id, s.id
            FROM sessions s JOIN linked l ON l.session_id=s.id
            WHERE s.id IN (SELECT value FROM json_each(?)) AND l.last_seq >= s.last_seq
            """,
            (_json(sorted(sessions)),),
        )

    def renumber_linked(self, sessions: Iterable[int], whole: list[tuple[int, int]]) -> None:
        self.db.executemany(
            "UPDATE linked SET last_seq=0 WHERE session_id=?", [(number,) for number in sessions]
        )
        self.db.executemany(
            """
            UPDATE linked SET last_seq=(SELECT last_seq FROM sessions WHERE id=linked.session_id)
            WHERE project_id=? AND session_id=?
            """,
            whole,
        )

    def move_segments(self, segments: Mapping[tuple[str, str, int, int], SegmentEntry]) -> None:
        self.db.executemany(
            """
            UPDATE segments SET digest=?1
            WHERE source_id=(SELECT id FROM sources WHERE agent=?2 AND path=?3)
            AND generation=?4 AND start=?5 AND stop=?6 AND digest<>?1
            """,
            [(entry.digest, *key, entry.end) for key, entry in segments.items()],
        )

    @contextmanager
    def trial(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")

    # -- bytes -----------------------------------------------------------------------------------

    def overwrite_deleted(self) -> None:
        self.db.execute("PRAGMA secure_delete=ON")

    def scrub(self, copy: Path) -> bool:
        for table in ("words", "passages", "cards"):
            self.db.execute(f"INSERT INTO {table}({table}) VALUES('optimize')")
        replace(copy, b"")
        self.db.execute("VACUUM INTO ?", (file_name(copy),))
        clean = open_file(copy)
        try:
            with self.db.backup("main", clean, "main") as pages:
                while not pages.done:
                    pages.step(5000)
        finally:
            clean.close()
            copy.unlink()
        deadline = time.monotonic() + READERS_MS / 1000
        while True:
            busy, _, _ = fetch(self.db, "PRAGMA wal_checkpoint(TRUNCATE)")[0]
            if not busy:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)


def _names(rows: Iterable[tuple[Any, ...]]) -> set[SessionName]:
    return {(agent, ident) for agent, ident in rows}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
