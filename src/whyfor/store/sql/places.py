"""Which project a folder belongs to, and with it a session: the write side."""

from __future__ import annotations

from whyfor.model.paths import below
from whyfor.model.sessions import Project
from whyfor.store.sql.counters import SessionCounters
from whyfor.store.sql.database import StoreDatabase, fetch, first_row
from whyfor.store.sql.filters import as_json
from whyfor.store.sql.projects import SqlProjects

_DEPTH = 8  # subagents that call subagents
_PROJECT = "identity, evidence, name, remote, root_commit, path"


class PlaceWriter:
    """The part of the write side that knows projects."""

    db: StoreDatabase
    _live: dict[tuple[str, str], SessionCounters]

    def place(self, cwd: str) -> int | None:
        row = first_row(self.db, "SELECT project_id FROM places WHERE cwd=?", (cwd,))
        return int(row[0]) if row else None

    def project(self, number: int) -> Project | None:
        row = first_row(
            self.db,
            f"SELECT {_PROJECT} FROM projects WHERE id=?",
            (number,),
        )
        return Project(*row) if row else None

    def former(self, project: Project) -> list[tuple[str, str | None]]:
        return SqlProjects(self.db).former(project)

    def learn_place(self, cwd: str, project: Project, former: list[str], observed_at: int) -> int:
        """This folder belongs to this project, as of now; what was known under former identities
        joins it."""
        project_id = self._project(project)
        for identity in former:
            self._join(identity, project_id)
        self.db.execute(
            "INSERT INTO places VALUES(?,?,?) ON CONFLICT(cwd) DO UPDATE SET "
            "project_id=excluded.project_id, "
            "observed_at=excluded.observed_at",
            (cwd, project_id, observed_at),
        )
        return project_id

    def adopt(self, path: str, project: Project) -> int:
        """Everything recorded at or below a path belongs to this project."""
        number = self._project(project)
        for table in ("sessions", "places"):
            for (cwd,) in fetch(self.db, f"SELECT DISTINCT cwd FROM {table} WHERE cwd IS NOT NULL"):
                if below(cwd, path):
                    self.db.execute(f"UPDATE {table} SET project_id=? WHERE cwd=?", (number, cwd))
        for live in self._live.values():
            if live.row["cwd"] is not None and below(live.row["cwd"], path):
                live.row["project_id"] = number
        own = fetch(self.db, "SELECT id FROM sessions WHERE project_id=?", (number,))
        self.inherit_projects([session for (session,) in own])
        return number

    def place_session(self, agent: str, session_id: str, project: Project) -> None:
        live = self._live.get((agent, session_id))
        if live is not None and live.row["project_id"] is None:
            live.row["project_id"] = self._project(project)

    def adopted(self, cwd: str) -> Project | None:
        """The project a person gave a path to: of several that hold it, the longest."""
        known = fetch(
            self.db,
            "SELECT a.path, p.identity, p.evidence, p.name, p.remote, p.root_commit, p.path FROM "
            "aliases a "
            "JOIN projects p ON p.identity=a.identity",
        )
        found = [row for row in known if below(cwd, row[0])]
        return Project(*max(found, key=lambda row: len(row[0]))[1:]) if found else None

    def _project(self, project: Project) -> int:
        sql = "SELECT id FROM projects WHERE identity=?"
        found = first_row(self.db, sql, (project.identity,))
        if found is None:
            self.db.execute(
                f"INSERT INTO projects({_PROJECT}) VALUES(?,?,?,?,?,?) ON CONFLICT DO NOTHING",
                [getattr(project, name) for name in _PROJECT.split(", ")],
            )
            [found] = fetch(self.db, sql, (project.identity,))
        return int(found[0])

    def _join(self, identity: str, project_id: int) -> None:
        old = first_row(self.db, "SELECT id FROM projects WHERE identity=?", (identity,))
        if old is None:
            return
        for table in ("sessions", "places", "commits", "checkpoints", "observations"):
            self.db.execute(
                f"UPDATE {table} SET project_id=? WHERE project_id=?", (project_id, old[0])
            )
        for table in ("linked", "tips"):  # what is not known any more is looked at again
            self.db.execute(f"DELETE FROM {table} WHERE project_id=?", (old[0],))
        self.db.execute("DELETE FROM projects WHERE id=?", (old[0],))
        for live in self._live.values():
            if live.row["project_id"] == old[0]:
                live.row["project_id"] = project_id

    def inherit_projects(self, callers: list[int]) -> None:
        """A subagent that does not say where it ran belongs to the project of its caller."""
        for _ in range(_DEPTH):
            rows = fetch(
                self.db,
                """
                UPDATE sessions SET project_id=p.project_id
                FROM sessions p
                WHERE p.agent=sessions.agent AND p.session_id=sessions.parent
                  AND sessions.cwd IS NULL AND sessions.project_id IS DISTINCT FROM p.project_id
                  AND (sessions.id IN (SELECT value FROM json_each(?1)) OR sessions.parent IN (
                    SELECT session_id FROM sessions
                    WHERE id IN (SELECT value FROM json_each(?1))))
                RETURNING sessions.id, sessions.project_id
                """,
                (as_json(callers),),
            )
            projects = dict(rows)
            for live in self._live.values():
                if live.id in projects:
                    live.row["project_id"] = projects[live.id]
            callers = list(projects)
            if not callers:
                return
