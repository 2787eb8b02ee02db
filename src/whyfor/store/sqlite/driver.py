"""APSW's connection, which raises SQLite's errors as StoreErrors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import apsw

from whyfor.files import need_descriptors
from whyfor.model.errors import Busy, CorruptStore, StoreError, StoreFault
from whyfor.model.prices import PriceTable
from whyfor.store.price_table import load_prices
from whyfor.store.sqlite.words import FtsIndex

_UNUSABLE = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError)


class StoreConnection(apsw.Connection):
    """A connection that raises SQLite's errors as StoreErrors, each with a hint."""

    failure: type[Exception] = apsw.Error
    path = Path()  # APSW's own name for it cannot be read if it is not UTF-8

    @cached_property
    def index(self) -> FtsIndex:
        return FtsIndex(self)

    @property
    def prices(self) -> PriceTable:
        return load_prices(self.path.parent)

    def explained(self, error: Exception) -> Exception:
        return translate(error, self.path) if isinstance(error, apsw.Error) else error

    def execute(self, *given: Any, **options: Any) -> apsw.Cursor:
        try:
            return super().execute(*given, **options)
        except apsw.Error as error:
            raise translate(error, self.path) from None

    def executemany(self, *given: Any, **options: Any) -> apsw.Cursor:
        try:
            return super().executemany(*given, **options)
        except apsw.Error as error:
            raise translate(error, self.path) from None


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
