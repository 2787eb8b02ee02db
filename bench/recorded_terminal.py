"""The recorder of `whyfor run`: what it costs per megabyte of output, and what it adds to a key."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path
from statistics import median, quantiles

from measure import clean_env
from report import Cell, Check, Report, Table

_MEGABYTES = 40
_KEYS = 400
_ROUNDS = 3
_RUN = [sys.executable, "-m", "whyfor", "run", "--"]
_ECHO = (
    "import os, tty; tty.setraw(0); os.write(1, b'ready')\n"
    "while (key := os.read(0, 1)) != b'q': os.write(1, key)"
)


def recorded_terminal(report: Report, scratch: Path) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    env = {**clean_env(scratch, scratch), "WHYFOR_HOME": str(scratch / "whyfor"), "TERM": "xterm"}
    output = scratch / "output.txt"
    line = "".join(f"\x1b[3{n % 8}m{n:06d} some words of a program\x1b[0m " for n in range(3))
    with output.open("w") as file:
        size = 0
        while size < _MEGABYTES << 20:
            size += file.write(f"{line}\r\n")
    plain = min(_cpu(["cat", str(output)], env) for _ in range(_ROUNDS))
    start = min(_cpu([*_RUN, "true"], env) for _ in range(_ROUNDS))
    whole = min(_cpu([*_RUN, "cat", str(output)], env) for _ in range(_ROUNDS))
    script = min(_cpu(["script", "-qfc", f"cat {output}", os.devnull], env) for _ in range(_ROUNDS))
    ours = _MEGABYTES / max(whole - plain - start, 1e-6)
    theirs = _MEGABYTES / max(script - plain, 1e-6)
    bare = _keys([sys.executable, "-c", _ECHO], env)
    added = _keys([*_RUN, sys.executable, "-c", _ECHO], env)
    rows: list[list[Cell]] = [
        ["whyfor run, MB per CPU s beyond the program and its start", ours],
        ["script(1), MB per CPU s beyond the program", theirs],
        ["start, CPU ms", start * 1e3],
        ["a key and its echo, without it, p50 ms", median(bare) * 1e3],
        ["a key and its echo, with it, p50 ms", median(added) * 1e3],
        ["a key and its echo, with it, p95 ms", quantiles(added, n=20)[-1] * 1e3],
    ]
    gap = (median(added) - median(bare)) * 1e3
    note = f"{_MEGABYTES} MB of coloured lines, least of {_ROUNDS}; {_KEYS} keys, one at a time."
    report.add(
        Table("A recorded terminal", ["", ""], rows, note),
        Check("recorder, MB per CPU s", ours, 20, " MB", floor=True),
        Check("recorder, added latency per key, p50", gap, 2, " ms"),
    )


def _cpu(command: list[str], env: dict[str, str]) -> float:
    """CPU seconds of a command in a terminal that somebody reads, with all that it waited for."""
    pid, master = _start(command, env)
    while _read(master):
        pass
    _, status, usage = os.wait4(pid, 0)
    os.close(master)
    assert status == 0, f"{command[0]} failed"
    return usage.ru_utime + usage.ru_stime


def _keys(command: list[str], env: dict[str, str]) -> list[float]:
    """Seconds from a key to its echo."""
    pid, master = _start(command, env)
    seen = b""
    while b"ready" not in seen:
        seen += _read(master)
    took = []
    for _ in range(_KEYS):
        time.sleep(0.002)
        began = time.perf_counter()
        os.write(master, b"x")
        while b"x" not in _read(master):
            pass
        took.append(time.perf_counter() - began)
    os.write(master, b"q")
    while _read(master):
        pass
    os.waitpid(pid, 0)
    os.close(master)
    return took


def _start(command: list[str], env: dict[str, str]) -> tuple[int, int]:
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(env["HOME"])
        os.execvpe(command[0], command, env)
    return pid, master


def _read(master: int) -> bytes:
    select.select([master], [], [], 30)
    try:
        return os.read(master, 1 << 16)
    except OSError:
        return b""
