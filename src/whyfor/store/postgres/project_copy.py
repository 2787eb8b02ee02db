"""A whole project of a team, read and written by whoever owns the database.

Both run in one transaction, as the server's own role, in the name of one person after the other: so
row-level security holds here too, and no statement can reach another project. People who have left
are members inside that transaction only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import sql

from whyfor.model.accounts import CopiedPerson, CopiedProject, CopiedTombstone
from whyfor.model.errors import BadInput, NotFound, StoreError
from whyfor.store.postgres.connection import SCHEMA, ScopedConnection, StoreScope
from whyfor.store.postgres.schema import APP
from whyfor.store.postgres.store import PostgresStore

_ABOVE = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
_PROJECT = """
    SELECT id, organisation_id, name, visibility, retention_days, quota_bytes FROM team_projects
    WHERE name = %s OR id::text = %s ORDER BY name = %s DESC LIMIT 1
"""
# Who sent something, and who is a member.
_PEOPLE = """
    SELECT p.id, p.name, p.email, p.state, m.role
    FROM people p LEFT JOIN project_members m ON m.person_id = p.id AND m.team_project = %(project)s
    WHERE m.role IS NOT NULL OR p.id IN (
      SELECT person FROM sources WHERE team_project = %(project)s
      UNION SELECT person FROM checkpoints WHERE team_project = %(project)s
      UNION SELECT person FROM tombstones WHERE team_project = %(project)s)
    ORDER BY p.id
"""
_JOIN = """
    UPDATE people SET state = 'active' WHERE id = %(person)s AND state <> 'active';
    INSERT INTO memberships(organisation_id, person_id, role)
      VALUES(%(organisation)s, %(person)s, 'member') ON CONFLICT DO NOTHING;
    INSERT INTO project_members(team_project, person_id, role)
      VALUES(%(project)s, %(person)s, 'member')
      ON CONFLICT(person_id, team_project) DO UPDATE SET role = 'member';
"""
_NEW_PROJECT = """
    INSERT INTO team_projects(
      organisation_id, name, visibility, created_at, retention_days, quota_bytes, retention_from)
    SELECT id, %s, %s, %s, %s, %s, %s FROM organisations ORDER BY id LIMIT 1
    RETURNING id, organisation_id
