"""The files of a database: the database itself, and those SQLite keeps beside it."""

from __future__ import annotations

from pathlib import Path

_SUFFIXES = ("", "-wal", "-shm")


def set_database_aside(database: Path, stamp: str) -> None:
    """Rename a damaged database and keep it."""
    for suffix in _SUFFIXES:
        old = database.with_name(database.name + suffix)
        if old.exists():
            old.rename(database.with_name(f"{database.name}.damaged-{stamp}{suffix}"))


def remove_database(database: Path) -> None:
    """Delete a temporary database."""
    for suffix in (*_SUFFIXES, "-journal"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
