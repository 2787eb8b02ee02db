"""The bell: hooks ring it, and whoever serves reads at once. A named pipe, which costs a hook
three system calls."""

from __future__ import annotations

import math
import os
import select
import stat
import threading
from contextlib import suppress
from pathlib import Path

FILE = "hook/bell"
PENDING = "hook/pending"
LEFT = b"bell"  # what a hook writes there that left its ingest to whoever serves
_PIPES = hasattr(os, "mkfifo") and hasattr(select, "poll")


class Doorbell:
    """Waits for a ring: of a hook through the pipe, or of a thread of this process."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._plain = threading.Event()  # where there are no such pipes
        self._inner = os.pipe() if _PIPES else ()
        # both ends: without a writer of ours it would end with each hook
        self._outer: tuple[int, ...] = ()
        for fd in self._inner:
            os.set_blocking(fd, False)

    def hang(self) -> None:
        """Where hooks find it; again if it is gone from there."""
        if not _PIPES or self._hangs():
            return
        self.take_down()
        try:
            if os.path.lexists(self._path):
                self._path.unlink()  # of one who was killed
            os.mkfifo(self._path, 0o600)
            self._outer = (os.open(self._path, os.O_RDONLY | os.O_NONBLOCK),)
            self._outer += (os.open(self._path, os.O_WRONLY | os.O_NONBLOCK),)
        except OSError:
            # no folder of hooks, or no way to write there: what they say is found by looking
            self.take_down()

    def _hangs(self) -> bool:
        try:
            found = self._path.lstat()
        except OSError:
            return False
        return (
            bool(self._outer)
            and stat.S_ISFIFO(found.st_mode)
            and found.st_ino == os.fstat(self._outer[0]).st_ino
        )

    def ring(self) -> None:
        """From within, by any thread; a full pipe was rung often enough."""
        self._plain.set()
        if self._inner:
            with suppress(BlockingIOError):
                os.write(self._inner[1], b".")

    def wait(self, seconds: float) -> bool:
        """Until it rings, at most so long; whether a hook rang."""
        if not self._inner:
            self._plain.wait(max(0.0, seconds))
            self._plain.clear()
            return False
        waiting = select.poll()
        for fd in (self._inner[0], *self._outer[:1]):
            waiting.register(fd, select.POLLIN)
        rung = [fd for fd, _ in waiting.poll(max(0, math.ceil(seconds * 1000)))]
        for fd in rung:
            with suppress(BlockingIOError):
                os.read(fd, 1 << 16)
        return bool(self._outer) and self._outer[0] in rung

    def take_down(self) -> None:
        """From now on hooks start an ingest of their own again."""
        if self._hangs():
            with suppress(OSError):
                self._path.unlink()
        for fd in self._outer:
            os.close(fd)
        self._outer = ()

    def close(self) -> None:
        self.take_down()
        for fd in self._inner:
            os.close(fd)
        self._inner = ()


def is_asked(home: Path) -> bool:
    """Whether a hook left its ingest to whoever serves."""
    try:
        return (home / PENDING).read_bytes() == LEFT
    except OSError:
        return False


def answer(home: Path) -> bool:
    """The same, and take its word away: to be done before the spool is read."""
    if not is_asked(home):
        return False
    with suppress(OSError):
        (home / PENDING).unlink()
    return True
