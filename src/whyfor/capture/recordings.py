"""Recordings on disk: a file of ours that is stored whole is not needed any more."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from whyfor.agents import RECORDED
from whyfor.agents.terminal import FOLDER
from whyfor.model.sources import Source


def lock_recording(fd: int) -> bool:
    """Mark a recording as being written, for as long as its file is open here; False if somebody
    else does."""
    try:
        import fcntl  # nothing is recorded where it is missing
    except ImportError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_stored(source: Source, path: Path, home: Path, size: int) -> None:
    """Delete the file of a recording that has ended and is stored whole."""
    if _is_ours(source, path, home) and source.position + source.tail == size:
        _remove_unused(path)


def remove_forgotten(source: Source, path: Path, home: Path) -> None:
    """Delete the file of a recording whose session was forgotten."""
    if _is_ours(source, path, home):
        with suppress(OSError):
            path.unlink()


def _is_ours(source: Source, path: Path, home: Path) -> bool:
    return source.agent in RECORDED and path.parent == home / FOLDER


def _remove_unused(path: Path) -> None:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY)
        try:
            if lock_recording(fd):
                path.unlink()
        finally:
            os.close(fd)
