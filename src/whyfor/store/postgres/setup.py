"""What is done to a team's database as its owner, and what is checked as the server's own role."""

from __future__ import annotations

from typing import Any

import msgspec
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from whyfor.model.errors import BadInput, NewerStore, StoreError
from whyfor.store.postgres.connection import SCHEMA
from whyfor.store.postgres.migrations import applied_version, migrate_postgres
from whyfor.store.postgres.schema import APP, VERSION

_UNFORCED = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'whyfor'::regnamespace AND relkind IN ('r', 'p')
      AND NOT (relrowsecurity AND relforcerowsecurity) AND relname <> 'schema_version'
"""
_UNPINNED = """
    SELECT proname FROM pg_proc
    WHERE pronamespace = 'whyfor'::regnamespace AND prosecdef
      AND (proconfig IS NULL OR NOT 'search_path=whyfor, pg_temp' = ANY(proconfig)
        OR has_function_privilege('public', oid, 'EXECUTE'))
"""
_RIGHTS = """
    SELECT rolsuper OR rolbypassrls OR rolcreaterole,
      pg_has_role(current_user, nspowner, 'MEMBER'), pg_has_role(current_user, %s, 'MEMBER')
    FROM pg_roles, pg_namespace WHERE rolname = current_user AND nspname = 'whyfor'
"""


class DatabaseState(msgspec.Struct, frozen=True):
    """What was found out about a database, as the server's own role."""

    version: int
    above_policies: bool  # the role could read everything
    is_app: bool  # the role may what the server does
    unforced: tuple[str, ...]  # tables that policies do not guard
    unpinned: tuple[str, ...]  # functions that could be made to do something else
    now: int  # of its clock, in milliseconds


def _connect(url: str) -> psycopg.Connection[Any]:
    try:
        return psycopg.connect(url, options=f"-c search_path={SCHEMA}", connect_timeout=10)
    except psycopg.Error as error:
        line = str(error).partition("\n")[0]
        raise StoreError(f"the database cannot be reached: {line}", "Check its URL.") from None


def migrate_team(owner_url: str, app_url: str) -> tuple[int, int]:
    """Migrate the database, and let the server's role in; return its version before and now."""
    try:
        before = migrate_postgres(owner_url)
    except psycopg.OperationalError as error:
        line = str(error).partition("\n")[0]
        raise StoreError(
            f"the database cannot be reached: {line}", "Check WHYFOR_DB_OWNER_URL."
        ) from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"this role may not migrate: {str(error).partition(chr(10))[0]}",
            "Set WHYFOR_DB_OWNER_URL to one that may create roles and a schema.",
        ) from None
    _let_in(owner_url, app_url)
    return before, VERSION


def _let_in(owner_url: str, app_url: str) -> None:
    """Make the role that the server connects as, if it is not there, and give it its rights."""
    asked = conninfo_to_dict(app_url)
    user = str(asked.get("user") or "")
    if not user or user == conninfo_to_dict(owner_url).get("user"):
        return
    with _connect(owner_url) as driver:
        known = driver.execute("SELECT 1 FROM pg_roles WHERE rolname=%s", (user,)).fetchone()
        if known is None:
            made = sql.SQL("CREATE ROLE {} LOGIN NOBYPASSRLS").format(sql.Identifier(user))
            if asked.get("password"):
                made += sql.SQL(" PASSWORD {}").format(sql.Literal(asked["password"]))
            driver.execute(made)
        grant = sql.SQL("GRANT {} TO {}").format(sql.Identifier(APP), sql.Identifier(user))
        driver.execute(grant)


def add_owner_invite(owner_url: str, name: str, digest: bytes, now: int, until: int) -> str:
    """Make the organisation, if there is none, and an invitation for an owner; return its name."""
    with _connect(owner_url) as driver:
        row = driver.execute("SELECT id, name FROM organisations ORDER BY id LIMIT 1").fetchone()
        if row is None:
            if not name:
                raise BadInput("the team has no name yet", "whyfor server init --name NAME")
            row = driver.execute(
                "INSERT INTO organisations(name, created_at) VALUES(%s, %s) RETURNING id, name",
                (name, now),
            ).fetchone()
        assert row is not None
        driver.execute(
            """
            INSERT INTO invites(hash, organisation_id, role, created_at, expires_at)
            VALUES(%s, %s, 'owner', %s, %s)
            """,
            (digest, row[0], now, until),
        )
        return str(row[1])


def read_state(app_url: str) -> DatabaseState:
    """Return what a server must know about its database. Raises StoreError."""
    with _connect(app_url) as driver:
        try:
            version = applied_version(driver)
        except psycopg.Error:
            raise StoreError(
                "the database is empty, or not for this role", "Run: whyfor server migrate"
            ) from None
        row = driver.execute(_RIGHTS, (APP,)).fetchone() or (True, True, False)
        unforced = driver.execute(_UNFORCED).fetchall()
        unpinned = driver.execute(_UNPINNED).fetchall()
        clock = driver.execute("SELECT (extract(epoch FROM clock_timestamp())*1000)::bigint")
        [(now,)] = clock.fetchall()
    return DatabaseState(
        version,
        bool(row[0] or row[1]),
        bool(row[2]),
        tuple(name for (name,) in unforced),
        tuple(name for (name,) in unpinned),
        now,
    )


def check_version(version: int) -> None:
    """Raise unless this program runs on a schema: its own version, or the next one."""
    if version < VERSION:
        raise StoreError(
            f"the database is of version {version}, this program needs {VERSION}",
            "Run: whyfor server migrate",
        )
    if version > VERSION + 1:
        raise NewerStore(
            f"the database is of version {version}, this program knows {VERSION}",
            "Upgrade Whyfor: pip install --upgrade 'whyfor[server]'",
        )
