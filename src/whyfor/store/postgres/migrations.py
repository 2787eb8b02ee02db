"""Bringing a database to this version of the schema, by one process at a time."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg import errors, sql

from whyfor.model.errors import Busy, NewerStore
from whyfor.store.postgres.connection import LOCK_MS, SCHEMA
from whyfor.store.postgres.schema import MIGRATIONS, VERSION

_LOCK = 7_718_905_311  # of everybody who migrates
_TRIES = 5


def migrate_postgres(url: str) -> int:
    """Migrate the database to this version; return the version it had.

    A second process waits for the first. A statement that has to wait for somebody's transaction
    gives up after two seconds and is tried again, so that nobody queues behind it. Raises Busy if
    that goes on, NewerStore if the database is of a newer version.
    """
    for attempt in range(_TRIES):
        try:
            with psycopg.connect(url) as driver:
                return _migrate(driver)
        except errors.LockNotAvailable:
            time.sleep(0.2 * 2**attempt)
    raise Busy(
        "the database is in use, so it could not be migrated", "Stop long transactions, try again."
    )


def _migrate(driver: psycopg.Connection[Any]) -> int:
    driver.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    driver.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(LOCK_MS)))
    driver.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
    driver.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(SCHEMA)))
    driver.execute("CREATE TABLE IF NOT EXISTS schema_version(number integer NOT NULL)")
    before = applied_version(driver)
    if before > VERSION:
        raise NewerStore(
            f"the database is of version {before}, this program knows {VERSION}",
            "Upgrade Whyfor: pip install --upgrade 'whyfor[server]'",
        )
    for number in range(before, VERSION):
        driver.execute(MIGRATIONS[number]().encode())
    if before < VERSION:
        driver.execute("DELETE FROM schema_version")
        driver.execute("INSERT INTO schema_version VALUES(%s)", (VERSION,))
        driver.execute("GRANT SELECT ON schema_version TO whyfor_app")
    return before


def applied_version(driver: psycopg.Connection[Any]) -> int:
    """Return the version of the schema in the search path; 0 if it is empty."""
    row = driver.execute("SELECT max(number) FROM schema_version").fetchone()
    return row[0] or 0 if row else 0
