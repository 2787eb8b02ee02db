"""A program in a terminal of its own, whose output is recorded on its way to the person.

What the person sees and types passes through first; the recording comes after, and whatever fails
in it is left out. Three processes: this one copies bytes; a keeper leads the program's session, so
that job control works in it; the program itself.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
import tty
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn, Protocol

IDLE_SECONDS = 2.0
_FLUSH_SECONDS = 0.2
_PIECE = 64 << 10
_DRAIN_SECONDS = 1.0  # for what the program wrote last
NOT_FOUND, _NOT_RUN = 127, 126
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_IGNORED = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE, signal.SIGXFSZ)


class Tape(Protocol):
    """What keeps a recording. Its methods may raise anything: then nothing more is recorded."""

    def output(self, data: bytes) -> None: ...
    def input(self, data: bytes) -> None: ...
    def resize(self, columns: int, rows: int) -> None: ...
    def idle(self) -> None: ...
    def flush(self) -> None: ...
    def end(self, code: int) -> None: ...


def has_person() -> bool:
    """Return whether a person sits at both ends."""
    return os.isatty(0) and os.isatty(1)


def run_plain(argv: list[str], env: Mapping[str, str]) -> int:
    """Become the program; returns only if there is none, with the code that a shell gives."""
    try:
        os.execvpe(argv[0], argv, dict(env))
    except FileNotFoundError:
        return NOT_FOUND
    except OSError:
        return _NOT_RUN


def record(argv: list[str], env: Mapping[str, str], tape: Tape, *, with_input: bool) -> int:
    """Run the program until it ends; return its exit code, 128 and the signal if one ended it."""
    return _Recorder(tape, with_input).run(argv, env)


def window_size(fd: int = 0) -> tuple[int, int]:
    """Return columns and rows of a terminal; 80 by 24 if it does not say."""
    try:
        rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8))
    except OSError:
        return 80, 24
    return columns or 80, rows or 24


class _Recorder:
    def __init__(self, tape: Tape, with_input: bool) -> None:
        self._tape: Tape | None = tape
        self._with_input = with_input
        self._master = -1
        self._keeper = 0
        self._ended: int | None = None
        self._heard = self._flushed = time.monotonic()
        self._written = False  # since the last rest
        self._before: list[Any] = []

    def run(self, argv: list[str], env: Mapping[str, str]) -> int:
        before = termios.tcgetattr(0)
        columns, rows = window_size()
        self._keeper, self._master = pty.fork()
        if self._keeper == 0:
            _keep(argv, env, before, columns, rows)
        self._before = before
        wake, handlers = self._listen()
        try:
            tty.setraw(0, termios.TCSANOW)  # what was typed ahead stays
            self._copy(wake)
            self._drain()
        finally:
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, before)
            signal.set_wakeup_fd(-1)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(wake)
            os.close(self._master)
        code = self._ended if self._ended is not None else 1
        self._keep(lambda tape: tape.end(code))
        return code

    def _listen(self) -> tuple[int, dict[int, Any]]:
        """Let signals wake the loop; return where they arrive, and what was there before."""
        wake, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        numbers = (signal.SIGCHLD, signal.SIGWINCH, *_FORWARDED)
        return wake, {number: signal.signal(number, lambda *_: None) for number in numbers}

    # -- the loop --------------------------------------------------------------------------------

    def _copy(self, wake: int) -> None:
        """Copy both ways until the program has ended."""
        sources = [self._master, 0, wake]
        while self._ended is None:
            ready = select.select(sources, [], [], self._patience())[0]
            if wake in ready:
                self._signals(os.read(wake, 1024))
            if 0 in ready and not self._pass_keys():
                sources.remove(0)
                self._forward(signal.SIGHUP)
            if self._master in ready and not self._pass_output():
                sources.remove(self._master)
            if not ready or self._written:
                self._rest()

    def _patience(self) -> float | None:
        """Return how long nothing has to happen until something is to be done."""
        if not self._written:
            return None
        return _FLUSH_SECONDS if self._flushed < self._heard else IDLE_SECONDS

    def _rest(self) -> None:
        now = time.monotonic()
        if now - self._heard >= IDLE_SECONDS:
            self._written = False
            self._flushed = now
            self._keep(lambda tape: tape.idle())
        elif now - self._flushed >= _FLUSH_SECONDS and self._flushed < self._heard:
            self._flushed = now
            self._keep(lambda tape: tape.flush())

    def _pass_output(self) -> bool:
        """Copy what the program wrote; false when it can write no more."""
        try:
            data = os.read(self._master, _PIECE)
        except OSError:
            return False  # EIO: nobody has the other end open
        if not data:
            return False
        _write(1, data)
        self._written = True
        self._heard = time.monotonic()
        self._keep(lambda tape: tape.output(data))
        return True

    def _pass_keys(self) -> bool:
        """Copy what the person typed; false when nobody is there any more."""
        try:
            data = os.read(0, _PIECE)
        except OSError:
            return False
        if not data:
            return False
        hidden = not self._with_input or _is_hidden(self._master)
        with suppress(OSError):
            _write(self._master, data)
        if not hidden:
            self._keep(lambda tape: tape.input(data))
        return True

    def _drain(self) -> None:
        """Copy what the program wrote before it ended."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < deadline:
            if not select.select([self._master], [], [], 0.05)[0] or not self._pass_output():
                return

    def _keep(self, act: Callable[[Tape], None]) -> None:
        """Record something; whatever fails, the program goes on without."""
        if self._tape is None:
            return
        try:
            act(self._tape)
        except Exception:  # noqa: BLE001 - the recording ends, the program does not
            self._tape = None

    # -- signals ---------------------------------------------------------------------------------

    def _signals(self, told: bytes) -> None:
        for number in dict.fromkeys(told):
            if number == signal.SIGWINCH:
                self._resize()
            elif number == signal.SIGCHLD:
                self._ask_keeper()
            elif number in _FORWARDED:
                self._forward(number)

    def _resize(self) -> None:
        columns, rows = window_size()
        _set_size(self._master, columns, rows)
        self._keep(lambda tape: tape.resize(columns, rows))

    def _forward(self, number: int) -> None:
        """Hand a signal to what runs in the program's terminal."""
        try:
            os.killpg(os.tcgetpgrp(self._master), number)
        except OSError:
            with suppress(ProcessLookupError):
                os.kill(self._keeper, signal.SIGHUP)

    def _ask_keeper(self) -> None:
        pid, status = os.waitpid(self._keeper, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return
        if os.WIFSTOPPED(status):
            self._stop()
        elif os.WIFEXITED(status):
            self._ended = os.WEXITSTATUS(status)
        elif os.WIFSIGNALED(status):
            self._ended = 128 + os.WTERMSIG(status)

    def _stop(self) -> None:
        """The program was stopped: stop with it, as the shell around us expects, and go on with
        it."""
        self._keep(lambda tape: tape.flush())
        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSADRAIN, self._before)
        signal.raise_signal(signal.SIGTSTP)  # the person's shell continues us here
        with suppress(termios.error):
            tty.setraw(0, termios.TCSANOW)  # what was typed ahead stays
        self._resize()
        os.kill(self._keeper, signal.SIGCONT)