"""
_AUDIT = "SELECT append_audit(%s::integer, %s, NULL, '', %s, %s, %s::integer, %s, 'done')"


class _Inside(PostgresStore):
    """A store whose transactions are part of a larger one."""

    def begin(self) -> None:
        self.db.begin()

    def commit(self) -> None:
        """Nothing: the larger one is committed as a whole."""

    def rollback(self) -> None:
        """Nothing: what failed is raised, and the larger one is rolled back."""


class ProjectCopy:
    """A project inside one transaction."""

    def __init__(self, driver: psycopg.Connection[Any], project: CopiedProject) -> None:
        self.driver = driver
        self.project = project

    @contextmanager
    def store(self, person: int) -> Iterator[PostgresStore]:
        """Lend a store with a person's own rows of the project, which may be written."""
        given = {"person": person, "project": self.project.id}
        values = {**given, "organisation": self.project.organisation}
        for statement in _JOIN.strip().rstrip(";").split(";"):
            self.driver.execute(statement.encode(), values)
        db = ScopedConnection(self.driver, StoreScope(person, self.project.id, writing=True))
        db.tell_scope()
        self.driver.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(APP)))
        yield _Inside(db)
        self.driver.execute("RESET ROLE")

    # -- reading -----------------------------------------------------------------------------------

    def people(self) -> list[CopiedPerson]:
        rows = self.driver.execute(_PEOPLE, {"project": self.project.id}).fetchall()
        return [CopiedPerson(*row) for row in rows]

    def tombstones(self) -> list[CopiedTombstone]:
        found = self.driver.execute(
            "SELECT person, kind, name, at FROM tombstones WHERE team_project = %s ORDER BY 4, 3",
            (self.project.id,),
        )
        return [CopiedTombstone(*row) for row in found.fetchall()]

    # -- writing -----------------------------------------------------------------------------------

    def find_person(self, email: str) -> CopiedPerson | None:
        """Return who has an address here, with their role in the team's project."""
        row = self.driver.execute(
            "SELECT id, name, email, state, NULL FROM people WHERE lower(email) = lower(%s)",
            (email,),
        ).fetchone()
        return CopiedPerson(*row) if row else None

    def add_person(self, person: CopiedPerson, now: int) -> int:
        row = self.driver.execute(
            "INSERT INTO people(email, name, created_at) VALUES(%s, %s, %s) RETURNING id",
            (person.email, person.name, now),
        ).fetchone()
        assert row is not None
        return int(row[0])

    def settle(self, person: int, state: str, role: str | None) -> None:
        """Let a person be what they were: in what state, and with what role in the project."""
        self.driver.execute("UPDATE people SET state = %s WHERE id = %s", (state, person))
        values = {"role": role, "project": self.project.id, "person": person}
        if role is None:
            statement = "DELETE FROM project_members"
        else:
            statement = "UPDATE project_members SET role = %(role)s"
        where = " WHERE team_project = %(project)s AND person_id = %(person)s"
        self.driver.execute((statement + where).encode(), values)

    def rename_erased(self, person: int) -> None:
        self.driver.execute(
            """
            UPDATE people SET name = 'former member ' || id,
              email = 'former-member-' || id || '@invalid'
            WHERE id = %s
            """,
            (person,),
        )

    def audit(self, did: str, action: str, now: int) -> None:
        project = self.project
        values = (project.organisation, now, did, action, project.id, project.name)
        self.driver.execute(_AUDIT, values)


@contextmanager
def reading_project(url: str, wanted: str, now: int) -> Iterator[ProjectCopy]:
    """Read a project by its name or number; nothing is changed but the audit log. Raises NotFound,
    or BadInput if this role may not do it."""
    with _connected(url) as driver:
        row = driver.execute(_PROJECT, (wanted, wanted, wanted)).fetchone()
        if row is None:
            raise NotFound(f"no project is called {wanted[:80]}", "See the page Projects.")
        copy = ProjectCopy(driver, CopiedProject(*row))
        copy.audit("looked", "project.export", now)
        driver.commit()
        try:
            yield copy
        finally:
            driver.rollback()


@contextmanager
def writing_project(url: str, project: CopiedProject, now: int) -> Iterator[ProjectCopy]:
    """Make a project of this name, and commit it with all that is written, or nothing. Raises
    BadInput if there is one already, or this role may not do it."""
    with _connected(url) as driver:
        until = None if project.retention_days is None else now + 7 * 86_400_000
        values = (project.name, project.visibility, now, project.retention_days)
        try:
            row = driver.execute(_NEW_PROJECT, (*values, project.quota_bytes, until)).fetchone()
        except psycopg.errors.UniqueViolation:
            raise BadInput(
                f"there is a project called {project.name}", "Choose another: --name NAME"
            ) from None
        if row is None:
            raise BadInput("there is no team here yet", "whyfor server init --name NAME")
        made = msgspec.structs.replace(project, id=row[0], organisation=row[1])
        copy = ProjectCopy(driver, made)
        yield copy
        copy.audit("changed", "project.import", now)
        driver.commit()


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    try:
        driver = psycopg.connect(url, options=f"-c search_path={SCHEMA}")
    except psycopg.Error:
        raise StoreError("the database cannot be reached", "Check WHYFOR_DB_OWNER_URL.") from None
    with driver:
        above = driver.execute(_ABOVE).fetchone()
        if not above or not above[0]:
            raise BadInput(
                "this role cannot reach everybody's rows",
                "Set WHYFOR_DB_OWNER_URL to a superuser, or to a role with BYPASSRLS.",
            )
        yield driver
