"""A connection to PostgreSQL for one person, and what it may reach."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import psycopg
from psycopg import errors, pq
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.numeric import Int8Dumper

from whyfor.model.errors import Busy, StoreError, StoreFault
from whyfor.model.prices import PriceTable
from whyfor.store.postgres.dialect import bind_values, translated
from whyfor.store.postgres.words import TsIndex
from whyfor.store.price_table import list_prices

SCHEMA = "whyfor"
LOCK_MS = 2_000
_ROWS = 128  # of one INSERT
_VALUES = re.compile(r"VALUES\s*\(([?,\s]+)\)")
_IDLE = pq.TransactionStatus.IDLE
_CONTEXT = """
    SELECT set_config('whyfor.person', %s, true), set_config('whyfor.project', %s, true),
           set_config('whyfor.writing', %s, true), set_config('whyfor.only', %s, true)
"""


class StoreScope(msgspec.Struct, frozen=True):
    """Who asks, and of what. Membership is looked up by the database with every transaction."""

    person: int | None  # None is nobody, who may only ask whose a token is
    project: int | None = None  # one project; None is all that the person may read
    writing: bool = False  # only the person's own rows, which may then be written
    only: tuple[int, ...] | None = None  # the projects that a token is good for; None is all
    expiring: bool = False  # writes a person's rows, to delete what a project keeps no longer

    @property
    def mode(self) -> str:
        """Return what the database is told about writing."""
        if self.expiring:
            return "expire"
        return "on" if self.writing else ""


class _Number(Loader):
    """Sums of whole numbers are `numeric` in PostgreSQL."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class ScopedConnection:
    """Runs the facets' statements in transactions that know who asks.

    The first statement begins a transaction, and says who asks for that transaction alone: nothing
    of it is left on a connection that goes back to a pool.
    """

    failure: type[Exception] = psycopg.Error

    def __init__(self, driver: psycopg.Connection[Any], scope: StoreScope) -> None:
        self.driver = driver
        self.scope = scope
        self.in_transaction = False  # of a writer
        self._changes = 0
        self._total = 0
        self._encoding = driver.info.encoding
        driver.adapters.register_loader("numeric", _Number)
        driver.adapters.register_dumper(int, Int8Dumper)  # sums of smaller ones overflow

    @cached_property
    def index(self) -> TsIndex:
        return TsIndex(self)

    @property
    def prices(self) -> PriceTable:
        return list_prices()

    def execute(self, sql: str, values: Any = (), /) -> psycopg.Cursor[Any]:
        statement = translated(sql)
        return self.run(statement.sql, bind_values(statement, values))

    def run(self, sql: str, values: Any = ()) -> psycopg.Cursor[Any]:
        """Run a statement that is written for PostgreSQL."""
        try:
            self._begin()
            cursor = self.driver.execute(sql, values)
        except psycopg.Error as error:
            self._failed()
            raise self.explained(error) from None
        self._counted(cursor.rowcount)
        return cursor

    def executemany(self, sql: str, rows: Iterable[Any], /) -> None:
        given = list(rows)
        if not given:
            return
        values = _VALUES.search(sql)
        if values is not None and "DO UPDATE" not in sql:
            self._insert(sql, values, given)
            return
        statement = translated(sql)
        try:
            self._begin()
            with self.driver.cursor() as cursor:
                cursor.executemany(statement.sql, [bind_values(statement, row) for row in given])
                self._counted(cursor.rowcount)
        except psycopg.Error as error:
            self._failed()
            raise self.explained(error) from None

    def _insert(self, sql: str, values: re.Match[str], rows: list[Any]) -> None:
        """Insert many rows with each statement: who may write is then looked up once for them."""
        at = 0
        for size in _sizes(len(rows)):
            marks = ", ".join([f"({values[1]})"] * size)
            many = sql[: values.start()] + f"VALUES {marks}" + sql[values.end() :]
            chunk = rows[at : at + size]
            self.execute(many, [value for row in chunk for value in row])
            at += size

    def last_insert_rowid(self) -> int:
        [(number,)] = self.run("SELECT lastval()")
        return int(number)

    def changes(self) -> int:
        return self._changes

    def total_changes(self) -> int:
        return self._total

    def _counted(self, number: int) -> None:
        self._changes = max(number, 0)
        if self.in_transaction:
            self._total += self._changes

    # -- transactions ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin to write, unless that has begun. One writer of a person and a project at a time."""
        if self.in_transaction:
            return
        lock = "SELECT pg_advisory_xact_lock(%s::integer, %s::integer)"
        self.run(lock, (self.scope.project, self.scope.person))
        self.in_transaction = True

    def commit(self) -> None:
        self.in_transaction = False
        try:
            self.driver.commit()
        except psycopg.Error as error:
            raise self.explained(error) from None

    def rollback(self) -> None:
        self.in_transaction = False
        if not self.driver.closed:
            self.driver.rollback()

    def close(self) -> None:
        self.rollback()
        self.driver.close()

    def _begin(self) -> None:
        if self.driver.info.transaction_status == _IDLE:
            self.tell_scope()

    def tell_scope(self) -> None:
        """Tell the database who asks, for the transaction that runs or begins with it."""
        project = "" if self.scope.project is None else str(self.scope.project)
        person = "" if self.scope.person is None else str(self.scope.person)
        only = "" if self.scope.only is None else ",".join(map(str, self.scope.only or (0,)))
        self.driver.execute(_CONTEXT, (person, project, self.scope.mode, only))

    def _failed(self) -> None:
        """PostgreSQL refuses everything after an error: a reader begins anew."""
        if not self.in_transaction and not self.driver.closed:
            self.driver.rollback()

    def explained(self, error: Exception) -> Exception:
        if isinstance(error, (errors.LockNotAvailable, errors.DeadlockDetected)):
            return Busy("another process is writing to the database", "Try again in a moment.")
        if isinstance(error, errors.InsufficientPrivilege):
            return StoreError("this project may not be written", "Ask an admin of the project.")
        if isinstance(error, errors.DiskFull):
            return StoreError("the database's disk is full", "Free some space on its server.")
        if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
            return StoreError(f"the database cannot be reached: {_line(error)}", "Check its URL.")
        if isinstance(error, psycopg.Error):
            return StoreFault(f"{type(error).__name__}: {_line(error)}", "See the server's log.")
        return error


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _sizes(count: int) -> Iterator[int]:
    """Cut a number into few different sizes: PostgreSQL plans each statement once."""
    size = _ROWS
    while count:
        while size > count:
            size //= 2
        yield size
        count -= size
