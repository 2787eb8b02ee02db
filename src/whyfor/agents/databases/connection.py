"""Read an agent's SQLite database without changing it."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

import apsw

from whyfor.agents.base import MAX_DECODED

BUSY = 500  # milliseconds


def has_columns(path: Path, needed: Mapping[str, set[str]]) -> bool:
    """Return whether a database has these columns, by table; raises OSError if it cannot be
    read."""
    try:
        with Database(path) as db:
            return all(names <= set(db.columns(table)) for table, names in needed.items())
    except apsw.Error as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: apsw.Error | None) -> OSError:
    """Return an OSError: for callers an agent's database is a file like any other."""
    return OSError(
        errno.EIO, f"{type(error).__name__}: {error}" if error else "it keeps changing", str(path)
    )


class Database:
    """A connection that leaves no trace: no lock that a writer waits for, no file beside the
    database."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._undo = ExitStack()
        self._before: tuple[int, int] | None = None
        try:
            self.connection = self._open()
        except BaseException:
            self._undo.close()
            raise

    def _open(self) -> apsw.Connection:
        path, how = self.path, "mode=ro"
        log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
        if log.exists() and not index.exists():
            # Left by a crash. To read it means to make a new index: here, or in a read-only folder
            # not at all.
            folder = self._undo.enter_context(TemporaryDirectory(prefix="whyfor-"))
            for file in (path, log):
                shutil.copyfile(file, Path(folder, file.name))
            path = Path(folder, path.name)
        elif not log.exists() and self._is_logged():
            # Nobody has it open. A plain read-only connection would create both files and leave
            # them behind.
            self._before = self._stamp()
            how = "immutable=1"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(f"{path.absolute().as_uri()}?{how}", flags=flags)
        self._undo.callback(connection.close)
        connection.set_busy_timeout(BUSY)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_DECODED)
        return connection

    def _is_logged(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(20)[18:] == b"\x02\x02"

    def _stamp(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_mtime_ns, found.st_size

    def moved(self) -> bool:
        """Return whether somebody began to write to a database that was opened as unused: what was
        read may be torn."""
        return self._before is not None and (
            Path(f"{self.path}-wal").exists() or self._stamp() != self._before
        )

    def query(self, sql: str, *values: str) -> Iterator[tuple[Any, ...]]:
        return self.connection.execute(sql, values)

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.query(f"PRAGMA table_info({table})")]

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._undo.close()
