"""Opening the store: read-only for every command, writable for ingest and rebuild."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from whyfor.config import Settings
from whyfor.model.errors import CorruptStore, NewerStore, NotFound, StoreError
from whyfor.model.sessions import Person
from whyfor.store.blobs import Blobs, FolderBlobs
from whyfor.store.journal import Journal
from whyfor.store.protocol import SharedStore
from whyfor.store.sqlite import schema
from whyfor.store.sqlite.connection import explained, open_damaged
from whyfor.store.sqlite.files import remove_database, set_database_aside
from whyfor.store.sqlite.store import DRIVER, SqliteStore
from whyfor.terminal import debug

__all__ = [
    "DRIVER",
    "FollowedStore",
    "Lender",
    "LocalStore",
    "OpenStore",
    "install_database",
    "journal",
    "local_store",
    "open_reader",
    "open_store",
    "reading",
    "reading_local",
    "remove_database",
    "salvage",
    "set_database_aside",
]


class OpenStore(SharedStore, Protocol):
    """What can be read of a place: the database's facets, together with the segments."""

    @property
    def settings(self) -> Settings: ...

    @property
    def blobs(self) -> Blobs: ...

    def people_of(self, sessions: Iterable[int]) -> dict[int, Person]:
        """Return whose these sessions are; on a laptop nothing: all are its owner's."""

    def authors(self) -> list[Person]:
        """Return who has sessions, by name; on a laptop nobody."""


# Lends what one member may read of one project of a team. Such a place has no directory: nothing of
# it is on this machine's disk.
Lender = Callable[[Settings], AbstractContextManager[OpenStore]]


class LocalStore(SqliteStore):
    """The database of this machine, together with the segments."""

    def __init__(self, settings: Settings, *, readonly: bool = True) -> None:
        super().__init__(settings.database, readonly=readonly)
        self.settings = settings
        self.blobs = FolderBlobs(settings.segments)

    def people_of(self, sessions: Iterable[int]) -> dict[int, Person]:  # noqa: ARG002 - as OpenStore
        return {}

    def authors(self) -> list[Person]:
        return []


class FollowedStore:
    """A read-only store for long-running processes. It reopens when another database takes the
    file's place."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._store: LocalStore | None = None

    def current(self) -> LocalStore:
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
    """Open the store of a place read-only and close it afterwards. Raises NotFound if nothing is
    stored yet."""
    lender: Lender | None = settings.lend
    if lender is not None:
        with lender(settings) as lent:
            yield lent
        return
    with reading_local(settings) as store:
        yield store


@contextmanager
def reading_local(settings: Settings) -> Iterator[LocalStore]:
    """Open this machine's store read-only and close it afterwards. Raises NotFound if nothing is
    stored yet."""
    store = _opened(settings)
    try:
        with explained(settings.database):
            yield store
    finally:
        store.close()


def local_store(store: SharedStore) -> SqliteStore | None:
    """Return the store if it is this machine's; None if a team server lends it."""
    return store if isinstance(store, SqliteStore) else None


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
            with suppress(StoreError):  # the server knows what it has: all is offered again
                fresh.outbox.carry(old.outbox if old else None)
    finally:
        if old is not None:
            old.close()


def _overwrite(database: Path, fresh: SqliteStore) -> None:
    with closing(open_store(database)) as store:
        if not store.is_whole():
            raise CorruptStore("tables are missing")
        store.replace_with(fresh)


def _opened(settings: Settings) -> LocalStore:
    """Open the store read-only. Migrates an older database first; an empty one counts as
    missing."""
    version = 0
    if settings.database.exists():
        store = LocalStore(settings)
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
    return LocalStore(settings)


def journal(settings: Settings) -> Journal:
    return Journal(settings.journal)
