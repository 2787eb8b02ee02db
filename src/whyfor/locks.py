"""The ingest lock, which the system releases when its holder dies, on every platform that SQLite
supports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from whyfor.model.errors import Busy, StoreError
from whyfor.model.paths import to_text


@contextmanager
def ingest_lock(home: Path, wait_seconds: float) -> Iterator[None]:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        db = open_file(home / "ingest.lock")
    except (OSError, apsw.Error) as error:
        raise StoreError(
            f"cannot write to {home}: {error}", "Check its permissions, or set WHYFOR_HOME."
        ) from None
    try:
        db.set_busy_timeout(int(wait_seconds * 1000))
        try:
            db.execute("BEGIN EXCLUSIVE")
        except apsw.BusyError:
            raise Busy(
                "another ingest is still running",
                "It does the same work; try again when it is done.",
            ) from None
        except apsw.Error as error:
            raise StoreError(
                f"cannot write to {home}: {error}", "Check its permissions, or set WHYFOR_HOME."
            ) from None
        yield
    finally:
        db.close(True)


def open_file(
    path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
) -> apsw.Connection:
    """Return a bare connection to a file, whatever its name is."""
    name = file_name(path)
    if name != str(path):
        flags |= apsw.SQLITE_OPEN_URI
    return apsw.Connection(name, flags=flags)


def file_name(path: Path) -> str:
    """Return the name to open a file with in SQLite: its path, or a URI if the path is not
    UTF-8."""
    name = str(path)
    return name if to_text(name) == name else path.absolute().as_uri()
