"""The store on PostgreSQL, for one person and what that person may reach.

What each method promises stands in store/protocol.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import psycopg

from whyfor.model.errors import StoreError
from whyfor.store.postgres.connection import LOCK_MS, SCHEMA, ScopedConnection, StoreScope
from whyfor.store.postgres.search import PostgresSearch
from whyfor.store.postgres.uploads import PostgresUploads
from whyfor.store.sql.changes import put_mark
from whyfor.store.sql.checkpoints import SqlCheckpoints
from whyfor.store.sql.conversation import SqlConversation
from whyfor.store.sql.feed import SqlFeed
from whyfor.store.sql.listing import SqlListing
from whyfor.store.sql.memory import SqlMemory
from whyfor.store.sql.projects import SqlProjects
from whyfor.store.sql.records import SqlRecords
from whyfor.store.sql.removal import SqlRemoval
from whyfor.store.sql.sessions import SqlSessions
from whyfor.store.sql.signals import SqlSignals
from whyfor.store.sql.stats import SqlStats
from whyfor.store.sql.tasks import SqlTasks
from whyfor.store.sql.vectors import SqlVectors


class PostgresRemoval(SqlRemoval):
    db: ScopedConnection

    def _used(self, digests: list[str]) -> set[str]:
        """Also if somebody else uses them, whose rows a writer does not see."""
        found = self.db.run("SELECT digest FROM used_digests(%s)", (digests,))
        return {digest for (digest,) in found}


class PostgresStore:
    def __init__(self, db: ScopedConnection) -> None:
        self.db = db

    @cached_property
    def records(self) -> SqlRecords:
        return SqlRecords(self.db)

    @cached_property
    def sessions(self) -> SqlSessions:
        return SqlSessions(self.db)

    @cached_property
    def listing(self) -> SqlListing:
        return SqlListing(self.db)

    @cached_property
    def conversation(self) -> SqlConversation:
        return SqlConversation(self.db)

    @cached_property
    def search(self) -> PostgresSearch:
        return PostgresSearch(self.db)

    @cached_property
    def checkpoints(self) -> SqlCheckpoints:
        return SqlCheckpoints(self.db)

    @cached_property
    def projects(self) -> SqlProjects:
        return SqlProjects(self.db)

    @cached_property
    def memory(self) -> SqlMemory:
        return SqlMemory(self.db)

    @cached_property
    def signals(self) -> SqlSignals:
        return SqlSignals(self.db)

    @cached_property
    def feed(self) -> SqlFeed:
        return SqlFeed(self.db)

    @cached_property
    def stats(self) -> SqlStats:
        return SqlStats(self.db)

    @cached_property
    def vectors(self) -> SqlVectors:
        return SqlVectors(self.db)

    @cached_property
    def tasks(self) -> SqlTasks:
        return SqlTasks(self.db)

    @cached_property
    def uploads(self) -> PostgresUploads:
        return PostgresUploads(self.db)

    @cached_property
    def removal(self) -> PostgresRemoval:
        return PostgresRemoval(self.db)

    def mark(self, name: str) -> int:
        return self.checkpoints.mark(name)

    def set_mark(self, name: str, number: int) -> None:
        put_mark(self.db, name, number)

    @property
    def in_transaction(self) -> bool:
        return self.db.in_transaction

    def total_changes(self) -> int:
        """Return how many rows this connection has changed."""
        return self.db.total_changes()

    def begin(self) -> None:
        self.db.begin()

    def commit(self) -> None:
        """Commit the open transaction."""
        self.db.commit()

    def rollback(self) -> None:
        self.db.rollback()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def close(self) -> None:
        self.db.close()


def open_postgres(url: str, scope: StoreScope) -> PostgresStore:
    """Open the store for one person. Raises StoreError if the server cannot be reached."""
    options = f"-c search_path={SCHEMA} -c lock_timeout={LOCK_MS * 5}"
    try:
        driver = psycopg.connect(url, options=options)
    except psycopg.Error as error:
        raise StoreError(
            f"the database cannot be reached: {str(error).splitlines()[0]}", "Check its URL."
        ) from None
    return PostgresStore(ScopedConnection(driver, scope))
