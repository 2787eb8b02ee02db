"""Opening the database: SQLite in WAL mode through APSW, shared by many processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import apsw

from whyfor.files import need_descriptors
from whyfor.locks import file_name, uri_flag
from whyfor.model.errors import Busy, CorruptStore, StoreError, StoreFault, WhyforError
from whyfor.store.sql.database import fetch as fetch
from whyfor.store.sql.database import first_row as first_row
from whyfor.store.sql.database import stepped as stepped
from whyfor.store.sql.database import value as value
from whyfor.store.sqlite import schema
from whyfor.store.sqlite.words import FtsIndex

BUSY_MS = 10_000
_UNUSABLE = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError)


class StoreConnection(apsw.Connection):
    """A connection that raises SQLite's errors as StoreErrors, each with a hint."""

    failure: type[Exception] = apsw.Error

    @cached_property
    def index(self) -> FtsIndex:
        return FtsIndex(self)

    def explained(self, error: Exception) -> Exception:
        return translate(error, self.filename) if isinstance(error, apsw.Error) else error

    def execute(self, *given: Any, **options: Any) -> apsw.Cursor:
        try:
            return super().execute(*given, **options)
        except apsw.Error as error:
            raise translate(error, self.filename) from None

    def executemany(self, *given: Any, **options: Any) -> apsw.Cursor:
        try:
            return super().executemany(*given, **options)
        except apsw.Error as error:
            raise translate(error, self.filename) from None


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as StoreErrors, each with a hint."""
    try:
        yield
    except apsw.Error as error:
        raise translate(error, path) from None


def translate(error: apsw.Error, path: Path | str) -> StoreError | Busy:
    """Return the StoreError for an error of the driver; StoreFault for an unexpected one."""
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return CorruptStore(
            f"the database is damaged: {error}",
            "Your segments are safe. Rebuild it: whyfor rebuild",
        )
    if isinstance(error, apsw.BusyError):
        return Busy("another process is writing to the database", "Wait a moment and try again.")
    if isinstance(error, apsw.FullError):
        return StoreError(
            "the disk is full; nothing was lost", "Free some space, then: whyfor ingest"
        )
    if isinstance(error, apsw.CantOpenError):
        need_descriptors(1)  # if there are none left, that is why
    if isinstance(error, _UNUSABLE):
        return StoreError(
            f"cannot use {path}: {error}", "Check its permissions, or set WHYFOR_HOME."
        )
    return StoreFault(f"{type(error).__name__}: {error}", "See: whyfor doctor")


def connect(path: Path, *, readonly: bool = False) -> StoreConnection:
    """Open the database; create or migrate it if needed."""
    with explained(path):
        if readonly:
            flags = apsw.SQLITE_OPEN_READONLY
        else:
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        db = StoreConnection(file_name(path), flags=flags | uri_flag(path))
        try:
            db.set_busy_timeout(BUSY_MS)
            _prepare(db, readonly)
        except (apsw.Error, WhyforError):
            db.close(True)
            raise
        return db


def _prepare(db: StoreConnection, readonly: bool) -> None:
    version = schema.schema_version(db)
    if readonly:
        db.pragma("query_only", True)
        if version > schema.VERSION:
            schema.migrate(db)  # raises: too new
        return
    _use_wal(db)
    db.pragma("synchronous", "full")
    db.pragma("cache_size", -32_768)
    # pages: one changed by many batches is copied back once
    db.pragma("wal_autocheckpoint", 32_000)
    with transaction(db) if version != schema.VERSION else _nothing():
        schema.migrate(db)


def _use_wal(db: StoreConnection) -> None:
    """Switch to WAL mode. Several processes may do this on a new database at once, and SQLite does
    not wait here by itself."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            db.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def open_damaged(path: Path) -> StoreConnection:
    """Open a database that may be damaged, read-only."""
    with explained(path):
        return StoreConnection(file_name(path), flags=apsw.SQLITE_OPEN_READONLY | uri_flag(path))


@contextmanager
def transaction(db: StoreConnection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def _nothing() -> Iterator[None]:
    yield
