"""Runs a program in a clean environment and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# Every descendant inherits this variable. Agents start their shells in sessions of their own, so
# the process group alone would miss them.
MARK = "AGENT_RUN"


@dataclass(frozen=True)
class Finished:
    code: int
    stdout: str
    stderr: str
    # command lines of processes that outlived the program and had to be killed
    killed: tuple[str, ...]


def run_clean(
    argv: list[str], cwd: Path, env: Mapping[str, str], timeout: float, grace: float
) -> Finished:
    """Run to the end or the timeout; what is still running `grace` seconds after the end is
    killed."""
    mark = uuid.uuid4().hex
    # Files, not pipes: a background process that keeps a pipe open would hold up the reader.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**env, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            process.wait(timeout)
            wait_for_descendants(mark, grace)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{argv} ran over {timeout} s\n{_text(out)}\n{_text(err)}"
            ) from None
        finally:
            killed = kill_all(process, mark)
        return Finished(process.returncode, _text(out), _text(err), killed)


def descendants(mark: str) -> dict[int, str]:
    """Pid and command line of each running process that carries the mark; none where there is no
    /proc."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may end while it is looked at, and others' are not ours to read.
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_text(errors="replace")
                found[int(folder.name)] = command.replace("\0", " ").strip()
    return found


def wait_for_descendants(mark: str, seconds: float) -> None:
    # Orphans are not our children: nothing but looking tells when they are gone. Twice, because a
    # process that is just being started shows no environment for a moment.
    deadline = time.monotonic() + seconds
    gone = 0
    while (gone := 0 if descendants(mark) else gone + 1) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)


def kill_all(process: subprocess.Popen[bytes], mark: str) -> tuple[str, ...]:
    killed = descendants(mark)
    # The group too: it may hold children that were given another environment.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # Again until none is left: one may have started another before it died.
    while left := descendants(mark):
        killed |= left
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return tuple(killed.values())


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
