"""Opening the database: SQLite in WAL mode through APSW, shared by many processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from whyfor.files import need_descriptors
from whyfor.locks import open_file
from whyfor.model.errors import Busy, CorruptStore, StoreError, WhyforError
from whyfor.store.sqlite import schema

BUSY_MS = 10_000


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """SQLite's errors as ours, with the next command."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise CorruptStore(
            f"the database is damaged: {error}",
            "Your segments are safe. Rebuild it: whyfor rebuild",
        ) from None
    except apsw.BusyError:
        raise Busy(
            "another process is writing to the database", "Wait a moment and try again."
        ) from None
    except apsw.FullError:
        raise StoreError(
            "the disk is full; nothing was lost", "Free some space, then: whyfor ingest"
        ) from None
    except apsw.CantOpenError as error:
        need_descriptors(1)  # if there are none left, that is why
        raise StoreError(
            f"cannot use {path}: {error}", "Check its permissions, or set WHYFOR_HOME."
        ) from None
    except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError) as error:
        raise StoreError(
            f"cannot use {path}: {error}", "Check its permissions, or set WHYFOR_HOME."
        ) from None


def connect(path: Path, *, readonly: bool = False) -> apsw.Connection:
    """A connection to the database, created and migrated as needed."""
    with explained(path):
        if readonly:
            flags = apsw.SQLITE_OPEN_READONLY
        else:
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        db = open_file(path, flags)
        try:
            db.set_busy_timeout(BUSY_MS)
            _prepare(db, readonly)
        except (apsw.Error, WhyforError):
            db.close(True)
            raise
        return db


def _prepare(db: apsw.Connection, readonly: bool) -> None:
    version = schema.current(db)
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


def _use_wal(db: apsw.Connection) -> None:
    """Several processes may want it of a fresh database at once, and for this SQLite does not
    wait by itself."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            db.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def fetch(db: apsw.Connection, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
    return list(db.execute(sql, values))


def first(db: apsw.Connection, sql: str, values: Any = ()) -> tuple[Any, ...] | None:
    return db.execute(sql, values).fetchone()


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
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
