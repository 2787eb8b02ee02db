"""Backups of a team's database with PostgreSQL's own programs, pg_dump and pg_restore."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from whyfor.model.errors import BadInput, StoreError
from whyfor.store.postgres.connection import SCHEMA
from whyfor.store.postgres.schema import APP, FINDER

_VARIABLES = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
}


def dump_database(url: str, path: Path) -> None:
    """Write all that Whyfor has in a database to a file, as of one moment. Raises StoreError."""
    _run("pg_dump", url, "--format=custom", f"--schema={SCHEMA}", f"--file={path}")


def restore_database(url: str, path: Path) -> None:
    """Fill an empty database from such a file, all or nothing. Raises BadInput if it is not
    empty."""
    with psycopg.connect(url, autocommit=True) as driver:
        found = driver.execute("SELECT to_regnamespace(%s)", (SCHEMA,)).fetchone()
        if found and found[0] is not None:
            raise BadInput(
                "this database is not empty", "Make a new one, and point WHYFOR_DB_OWNER_URL there."
            )
        for role in (APP, FINDER):  # a dump names roles, and does not make them
            if not driver.execute("SELECT 1 FROM pg_roles WHERE rolname=%s", (role,)).fetchone():
                driver.execute(f"CREATE ROLE {role} NOLOGIN NOBYPASSRLS".encode())
            driver.execute(f"GRANT {role} TO CURRENT_USER".encode())
    name = str(conninfo_to_dict(url).get("dbname") or "")
    _run(
        "pg_restore", url, "--exit-on-error", "--single-transaction", f"--dbname={name}", str(path)
    )


def _run(program: str, url: str, *arguments: str) -> None:
    """Run a program of PostgreSQL; the address and its password go by the environment, which other
    people's `ps` does not show."""
    given = conninfo_to_dict(url)
    named = {_VARIABLES[name]: str(value) for name, value in given.items() if name in _VARIABLES}
    try:
        ran = subprocess.run(
            [program, "--no-password", *arguments],
            env={**os.environ, **named},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise StoreError(
            f"{program} is not installed here",
            "Install PostgreSQL's client programs, of the server's version or newer.",
        ) from None
    if ran.returncode:
        lines = ran.stderr.strip().splitlines() or ["it says nothing"]
        raise StoreError(f"{program} failed: {lines[0][:300]}", "See: docs/server-backup.md")
