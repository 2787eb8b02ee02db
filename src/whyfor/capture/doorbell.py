"""The doorbell: a named pipe by which a hook wakes the running server. It costs a hook three system
calls."""

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
LEFT = b"bell"  # what a hook writes there to leave its ingest to the running server
_PIPES = hasattr(os, "mkfifo") and hasattr(select, "poll")


class Doorbell:
    """Waits for a ring: from a hook through the pipe, or from a thread of this process."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._plain = threading.Event()  # where there are no such pipes
        self._inner = os.pipe() if _PIPES else ()
        # both ends: without a writer of ours it would end with each hook
        self._outer: tuple[int, ...] = ()
        for fd in self._inner:
            os.set_blocking(fd, False)

    def hang(self) -> None:
        """Create the pipe where hooks look for it; create it again if it is gone."""
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
        """Ring from within this process, from any thread. A full pipe needs no further ring."""
        self._plain.set()
        if self._inner:
            with suppress(BlockingIOError):
                os.write(self._inner[1], b".")

    def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most `seconds`; return whether a hook rang."""
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
        """Remove the pipe; from now on hooks start an ingest themselves again."""
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
    """Return whether a hook left its ingest to the running server."""
    try:
        return (home / PENDING).read_bytes() == LEFT
    except OSError:
        return False


def answer(home: Path) -> bool:
    """Return the same, and delete the request. Call it before the spool is read."""
    if not is_asked(home):
        return False
    with suppress(OSError):
        (home / PENDING).unlink()
    return True
