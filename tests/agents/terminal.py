"""An agent in a terminal, as a person has it: what is on the screen, and keys to press."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from .process import MARK, kill_all, wait_for_descendants

ROWS, COLUMNS = 50, 150
CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)


class Terminal:
    """with Terminal(argv, cwd, env) as terminal: terminal.see("for shortcuts");
    terminal.enter("What is here?")"""

    def __init__(
        self, argv: list[str], cwd: Path, env: Mapping[str, str], patience: float = 30.0
    ) -> None:
        self.patience = patience
        # command lines of processes that outlived the program and had to be killed
        self.killed: tuple[str, ...] = ()
        self._mark = uuid.uuid4().hex
        self._written = ""
        self._keys, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**env, MARK: self._mark},
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
        )
        os.close(screen)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if kind is None:
            wait_for_descendants(self._mark, self.patience)
        self.killed = kill_all(self._process, self._mark)
        os.close(self._keys)

    def see(self, text: str) -> None:
        """Wait until this is written, after all that was waited for before. Words are moved to,
        not spaced."""
        wanted = "".join(text.split())
        deadline = time.monotonic() + self.patience
        while (at := self._plain.find(wanted)) < 0:
            assert time.monotonic() < deadline and self._read(), (
                f"{text!r} was not seen in\n{self._plain[-2000:]}"
            )
        self._written = self._plain[at + len(wanted) :]

    def enter(self, text: str) -> None:
        """Type a line, and press Enter once it is there: what comes at once is taken for pasted."""
        self.press(text)
        self.see(text)
        self.press("\r")

    def press(self, keys: str) -> None:
        os.write(self._keys, keys.encode())

    def leave(self) -> int:
        """Wait for the end; the exit code."""
        deadline = time.monotonic() + self.patience
        while self._read():
            assert time.monotonic() < deadline, f"still running:\n{self._plain[-2000:]}"
        return self._process.wait(self.patience)

    @property
    def _plain(self) -> str:
        return "".join(CONTROL.sub("", self._written).split())

    def _read(self) -> bool:
        """Take what is there, waiting a moment for it; false when nothing will come any more."""
        if select.select([self._keys], [], [], 0.1)[0]:
            with suppress(OSError):  # the other end is closed
                self._written += os.read(self._keys, 1 << 16).decode(errors="replace")
                return True
            return False
        return True
