"""Atomic file writes and other file helpers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_umask: list[int] = []  # as it was when we were started


def own_files_only() -> None:
    """From now on, let what this process writes be its owner's alone."""
    before = os.umask(0o077)
    if not _umask:
        _umask.append(before)


def usual_umask() -> int:
    """Return the umask that this process was started with."""
    if not _umask:
        own_files_only()
    return _umask[0]


def replace(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file's content atomically; a link stays a link, and an existing file keeps its
    mode."""
    with replacing(path, mode) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Yield a file to write to; on success it replaces `path` atomically, on failure nothing
    changes."""
    target = Path(os.path.realpath(path))
    if target.exists():
        mode = target.stat().st_mode & 0o7777
    import tempfile  # here: most runs write no whole file, and it is slow to load

    fd, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
            file.flush()
            os.fchmod(fd, mode)
            os.fsync(fd)
        Path(temporary).rename(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def need_descriptors(number: int) -> None:
    """Raise OSError if this process cannot open that many more files; some libraries do not report
    it themselves."""
    held: list[int] = []
    try:
        for _ in range(number):
            held.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for fd in held:
            os.close(fd)


def sync(path: Path) -> None:
    """Flush a file's bytes, or a folder's entries, to disk, so that they survive a power loss."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows does not open folders
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_folders(folder: Path) -> list[Path]:
    """Create a folder and its missing parents; return the created ones, deepest first."""
    missing = [at for at in (folder, *folder.parents) if not at.exists()]
    for at in reversed(missing):
        at.mkdir(mode=0o700)
    return missing
