"""What it costs to watch: processor and memory by how many sessions are open, and how soon a line is heard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from measure import clean_env
from report import Cell, Check, Report, Table
from watched import MARK

_HERE = Path(__file__).parent
_IDLE_SECONDS = 3600
_STREAM = 2.0  # lines a second of one session
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
        f"For {seconds:g} s, with one listener. Idle: open sessions of Claude Code's, silent for an hour, their "
        f"processes alive. Streaming: {_STREAM:g} lines a second each; a line is on disk (segment, journal, database) "
        "before it is heard. Times from the write of a line until the listener has it."
    )
    columns = ["open sessions", "% of a core", "memory MB", "lines heard", "p50 ms", "p95 ms"]
    report.add(
        Table("Watching sessions", columns, rows, note),
        Check(f"watching {most} idle sessions", found[most, False]["cpu"] * 100, 1.0, " % of a core"),
        Check(f"append to hub, p95, {few} streaming sessions", _late(found[few, True]), 300, " ms"),
        Check("memory of one streaming session", each, 500, " KB"),
    )


def _late(told: dict[str, Any]) -> float | None:
    return quantiles(told["delays"], n=20)[-1] * 1e3 if len(told["delays"]) > 1 else None


def _measured(scratch: Path, count: int, seconds: float, *, streams: bool) -> dict[str, Any]:
    home = scratch / "home"
    home.mkdir(parents=True)
    agents = [subprocess.Popen(["sleep", "600"]) for _ in range(count)]
    try:
        return _watched(home, scratch, [_Session(home, agent.pid) for agent in agents], seconds, streams=streams)
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()


def _watched(home: Path, scratch: Path, sessions: list[_Session], seconds: float, *, streams: bool) -> dict[str, Any]:
    env = clean_env(home, scratch) | {"BACKSTORY_HOME": str(scratch / "backstory")}
    command = [sys.executable, str(_HERE / "watched.py"), str(seconds)]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin and child.stdout
        child.stdout.readline()
        if streams:
            _stream(sessions, _SETTLE)
        else:
            time.sleep(_SETTLE)
        child.stdin.write("go\n")
        child.stdin.flush()
        if streams:
            _stream(sessions, seconds - 1)
        out, _ = child.communicate()
    found: dict[str, Any] = json.loads(out)
    assert found["trouble"] is None, found["trouble"]
    return found


class _Session:
    """An open session: its transcript, and the file its process keeps."""

    def __init__(self, home: Path, pid: int) -> None:
        self.id = str(uuid.uuid4())
        self.path = home / ".claude" / "projects" / f"-code-{pid % 10}" / f"{self.id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._parent: str | None = None
        before = time.time() - _IDLE_SECONDS
        self.write("user", {"role": "user", "content": f"Write of animal {pid}"}, before)
        for step in range(20):
            self.say(f"Step {step} is done. " * 20, before)
        os.utime(self.path, (before, before))
        registry = home / ".claude" / "sessions" / f"{pid}.json"
        registry.parent.mkdir(exist_ok=True)
        stat = Path(f"/proc/{pid}/stat")
        started = stat.read_text().rpartition(")")[2].split()[19] if stat.exists() else ""
        told = {"pid": pid, "procStart": started, "sessionId": self.id, "cwd": "/code/shop"}
        registry.write_text(json.dumps({**told, "status": "idle", "statusUpdatedAt": round(before * 1000)}))

    def say(self, text: str, at: float) -> None:
        content = [{"type": "text", "text": text}]
        self.write("assistant", {"id": str(uuid.uuid4()), "role": "assistant", "content": content}, at)

    def write(self, kind: str, message: dict[str, Any], at: float) -> None:
        ident = str(uuid.uuid4())
        line = {
            "parentUuid": self._parent,
            "type": kind,
            "message": message,
            "uuid": ident,
            "timestamp": f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}Z",
            "cwd": "/code/shop",
            "sessionId": self.id,
            "version": "2.1.197",
        }
        self._parent = ident
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _stream(sessions: list[_Session], seconds: float) -> None:
    """Evenly, one after another."""
    begun, number = time.monotonic(), 0
    while (now := time.monotonic()) < begun + seconds:
        due = begun + number / _STREAM / len(sessions)
        if due > now:
            time.sleep(due - now)
        sessions[number % len(sessions)].say(f"{MARK}{time.time_ns()}", time.time())
        number += 1
