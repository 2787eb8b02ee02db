"""What people shared of commits and sessions, each person's by itself; what was taken back; and
what changed for those who keep copies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whyfor.model.events import SEQ_BITS, SEQ_MASK
from whyfor.model.sync import SessionUpload, SharedChange, SharedStory, UploadedSegment
from whyfor.store.postgres.connection import ScopedConnection
from whyfor.store.sql.checkpoints import SqlCheckpoints

_LOGGED = 771_890  # of who logs changes of a project
_STORIES = """
    SELECT person, sha, sha = ANY(%s) AS same
    FROM checkpoints
    WHERE (sha = ANY(%s) OR patch_id = ANY(%s)) AND evidence IS NOT NULL AND team_project = %s
    ORDER BY same DESC, committed_at DESC, person
    LIMIT %s
"""
_SOURCES = """
    SELECT o.id, o.agent, o.session_id, o.path, o.framing, o.generation, o.parent, o.sidecar, o.cwd
    FROM sources o
    WHERE o.person = %s AND o.agent = %s AND (o.session_id = %s OR o.parent = %s)
    ORDER BY o.id
"""


class PersonCheckpoints(SqlCheckpoints):
    """The checkpoints that one person sent."""

    def __init__(self, db: ScopedConnection, person: int) -> None:
        super().__init__(db)
        self.person = person

    def _all(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        for alias in ("c", "q"):
            sql = sql.replace(
                f"WHERE {alias}.sha", f"WHERE {alias}.person={self.person} AND {alias}.sha"
            )
        return super()._all(sql, values)


class PostgresUploads:
    def __init__(self, db: ScopedConnection) -> None:
        self.db = db

    # -- stories of everybody --------------------------------------------------------------------

    def stories(
        self, shas: Iterable[str], patches: Iterable[str] = (), limit: int = 200
    ) -> list[SharedStory]:
        names, changes = list(shas), list(patches)
        values = (names, names, changes, self.db.scope.project, limit)
        found = self.db.run(_STORIES, values).fetchall()
        people = self.people({person for person, _, _ in found})
        told = []
        for person, sha, same in found:
            checkpoint = PersonCheckpoints(self.db, person).of_commits([sha]).get(sha)
            if checkpoint is not None:
                how = "sha" if same else "patch"
                who = people.get(person, f"former member {person}")
                told.append(SharedStory(person, who, "", checkpoint, how))
        return told

    def people(self, numbers: Iterable[int]) -> dict[int, str]:
        rows = self.db.run("SELECT person, name FROM people_names(%s::integer[])", (list(numbers),))
        return dict(rows.fetchall())

    def authors(self) -> list[int]:
        sql = "SELECT DISTINCT person FROM sessions WHERE team_project = %s"
        return [person for (person,) in self.db.run(sql, (self.db.scope.project,)).fetchall()]

    def owners_of(self, sessions: Iterable[int]) -> dict[int, int]:
        sql = "SELECT id, person FROM sessions WHERE id = ANY(%s) AND team_project = %s"
        rows = self.db.run(sql, (list(sessions), self.db.scope.project))
        return dict(rows.fetchall())

    def owners(self, agent: str, session_id: str) -> list[int]:
        sql = (
            "SELECT DISTINCT person FROM sessions "
            "WHERE agent = %s AND session_id = %s AND team_project = %s ORDER BY 1"
        )
        rows = self.db.run(sql, (agent, session_id, self.db.scope.project))
        return [person for (person,) in rows.fetchall()]

    def own_sessions(self) -> list[tuple[str, str]]:
        """Return the sessions that something was sent of, by agent and id, in that order."""
        sql = "SELECT agent, session_id FROM sources GROUP BY 1, 2 ORDER BY min(id)"
        return [(agent, ident) for agent, ident in self.db.run(sql).fetchall()]

    def named(self, agent: str | None, beginning: str) -> list[tuple[str, str]]:
        sql = (
            "SELECT DISTINCT agent, session_id FROM sessions "
            "WHERE starts_with(session_id, %s) AND (%s::text IS NULL OR agent = %s) "
            "AND team_project = %s ORDER BY 1, 2 LIMIT 2"
        )
        rows = self.db.run(sql, (beginning, agent, agent, self.db.scope.project))
        return [(kind, ident) for kind, ident in rows.fetchall()]

    def sources(self, person: int, agent: str, session_id: str) -> list[SessionUpload]:
        found = []
        rows = self.db.run(_SOURCES, (person, agent, session_id, session_id)).fetchall()
        for number, kind, ident, path, framing, generation, parent, sidecar, cwd in rows:
            pieces = self.db.run(
                "SELECT start, stop, digest FROM segments "
                "WHERE source_id = %s AND generation = %s ORDER BY start",
                (number, generation),
            ).fetchall()
            machine, _, name = path.partition(":")
            segments = tuple(UploadedSegment(*piece) for piece in pieces)
            if segments:
                found.append(
                    SessionUpload(
                        *(machine, kind, ident, name, framing, generation, segments),
                        *(parent, sidecar, cwd),
                    )
                )
        return found

    def event_keys(
        self, person: int, agent: str, session_id: str, seqs: Iterable[int]
    ) -> dict[int, int]:
        sql = """
            SELECT e.id & %s, e.key
            FROM sessions s JOIN events e ON e.id = ANY(
              SELECT (s.id << %s::integer) + n FROM unnest(%s::bigint[]) n)
            WHERE s.person = %s AND s.agent = %s AND s.session_id = %s AND s.team_project = %s
        """
        values = (SEQ_MASK, SEQ_BITS, list(seqs), person, agent, session_id)
        return dict(self.db.run(sql, (*values, self.db.scope.project)).fetchall())

    def has_digest(self, digest: str) -> bool:
        sql = "SELECT 1 FROM segments WHERE team_project = %s AND digest = %s LIMIT 1"
        return self.db.run(sql, (self.db.scope.project, digest)).fetchone() is not None

    # -- what was taken back, and what changed ---------------------------------------------------

    def buried(self, kind: str, names: Iterable[str]) -> set[str]:
        rows = self.db.run("SELECT name FROM buried(%s, %s::text[])", (kind, list(names)))
        return {name for (name,) in rows.fetchall()}

    def bury(self, kind: str, names: Iterable[str], at: int) -> None:
        for name in names:
            self.db.run(
                "INSERT INTO tombstones(kind, name, at) VALUES(%s, %s, %s) ON CONFLICT DO NOTHING",
                (kind, name, at),
            )

    def log(self, kind: str, names: Iterable[str], at: int) -> None:
        # The numbers of a project's changes then rise in the order in which they can be read.
        self.db.run(
            "SELECT pg_advisory_xact_lock(%s::integer, %s::integer)",
            (_LOGGED, self.db.scope.project),
        )
        for name in names:
            self.db.run(
                "INSERT INTO shared_changes(kind, name, at) VALUES(%s, %s, %s)", (kind, name, at)
            )

    def changes(self, after: int, limit: int) -> list[SharedChange]:
        sql = (
            "SELECT id, kind, name, person FROM shared_changes "
            "WHERE team_project = %s AND id > %s ORDER BY id LIMIT %s"
        )
        rows = self.db.run(sql, (self.db.scope.project, after, limit))
        return [SharedChange(*row) for row in rows.fetchall()]

    def last_change(self) -> int:
        sql = "SELECT coalesce(max(id), 0) FROM shared_changes WHERE team_project = %s"
        [(last,)] = self.db.run(sql, (self.db.scope.project,)).fetchall()
        return int(last)
