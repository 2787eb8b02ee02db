"""What it costs to watch: processor and memory by how many sessions are open, and how soon a
line is heard."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from measure import clean_env
from report import Cell, Check, Report, Table
from streams import RATE, Session, opened, stream
from watched import MARK

_HERE = Path(__file__).parent
_SETTLE = 4.0  # seconds until what a start brings along is over


def live(report: Report, scratch: Path, counts: tuple[int, ...], seconds: float) -> None:
    rows: list[list[Cell]] = []
    found: dict[tuple[int, bool], dict[str, Any]] = {}
    for count in (0, *counts):
        for streams in (False, True) if count else (False,):
            told = _measured(scratch / f"live-{count}-{streams}", count, seconds, streams=streams)
            found[count, streams] = told
            delays = told["delays"]
            middle = median(delays) * 1e3 if delays else None
            how = f"{count} {'streaming' if streams else 'idle'}"
            rows.append([how, told["cpu"] * 100, told["rss_mb"], len(delays), middle, _late(told)])
    few, most = counts[0], counts[-1]
    each = (found[most, True]["rss_mb"] - found[0, False]["rss_mb"]) / most * 1024
    note = (
        f"For {seconds:g} s, with one listener. Idle: open sessions of Claude Code's, silent for "
        "an hour, their "
        f"processes alive. Streaming: {RATE:g} lines a second each; a line is on disk (segment, "
        "journal, database) "
        "before it is heard. Times from the write of a line until the listener has it."
    )
    columns = ["open sessions", "% of a core", "memory MB", "lines heard", "p50 ms", "p95 ms"]
    report.add(
        Table("Watching sessions", columns, rows, note),
        Check(
            f"watching {most} idle sessions", found[most, False]["cpu"] * 100, 1.0, " % of a core"
        ),
        Check(f"append to hub, p95, {few} streaming sessions", _late(found[few, True]), 300, " ms"),
        Check("memory of one streaming session", each, 500, " KB"),
    )


def _late(told: dict[str, Any]) -> float | None:
    return quantiles(told["delays"], n=20)[-1] * 1e3 if len(told["delays"]) > 1 else None


def _measured(scratch: Path, count: int, seconds: float, *, streams: bool) -> dict[str, Any]:
    home = scratch / "home"
    home.mkdir(parents=True)
    with opened(home, count) as sessions:
        return _watched(home, scratch, sessions, seconds, streams=streams)


def _watched(
    home: Path, scratch: Path, sessions: list[Session], seconds: float, *, streams: bool
) -> dict[str, Any]:
    env = clean_env(home, scratch) | {"WHYFOR_HOME": str(scratch / "whyfor")}
    command = [sys.executable, str(_HERE / "watched.py"), str(seconds)]
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
    assert found["trouble"] is None, found["trouble"]
    return found
