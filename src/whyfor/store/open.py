"""Opening the store: read-only for every command, writable for ingest and rebuild."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from whyfor.config import Settings
from whyfor.model.errors import CorruptStore, NewerStore, NotFound, StoreError
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import Journal
from whyfor.store.sqlite import schema
from whyfor.store.sqlite.connection import explained, open_damaged
from whyfor.store.sqlite.files import remove_database, set_database_aside
from whyfor.store.sqlite.store import DRIVER, SqliteStore
from whyfor.terminal import debug

__all__ = [
    "DRIVER",
    "FollowedStore",
    "OpenStore",
    "install_database",
    "journal",
    "open_reader",
    "open_store",
    "reading",
    "remove_database",
    "salvage",
    "set_database_aside",
]


class OpenStore(SqliteStore):
    """The database's facets together with the segments."""

    def __init__(self, settings: Settings, *, readonly: bool = True) -> None:
        super().__init__(settings.database, readonly=readonly)
        self.settings = settings
        self.blobs = FolderBlobs(settings.segments)


class FollowedStore:
    """A read-only store for long-running processes. It reopens when another database takes the
    file's place."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._store: OpenStore | None = None

    def current(self) -> OpenStore:
        """Return the open store; a new object if the database was replaced. Raises NotFound if
        there is no database."""
        if self._store is not None and not self._store.in_place():
            self.close()
        if self._store is None:
            self._store = _opened(self.settings)
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None


@contextmanager
def reading(settings: Settings) -> Iterator[OpenStore]:
    """Open the store read-only and close it afterwards. Raises NotFound if nothing is stored
    yet."""
    store = _opened(settings)
    try:
        with explained(settings.database):
            yield store
    finally:
        store.close()


def open_store(path: Path) -> SqliteStore:
    """Open a store for writing; create or migrate it if needed. The caller holds the ingest lock
    and closes it."""
    return SqliteStore(path)


def open_reader(path: Path) -> SqliteStore:
    """Open a store for reading, whatever its version; the caller closes it."""
    return SqliteStore(path, readonly=True)


def salvage(path: Path) -> SqliteStore:
    """Open a damaged store, to read what can still be read."""
    return SqliteStore(path, open_damaged(path))


def install_database(fresh: SqliteStore, database: Path, stamp: str, *, damaged: bool) -> None:
    """Replace a database by a rebuilt one; readers that have it open continue with the new one.

    A damaged one, or one of a newer version, is renamed with this stamp and kept.
    """
    _carry_changes(fresh, database, damaged=damaged)
    if damaged:
        set_database_aside(database, stamp)
    try:
        _overwrite(database, fresh)
    except (CorruptStore, NewerStore):
        set_database_aside(database, stamp)
        _overwrite(database, fresh)


def _carry_changes(fresh: SqliteStore, database: Path, *, damaged: bool) -> None:
    """Continue the old database's log of changes in the new one, if the old one can be read."""
    old = None
    if database.exists() and not damaged:
        with suppress(CorruptStore):
            old = open_store(database)
    try:
        with fresh.transaction():
            try:
                fresh.feed.carry(old.feed if old else None)
            except StoreError:
                fresh.feed.carry(None)
    finally:
        if old is not None:
            old.close()


def _overwrite(database: Path, fresh: SqliteStore) -> None:
    with closing(open_store(database)) as store:
        if not store.is_whole():
            raise CorruptStore("tables are missing")
        store.replace_with(fresh)


def _opened(settings: Settings) -> OpenStore:
    """Open the store read-only. Migrates an older database first; an empty one counts as
    missing."""
    version = 0
    if settings.database.exists():
        store = OpenStore(settings)
        version = schema.schema_version(store.db)
        debug(f"database {settings.database}, version {version}")
        if version == schema.VERSION:
            return store
        store.close()
    if version == 0:
        if settings.journal.exists():
            raise NotFound(
                "the database is gone, its segments are not", "Bring it back: whyfor rebuild"
            )
        raise NotFound(
            "nothing is kept yet",
            "Read what your agents wrote: whyfor ingest (or look at: whyfor demo)",
        )
    open_store(settings.database).close()
    return OpenStore(settings)


def journal(settings: Settings) -> Journal:
    return Journal(settings.journal)
