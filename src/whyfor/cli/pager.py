"""Send long output through the reader's pager: $PAGER, else less, as git does."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TextIO

from whyfor.terminal import debug, is_terminal, options, output_width

_LESS = "FRX"  # quit if it fits one screen, keep colours, leave the text on the screen


class Pager:
    """A pager in place of standard output and, if it is a terminal too, of standard error."""

    def __init__(self, command: list[str], width: int) -> None:
        env = {"LESS": _LESS, "LV": "-c", **os.environ}
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, env=env)
        assert self.process.stdin is not None
        pipe = self.process.stdin.fileno()
        self.streams = [number for number in (1, 2) if os.isatty(number)]
        self.before = [os.dup(number) for number in self.streams]
        for number in self.streams:
            os.dup2(pipe, number)
        self.process.stdin.close()
        options.paged_width = width

    def close(self) -> None:
        """Give it the rest, and wait until the reader leaves it."""
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            if number in self.streams:
                _flush(stream, number)
        for number, before in zip(self.streams, self.before, strict=True):
            os.dup2(before, number)
            os.close(before)
        options.paged_width = None
        interrupts = signal.signal(signal.SIGINT, signal.SIG_IGN)  # they are the pager's now
        self.process.wait()
        signal.signal(signal.SIGINT, interrupts)


def _flush(stream: TextIO, number: int) -> None:
    """Write what is left; nowhere, if the reader has left the pager."""
    try:
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
        stream.flush()


_running: list[Pager] = []


def start_pager() -> None:
    """Start a pager if the command has long output and a person reads it."""
    if not options.pager or _running or not is_terminal() or not os.isatty(1):
        return
    command = pager_command()
    if not command:
        return
    debug(f"pager: {shlex.join(command)}")
    with suppress(OSError):
        _running.append(Pager(command, output_width()))


def stop_pager() -> None:
    while _running:
        _running.pop().close()


def pager_command() -> list[str]:
    """Return the words of $PAGER, or less if it is there; none for `cat` or an empty one."""
    given = os.environ.get("PAGER")
    try:
        words = shlex.split("less" if given is None else given)
    except ValueError:  # an open quote
        return []
    program = shutil.which(words[0]) if words else None
    if program is None or words == ["cat"] or os.environ.get("TERM", "dumb") == "dumb":
        return []
    return [program, *words[1:]]
