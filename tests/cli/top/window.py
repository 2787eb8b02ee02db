"""A terminal window of a given size, as `whyfor top` has it: what is on its screen, how it was
left."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType

SECONDS = 30.0
TOP = ["-m", "whyfor", "top"]
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)


class Window:
    """with Window(TOP, env, 80, 24) as window: window.see("No session is open")"""

    def __init__(
        self, arguments: list[str], env: Mapping[str, str], columns: int, rows: int
    ) -> None:
        self.written = ""
        self.keys, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.keys)
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            env=dict(env),
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
        )
        self._screen = screen  # kept open: what is set on it is looked at when the program is gone

    def __enter__(self) -> Window:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.close_terminal()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(SECONDS)

    def close_terminal(self) -> None:
        os.close(self.keys)
        os.close(self._screen)

    @property
    def plain(self) -> str:
        """Everything that was ever written, without spaces: words are moved to, not spaced."""
        return "".join(_CONTROL.sub("", self.written).split())

    def see(self, text: str, since: int = 0) -> None:
        wanted, deadline = "".join(text.split()), time.monotonic() + SECONDS
        while wanted not in self.plain[since:]:
            assert time.monotonic() < deadline and self.process.poll() is None, (
                f"{text!r} not in {self.plain[-2000:]}"
            )
            self._read()

    def press(self, keys: str) -> int:
        """Returns how much was written before."""
        self._drain()
        os.write(self.keys, keys.encode())
        return len(self.plain)

    def quiet(self, seconds: float) -> None:
        """Take what is written for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read()

    def leave(self) -> int:
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still running: {self.plain[-2000:]}"
            self._read()
        self._drain()
        return self.process.returncode

    def check_restored(self) -> None:
        """As a terminal was before: its modes, its own screen, its cursor, no mouse, no
        bracketed paste."""
        assert termios.tcgetattr(self.keys) == self.before
        for mode in ("?1049", "?1000", "?1003", "?1004", "?2004"):
            on, off = self.written.rfind(f"\x1b[{mode}h"), self.written.rfind(f"\x1b[{mode}l")
            assert off > on or on == off == -1, mode
        assert self.written.rfind("\x1b[?25h") > self.written.rfind("\x1b[?25l")

    def _read(self, seconds: float = 0.1) -> bool:
        if not select.select([self.keys], [], [], seconds)[0]:
            return False
        self.written += os.read(self.keys, 1 << 16).decode(errors="replace")
        return True

    def _drain(self) -> None:
        while self._read(0):
            pass
