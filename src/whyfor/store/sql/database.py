"""What the facets ask of a database's connection, whichever database it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from whyfor.model.prices import PriceTable
from whyfor.model.query import Query


class ResultRows(Protocol):
    """The rows of a statement, read as they are asked for."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class WordIndex(Protocol):
    """The tables of words: `words`, `passages` and `cards`, each with a number and some columns of
    text. Which columns there are stands in sql/search_index.py."""

    def add(self, table: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows: a number, then the text of each of these columns."""

    def remove(self, table: str, numbers: Iterable[int]) -> None:
        """Remove rows by number; unknown numbers are left out."""

    def numbers(self, table: str, first: int, last: int) -> list[int]:
        """Return the numbers of the rows between two, both included."""

    def clear(self) -> None:
        """Remove all rows of `words` and `passages`."""

    def matching(self) -> str:
        """Return a query for the column `id` of the rows of `words` that match a parameter."""

    def expression(self, query: Query, fields: tuple[str, ...]) -> str:
        """Return that parameter for a query in these fields; no field is all of them."""


class StoreDatabase(Protocol):
    """A connection that raises what goes wrong as StoreErrors."""

    @property
    def index(self) -> WordIndex: ...

    @property
    def prices(self) -> PriceTable:
        """The list prices that hold for this database."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, values: Any = (), /) -> ResultRows:
        """Run a statement; its parameters are `?`, or `?1`, `?2` and so on."""

    def executemany(self, sql: str, rows: Iterable[Any], /) -> Any:
        """Run a statement once for each of the rows."""

    def last_insert_rowid(self) -> int:
        """Return the number that the last inserted row was given."""

    def changes(self) -> int:
        """Return how many rows the last statement changed."""

    @property
    def failure(self) -> type[Exception]:
        """What the driver raises."""

    def explained(self, error: Exception) -> Exception:
        """Return the StoreError for an error of the driver."""


def fetch(db: StoreDatabase, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
    """Return all rows; raises StoreError."""
    try:
        return list(db.execute(sql, values))
    except db.failure as error:
        raise db.explained(error) from None


def first_row(db: StoreDatabase, sql: str, values: Any = ()) -> tuple[Any, ...] | None:
    """Return the first row, None if there is none; raises StoreError."""
    try:
        row: tuple[Any, ...] | None = db.execute(sql, values).fetchone()
    except db.failure as error:
        raise db.explained(error) from None
    return row


def stepped(db: StoreDatabase, sql: str, values: Any = ()) -> Iterator[tuple[Any, ...]]:
    """Yield rows as the database finds them; raises StoreError."""
    try:
        yield from db.execute(sql, values)
    except db.failure as error:
        raise db.explained(error) from None


def value(db: StoreDatabase, sql: str, values: Any = ()) -> Any:
    """Return the first column of the first row; None if there is no row."""
    row = first_row(db, sql, values)
    return row[0] if row else None
