"""What the monitor costs: the processor time spent in it while a home with open sessions is
watched.

    monitored.py SECONDS < commands

As watched.py; the time in the monitor alone is counted, because the difference of two whole runs
is smaller than what they differ by chance.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from whyfor import config
from whyfor.live.hub import Hub
from whyfor.live.monitor import Monitor
from whyfor.service.ingest import watch_agents

from measure import clean_env
from report import Cell, Check, Report, Table
from streams import RATE, Session, opened, stream
from watched import MARK

_SETTLE = 5.0  # seconds until what a start brings along is over
_OPEN = 100
_MOST = 0.3  # % of a core


def monitor_cost(report: Report, scratch: Path, seconds: float) -> None:
    """Add what the monitor costs with a hundred open sessions, silent and being written."""
    rows: list[list[Cell]] = []
    found: dict[bool, dict[str, Any]] = {}
    for streams in (False, True):
        told = _measured(scratch / f"monitor-{streams}", seconds, streams=streams)
        found[streams] = told
        how = "streaming" if streams else "idle"
        rows.append([f"{_OPEN} {how}", told["share"] * 100, told["events"], told["each_us"]])
    note = (
        f"For {seconds:g} s. Streaming: {RATE:g} lines a second each, several times what agents "
        "write. Processor time of the thread inside the monitor, with that of the measuring."
    )
    report.add(
        Table("The monitor", ["open sessions", "% of a core", "events", "µs an event"], rows, note),
        Check(
            f"monitor, {_OPEN} idle sessions", found[False]["share"] * 100, _MOST, " % of a core"
        ),
        Check(
            f"monitor, {_OPEN} streaming sessions",
            found[True]["share"] * 100,
            _MOST,
            " % of a core",
        ),
    )


def _measured(scratch: Path, seconds: float, *, streams: bool) -> dict[str, Any]:
    home = scratch / "home"
    home.mkdir(parents=True)
    with opened(home, _OPEN) as sessions:
        return _watched(home, scratch, sessions, seconds, streams=streams)


def _watched(
    home: Path, scratch: Path, sessions: list[Session], seconds: float, *, streams: bool
) -> dict[str, Any]:
    env = clean_env(home, scratch) | {"WHYFOR_HOME": str(scratch / "whyfor")}
    command = [sys.executable, __file__, str(seconds)]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin and child.stdout
        child.stdout.readline()
        if streams:
            stream(sessions, _SETTLE, MARK)
        else:
            time.sleep(_SETTLE)
        child.stdin.write("go\n")
        child.stdin.flush()
        if streams:
            stream(sessions, seconds - 1, MARK)
        out, _ = child.communicate()
    found: dict[str, Any] = json.loads(out)
    return found


class _Meter:
    """Counts the processor time of calls."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.calls = 0

    def wrap(self, name: str) -> None:
        call: Callable[..., Any] = getattr(Monitor, name)

        def measured(*given: Any) -> Any:
            begun = time.thread_time()
            try:
                return call(*given)
            finally:
                self.spent += time.thread_time() - begun
                self.calls += name == "event"

        setattr(Monitor, name, measured)


def main() -> None:
    seconds = float(sys.argv[1])
    settings = config.load()
    meter = _Meter()
    for name in ("begin", "event", "judge"):
        meter.wrap(name)
    stop = threading.Event()
    watcher = threading.Thread(target=watch_agents, args=(settings, Hub(settings), stop))
    watcher.start()
    print("ready", flush=True)
    sys.stdin.readline()
    before, calls, begun = meter.spent, meter.calls, time.monotonic()
    time.sleep(seconds)
    spent, wall = meter.spent - before, time.monotonic() - begun
    events = meter.calls - calls
    stop.set()
    watcher.join()
    each = spent / events * 1e6 if events else None
    print(json.dumps({"share": spent / wall, "events": events, "each_us": each}), flush=True)


if __name__ == "__main__":
    main()
