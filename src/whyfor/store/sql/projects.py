"""Projects, their places and aliases."""

from __future__ import annotations

from whyfor.model.sessions import Project
from whyfor.store.journal import AliasEntry
from whyfor.store.sql.database import StoreDatabase, fetch, first_row
from whyfor.store.sql.filters import UNCOUNTED


class SqlProjects:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def known(self) -> list[tuple[int, Project]]:
        sql = "SELECT id, identity, evidence, name, remote, root_commit, path FROM projects"
        return [(row[0], Project(*row[1:])) for row in fetch(self.db, sql)]

    def places(self) -> dict[str, int]:
        return dict(fetch(self.db, "SELECT cwd, project_id FROM places"))

    def active(self) -> dict[int, tuple[int, int | None]]:
        sql = (
            "SELECT project_id, count(*), max(ended_at) FROM sessions INDEXED BY sessions_lately "
            "WHERE parent IS NULL AND project_id IS NOT NULL GROUP BY 1"
        )
        copies = self._uncounted()
        return {
            number: (sessions - copies.get(number, 0), last)
            for number, sessions, last in fetch(self.db, sql)
        }

    def _uncounted(self) -> dict[int, int]:
        """By project: sessions that are copies, or do not count for another reason."""
        return dict(fetch(self.db, f"SELECT project_id, count(*) FROM {UNCOUNTED} GROUP BY 1"))

    def find(self, identity: str) -> tuple[int, Project] | None:
        row = first_row(
            self.db,
            "SELECT id, identity, evidence, name, remote, root_commit, path FROM projects WHERE "
            "identity=?",
            (identity,),
        )
        return (row[0], Project(*row[1:])) if row else None

    def save_alias(self, entry: AliasEntry) -> None:
        self.db.execute(
            """
            INSERT INTO aliases VALUES(?,?,?)
            ON CONFLICT(path) DO UPDATE SET identity=excluded.identity, at=excluded.at
            """,
            (entry.path, entry.project.identity, entry.at),
        )

    def former(self, project: Project) -> list[tuple[str, str | None]]:
        if project.path is None:
            return []
        rows = fetch(
            self.db,
            """
            SELECT identity, root_commit
            FROM projects
            WHERE path=? AND identity<>? AND evidence IN ('path', 'root')
            """,
            (project.path, project.identity),
        )
        return [(identity, root) for identity, root in rows]

    def session_counts(self) -> dict[int, int]:
        sql = "SELECT project_id, count(*) FROM sessions WHERE parent IS NULL GROUP BY project_id"
        copies = self._uncounted()
        return {number: count - copies.get(number, 0) for number, count in fetch(self.db, sql)}

    def story_counts(self) -> dict[int, int]:
        rows = fetch(
            self.db,
            """
            SELECT project_id, count(*)
            FROM checkpoints
            WHERE evidence IS NOT NULL
            GROUP BY project_id
            """,
        )
        return dict(rows)

    def aliases(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, identity in fetch(self.db, "SELECT path, identity FROM aliases ORDER BY path"):
            found.setdefault(identity, []).append(path)
        return found
