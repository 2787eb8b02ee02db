"""Opening the database: SQLite in WAL mode through APSW, shared by many processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from whyfor.locks import file_name, uri_flag
from whyfor.model.errors import WhyforError
from whyfor.store.sql.database import fetch as fetch
from whyfor.store.sql.database import first_row as first_row
from whyfor.store.sql.database import stepped as stepped
from whyfor.store.sql.database import value as value
from whyfor.store.sqlite import schema
from whyfor.store.sqlite.driver import StoreConnection as StoreConnection
from whyfor.store.sqlite.driver import explained as explained
from whyfor.store.sqlite.driver import translate as translate

BUSY_MS = 10_000
_STATEMENTS = 400  # that are kept prepared: an ingest runs some 200 for each file


def connect(path: Path, *, readonly: bool = False) -> StoreConnection:
    """Open the database; create or migrate it if needed."""
    with explained(path):
        if readonly:
            flags = apsw.SQLITE_OPEN_READONLY
        else:
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        db = StoreConnection(
            file_name(path), flags=flags | uri_flag(path), statementcachesize=_STATEMENTS
        )
        db.path = path
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
        flags = apsw.SQLITE_OPEN_READONLY | uri_flag(path)
        db = StoreConnection(file_name(path), flags=flags)
        db.path = path
        return db


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
