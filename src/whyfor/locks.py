"""The ingest lock, which the system releases when its holder dies, on every platform that SQLite
supports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from whyfor.model.errors import Busy, StoreError
from whyfor.model.paths import to_text

_HINT = "Check its permissions, or set WHYFOR_HOME."


class HeldLock:
    """A lock that is dropped when it is closed, or when its process dies."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        self._connection.close(True)


def hold_lock(path: Path, wait_seconds: float = 0.0, hint: str = _HINT) -> HeldLock:
    """Take the lock of a file. Raises Busy if another process holds it for longer than
    `wait_seconds`, StoreError if the file cannot be used."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        db = open_file(path)
    except (OSError, apsw.Error) as error:
        raise StoreError(f"cannot write to {path.parent}: {error}", hint) from None
    try:
        db.set_busy_timeout(int(wait_seconds * 1000))
        db.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        db.close(True)
        raise Busy(
            "another ingest is still running", "It does the same work; try again when it is done."
        ) from None
    except apsw.Error as error:
        db.close(True)
        raise StoreError(f"cannot write to {path.parent}: {error}", hint) from None
    return HeldLock(db)


def is_held(path: Path) -> bool:
    """Return whether somebody holds the lock of a file; False if the file cannot be opened."""
    try:
        db = open_file(path, apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return False
    try:
        db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.BusyError:
        return True
    finally:
        db.close(True)
    return False


@contextmanager
def ingest_lock(home: Path, wait_seconds: float) -> Iterator[None]:
    """Hold the ingest lock. Raises Busy if another process holds it for longer than `wait`
    seconds."""
    with closing(hold_lock(home / "ingest.lock", wait_seconds)):
        yield


def open_file(
    path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
) -> apsw.Connection:
    """Return a bare connection to a file, whatever its name is."""
    return apsw.Connection(file_name(path), flags=flags | uri_flag(path))


def uri_flag(path: Path) -> int:
    """Return the flag that must be set to open a file by its `file_name`; 0 if none must."""
    return 0 if file_name(path) == str(path) else apsw.SQLITE_OPEN_URI


def file_name(path: Path) -> str:
    """Return the name to open a file with in SQLite: its path, or a URI if the path is not
    UTF-8."""
    name = str(path)
    return name if to_text(name) == name else path.absolute().as_uri()


LOCK_WAIT = 120.0
