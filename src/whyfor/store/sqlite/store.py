"""The store on SQLite: one connection, one facet for each thing that is asked of it.

What each method promises stands in store/protocol.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from whyfor.model.errors import WhyforError
from whyfor.store.journal import Journal, JournalMark
from whyfor.store.sql.checkpoints import SqlCheckpoints
from whyfor.store.sql.sessions import SqlSessions
from whyfor.store.sqlite import commit
from whyfor.store.sqlite.connection import StoreConnection, connect, explained, fetch
from whyfor.store.sqlite.schema import missing_tables

if TYPE_CHECKING:
    from whyfor.store.sql.conversation import SqlConversation
    from whyfor.store.sql.feed import SqlFeed
    from whyfor.store.sql.listing import SqlListing
    from whyfor.store.sql.memory import SqlMemory
    from whyfor.store.sql.projects import SqlProjects
    from whyfor.store.sql.signals import SqlSignals
    from whyfor.store.sql.stats import SqlStats
    from whyfor.store.sql.tasks import SqlTasks
    from whyfor.store.sql.vectors import SqlVectors
    from whyfor.store.sqlite.approvals import SqliteApprovals
    from whyfor.store.sqlite.capture import SqliteCapture
    from whyfor.store.sqlite.forget import SqliteForget
    from whyfor.store.sqlite.lines import SqliteLines
    from whyfor.store.sqlite.links import SqliteLinks
    from whyfor.store.sqlite.outbox import SqliteOutbox
    from whyfor.store.sqlite.search import SqliteSearch
    from whyfor.store.sqlite.telemetry import SqliteTelemetry

# Each table, with its indexes. A check of the whole database also reads the search index as such,
# which takes three times as long as all the rest.
_TABLES = """
    SELECT q.quick_check FROM sqlite_schema t, pragma_quick_check(t.name) q
    WHERE t.type='table' AND t.rootpage
"""
DRIVER = apsw.sqlite_lib_version()  # whose version doctor shows


class SqliteStore:
    def __init__(
        self, path: Path, db: StoreConnection | None = None, *, readonly: bool = False
    ) -> None:
        self.path = path
        inode = _inode(path)
        self.db = connect(path, readonly=readonly) if db is None else db
        self._inode = inode or _inode(path)
        self.sessions = SqlSessions(self.db)
        self.checkpoints = SqlCheckpoints(self.db)

    # Facets that a command does not need are not imported either: most commands need three.

    @cached_property
    def capture(self) -> SqliteCapture:
        from whyfor.store.sqlite.capture import SqliteCapture

        return SqliteCapture(self.db)

    @property
    def records(self) -> SqliteCapture:
        return self.capture

    @cached_property
    def listing(self) -> SqlListing:
        from whyfor.store.sql.listing import SqlListing

        return SqlListing(self.db)

    @cached_property
    def conversation(self) -> SqlConversation:
        from whyfor.store.sql.conversation import SqlConversation

        return SqlConversation(self.db)

    @cached_property
    def search(self) -> SqliteSearch:
        from whyfor.store.sqlite.search import SqliteSearch

        return SqliteSearch(self.db)

    @cached_property
    def links(self) -> SqliteLinks:
        from whyfor.store.sqlite.links import SqliteLinks

        return SqliteLinks(self.db)

    @cached_property
    def lines(self) -> SqliteLines:
        from whyfor.store.sqlite.lines import SqliteLines

        return SqliteLines(self.db)

    @cached_property
    def outbox(self) -> SqliteOutbox:
        from whyfor.store.sqlite.outbox import SqliteOutbox

        return SqliteOutbox(self.db)

    @cached_property
    def telemetry(self) -> SqliteTelemetry:
        from whyfor.store.sqlite.telemetry import SqliteTelemetry

        return SqliteTelemetry(self.db)

    @cached_property
    def approvals(self) -> SqliteApprovals:
        from whyfor.store.sqlite.approvals import SqliteApprovals

        return SqliteApprovals(self.db)

    @cached_property
    def signals(self) -> SqlSignals:
        from whyfor.store.sql.signals import SqlSignals

        return SqlSignals(self.db)

    @cached_property
    def projects(self) -> SqlProjects:
        from whyfor.store.sql.projects import SqlProjects

        return SqlProjects(self.db)

    @cached_property
    def memory(self) -> SqlMemory:
        from whyfor.store.sql.memory import SqlMemory

        return SqlMemory(self.db)

    @cached_property
    def vectors(self) -> SqlVectors:
        from whyfor.store.sql.vectors import SqlVectors

        return SqlVectors(self.db)

    @cached_property
    def tasks(self) -> SqlTasks:
        from whyfor.store.sql.tasks import SqlTasks

        return SqlTasks(self.db)

    @cached_property
    def feed(self) -> SqlFeed:
        from whyfor.store.sql.feed import SqlFeed

        return SqlFeed(self.db)

    @cached_property
    def stats(self) -> SqlStats:
        from whyfor.store.sql.stats import SqlStats

        return SqlStats(self.db)

    @cached_property
    def forget(self) -> SqliteForget:
        from whyfor.store.sqlite.forget import SqliteForget

        return SqliteForget(self.db)

    @property
    def removal(self) -> SqliteForget:
        return self.forget

    def close(self) -> None:
        self.db.close(True)

    def version(self) -> int:
        return int(fetch(self.db, "PRAGMA data_version")[0][0])

    def in_place(self) -> bool:
        return self._inode == _inode(self.path)

    def check(self, *, quick: bool = False) -> list[str]:
        found = [row[0] for row in fetch(self.db, _TABLES if quick else "PRAGMA quick_check(20)")]
        return [] if set(found) == {"ok"} else found

    def is_whole(self) -> bool:
        try:
            self.journal_end()
            return not missing_tables(self.db)
        except WhyforError:
            return False

    def replace_with(self, other: SqliteStore) -> None:
        """Overwrite this database with another, in one transaction: readers never see half of
        it."""
        with explained(self.path), self.db.backup("main", other.db, "main") as copy:
            while not copy.done:
                copy.step(5000)

    # -- marks -----------------------------------------------------------------------------------

    def mark(self, name: str) -> int:
        return self.checkpoints.mark(name)

    def set_mark(self, name: str, number: int) -> None:
        self.checkpoints.set_mark(name, number)

    def journal_end(self) -> JournalMark | None:
        return commit.load_mark(self.db)

    def save_journal_end(self, mark: JournalMark) -> None:
        commit.save_mark(self.db, mark)

    # -- transactions ----------------------------------------------------------------------------

    @property
    def in_transaction(self) -> bool:
        return self.db.in_transaction

    def total_changes(self) -> int:
        return self.db.total_changes()

    def begin(self) -> None:
        if not self.db.in_transaction:
            self.db.execute("BEGIN IMMEDIATE")

    def commit(self, journal: Journal | None = None) -> None:
        if journal is None:
            self.db.execute("COMMIT")
        else:
            commit.commit_with_journal(self.db, journal)

    def rollback(self) -> None:
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")

    @contextmanager
    def transaction(self, journal: Journal | None = None) -> Iterator[None]:
        self.begin()
        try:
            yield
            self.commit(journal)
        except BaseException:
            if journal is not None:
                journal.forget_pending()
            self.rollback()
            raise


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
