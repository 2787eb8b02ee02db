"""Runs one command in a clean environment and says what it cost."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

Env = dict[str, str]


@dataclass(frozen=True)
class Cost:
    """User and system time of a command and the children it waited for, wall time, and the peak
    memory of the largest of them."""

    cpu: float
    wall: float
    peak_mb: float
    output: bytes = b""


class CommandFailed(Exception):
    """A measured command exited with an error; its cost means nothing."""


def clean_env(home: Path, scratch: Path) -> Env:
    """An environment built from nothing, so that no setting of this machine reaches what is
    measured."""
    places = {
        f"XDG_{name}_HOME": str(scratch / "xdg" / name.lower())
        for name in ("CONFIG", "DATA", "CACHE", "STATE")
    }
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "HOME": str(home), **places}


def run(command: Sequence[str], env: Env, cwd: Path | None = None) -> Cost:
    """Runs to the end, in its home unless told where. The kernel starts a child's peak memory at
    its parent's size, so this process stays small: generating and indexing happen in children
    too."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        where = cwd or env["HOME"]
        child = subprocess.Popen(
            command, env=env, cwd=where, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode:
            # only the last line: it says what failed, the rest could hold the text of a transcript
            last = err.read().decode(errors="replace").strip().rpartition("\n")[2][:200]
            raise CommandFailed(
                f"{Path(command[0]).name} {command[1]} exited {child.returncode}. {last}"
            )
        return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, out.read())


def typical(times: int, measure: Callable[[], Cost]) -> Cost:
    """The median of several runs, after one that warms the caches."""
    measure()
    costs = [measure() for _ in range(times)]
    peak = max(cost.peak_mb for cost in costs)
    return Cost(median(c.cpu for c in costs), median(c.wall for c in costs), peak, costs[-1].output)


def middle(costs: Sequence[Cost]) -> Cost:
    """The median of runs that were each prepared anew."""
    return sorted(costs, key=lambda cost: cost.cpu)[len(costs) // 2]


def best(*costs: Cost) -> Cost:
    return min(costs, key=lambda cost: cost.cpu)


def folder_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