def _is_hidden(master: int) -> bool:
    """Return whether what is typed now is not shown: a password."""
    try:
        flags = termios.tcgetattr(master)[3]
    except termios.error:
        return True
    return bool(flags & termios.ICANON) and not flags & termios.ECHO


def _set_size(fd: int, columns: int, rows: int) -> None:
    with suppress(OSError):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])
        except OSError as error:
            if error.errno == errno.EIO:  # the terminal is gone; the program is told by a signal
                return
            raise


# -- the keeper ----------------------------------------------------------------------------------


def _keep(
    argv: list[str], env: Mapping[str, str], modes: list[Any], columns: int, rows: int
) -> NoReturn:
    """Lead the session: start the program in the foreground, stop and end as it does."""
    code = _NOT_RUN
    try:
        termios.tcsetattr(0, termios.TCSANOW, modes)
        _set_size(0, columns, rows)
        code = _watch(_start(argv, env))
    finally:
        os._exit(code)


def _start(argv: list[str], env: Mapping[str, str]) -> int:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    begin, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        os.read(begin, 1)  # until it is in the foreground
        os.close(begin)
        for number in (*_FORWARDED, *_IGNORED):
            signal.signal(number, signal.SIG_DFL)
        code = run_plain(argv, env)
        what = "not found" if code == NOT_FOUND else "cannot be run"
        os.write(2, f"whyfor run: {argv[0]}: {what}\r\n".encode())
        os._exit(code)
    os.close(begin)
    os.setpgid(pid, pid)
    os.tcsetpgrp(0, pid)
    os.close(go)
    return pid


def _watch(pid: int) -> int:
    """Wait for the program; return its exit code, 128 and the signal if one ended it."""
    while True:
        try:
            _, status = os.waitpid(pid, os.WUNTRACED)
        except InterruptedError:
            continue
        if os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)  # the recorder sees it, and continues us later
            with suppress(OSError):
                os.tcsetpgrp(0, pid)
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGCONT)
        elif os.WIFSIGNALED(status):
            return 128 + os.WTERMSIG(status)
        else:
            return os.WEXITSTATUS(status)
