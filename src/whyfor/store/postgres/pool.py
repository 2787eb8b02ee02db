"""Connections to PostgreSQL that requests share, one at a time each.

Who asks is said to the database for one transaction alone, never for a connection: what goes back
to the pool has been rolled back, and belongs to nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from whyfor.model.errors import Busy, StoreError
from whyfor.store.postgres.connection import LOCK_MS, SCHEMA, ScopedConnection, StoreScope
from whyfor.store.postgres.store import PostgresStore

_OPTIONS = f"-c search_path={SCHEMA} -c lock_timeout={LOCK_MS * 5}"
C = TypeVar("C", bound=ScopedConnection)
_WAIT = 10.0  # seconds for a connection


class PostgresPool:
    """A pool of connections as the server's own role."""

    def __init__(self, url: str, size: int = 16) -> None:
        self._pool: ConnectionPool[psycopg.Connection[Any]] = ConnectionPool(
            url,
            kwargs={"options": _OPTIONS},
            min_size=1,
            max_size=size,
            timeout=_WAIT,
            open=False,
            check=ConnectionPool.check_connection,
            name="whyfor",
        )

    def open(self) -> None:
        """Connect. Raises StoreError if the database cannot be reached."""
        self._pool.open()
        try:
            self._pool.wait(_WAIT)
        except PoolTimeout:
            self._pool.close()
            raise StoreError(
                "the database cannot be reached", "Check WHYFOR_DB_URL, and that it runs."
            ) from None

    def close(self) -> None:
        self._pool.close()

    def stats(self) -> dict[str, int]:
        """Return how many connections there are, wait and were waited for."""
        return dict(self._pool.get_stats())

    @contextmanager
    def scoped(self, scope: StoreScope, kind: type[C]) -> Iterator[C]:
        """Lend a connection to one person. What was not committed is rolled back."""
        try:
            driver = self._pool.getconn()
        except PoolTimeout:
            raise Busy("all connections to the database are in use", "Try again.") from None
        except psycopg.Error:
            raise StoreError("the database cannot be reached", "Check WHYFOR_DB_URL.") from None
        try:
            db = kind(driver, scope)
            try:
                yield db
            finally:
                db.rollback()
        finally:
            self._pool.putconn(driver)

    @contextmanager
    def store(self, scope: StoreScope) -> Iterator[PostgresStore]:
        """Lend a store to one person. Facets read and write as on a connection of their own."""
        with self.scoped(scope, ScopedConnection) as db:
            yield PostgresStore(db)
