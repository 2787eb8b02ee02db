"""Erasing a person from a team's database, as its owner."""

from __future__ import annotations

import msgspec
import psycopg
from psycopg import sql

from whyfor.model.errors import BadInput, NotFound
from whyfor.store.postgres.connection import SCHEMA

_ABOVE = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
_TABLES = """
    SELECT c.relname::text FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = %s AND NOT a.attisdropped
    WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r' AND NOT c.relname = ANY(%s)
    ORDER BY c.relname <> 'sessions', c.relname
"""
# A project is everybody's who worked in it; the log keeps numbers; tombstones must stay in force.
_KEPT = ["projects", "tombstones"]
_ACCOUNTS_KEPT = ["audit"]
_SOLE_OWNER = """
    SELECT 1 FROM memberships m WHERE m.person_id = %(person)s AND m.role = 'owner' AND NOT EXISTS (
      SELECT 1 FROM memberships o JOIN people p ON p.id = o.person_id AND p.state = 'active'
      WHERE o.organisation_id = m.organisation_id AND o.role = 'owner'
        AND o.person_id <> m.person_id)
"""
_UNUSED = """
    SELECT DISTINCT g.team_project, g.digest FROM segments g
    WHERE g.person = %(person)s AND NOT EXISTS (
      SELECT 1 FROM segments o
      WHERE o.team_project = g.team_project AND o.digest = g.digest AND o.person <> g.person)
"""


class ErasedPerson(msgspec.Struct, frozen=True):
    """What is left of a person: a number; and what went with them."""

    person: int
    sessions: int  # deleted, or kept without the name
    objects: list[tuple[int, str]]  # of the team's projects, that nobody has any more


def erase_person(url: str, email: str, *, keep: bool) -> ErasedPerson:
    """Delete a person's account and name, and their stories unless `keep`, in one transaction.
    Raises NotFound, or BadInput if no owner would be left or this role may not do it."""
    with psycopg.connect(url, options=f"-c search_path={SCHEMA}") as driver:
        above = driver.execute(_ABOVE).fetchone()
        if not above or not above[0]:
            raise BadInput(
                "this role cannot reach everybody's rows",
                "Set WHYFOR_DB_OWNER_URL to a superuser, or to a role with BYPASSRLS.",
            )
        found = driver.execute(
            "SELECT id FROM people WHERE lower(email) = lower(%s) AND state <> 'erased'", (email,)
        ).fetchone()
        if found is None:
            raise NotFound(f"nobody here has the address {email[:80]}", "See the page People.")
        given = {"person": found[0]}
        if driver.execute(_SOLE_OWNER, given).fetchone():
            raise BadInput("no owner would be left", "Make somebody else an owner first.")
        counted = driver.execute(
            "SELECT count(*) FROM sessions WHERE person = %(person)s AND parent IS NULL", given
        ).fetchone()
        objects = [] if keep else driver.execute(_UNUSED, given).fetchall()
        _erase(driver, given, keep=keep)
        return ErasedPerson(found[0], counted[0] if counted else 0, objects)


def _erase(
    driver: psycopg.Connection[tuple[object, ...]], given: dict[str, int], *, keep: bool
) -> None:
    if keep:
        driver.execute(
            """
            UPDATE checkpoints SET author = 'former member ' || %(person)s, email = ''
            WHERE person = %(person)s
            """,
            given,
        )
    else:
        _delete(driver, "person", _KEPT, given)
    _delete(driver, "person_id", _ACCOUNTS_KEPT, given)
    driver.execute(
        """
        UPDATE people SET state = 'erased', name = 'former member ' || id,
          email = 'former-member-' || id || '@invalid'
        WHERE id = %(person)s
        """,
        given,
    )


def _delete(
    driver: psycopg.Connection[tuple[object, ...]],
    column: str,
    kept: list[str],
    given: dict[str, int],
) -> None:
    """Delete the rows of a person from every table that has such a column, but for some."""
    for (table,) in driver.execute(_TABLES, (column, SCHEMA, kept)).fetchall():
        statement = sql.SQL("DELETE FROM {} WHERE {} = %(person)s")
        driver.execute(statement.format(sql.Identifier(str(table)), sql.Identifier(column)), given)
