"""The programs that are compared: ours, agentsview, and a decoder that does nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from measure import Cost, Env, clean_env, run, typical

_ROOT = Path(__file__).parents[1]
_BENCH_VENV = _ROOT / ".cache/bench-venv"
_AGENTSVIEW = "agentsview==0.46.1"
_ADDRESS = re.compile(r"listening at (http://\S+)")


@dataclass(frozen=True)
class Hits:
    """What a search cost, how many results it gave and from how many sessions."""

    cost: Cost
    count: int
    sessions: int


class _Hit(msgspec.Struct):
    session_id: str = ""
    type: str = "session"  # ours also finds notes and commits


class _Matches(msgspec.Struct):
    matches: list[_Hit] | None


def _hits(cost: Cost, found: list[_Hit]) -> Hits:
    return Hits(cost, len(found), len({hit.session_id for hit in found}))


@dataclass(frozen=True)
class Daemon:
    """A running server and the CPU seconds until it listened."""

    pid: int
    start_cpu: float
    address: str


class Raw:
    """Decodes the same bytes; no program that reads them all can be cheaper."""

    def decode(self, home: Path, scratch: Path) -> Cost:
        return run(
            [sys.executable, str(Path(__file__).with_name("raw.py")), str(home)],
            clean_env(home, scratch),
        )


class Whyfor:
    def __init__(self, program: Path, home: Path, scratch: Path) -> None:
        self.store = scratch / "whyfor"
        self.python = str(program.with_name("python"))
        self._program = str(program)
        self.env: Env = clean_env(home, scratch) | {"WHYFOR_HOME": str(self.store)}

    def ingest(self) -> Cost:
        return run([self._program, "ingest", "--json"], self.env)

    def index(self) -> Cost:
        """Make the index by which sessions are found by meaning; raises CommandFailed."""
        return run([self._program, "memory", "index", "--json"], self.env)

    def version(self) -> Cost:
        return run([self._program, "--version"], self.env)

    def search(self, query: str, limit: int = 20) -> Cost:
        # `--` because a query may begin with a dash
        return run(
            [self._program, "search", "--json", "--limit", str(limit), "--", query], self.env
        )

    def timed_search(self, query: str, times: int) -> Hits:
        cost = typical(times, lambda: self.search(query))
        found = msgspec.json.decode(cost.output, type=list[_Hit])
        return _hits(cost, [hit for hit in found if hit.type == "session"])


class Agentsview:
    """The Go binary inside the wheel, called directly: the wheel's Python wrapper only adds to
    its time."""

    # Its search leaves out children, one-shot and automated sessions unless asked; ours searches
    # everything.
    _EVERYTHING = "--include-children --include-one-shot --include-automated --limit 20 --json"
    _SERVE = "serve --no-browser --no-update-check --port 0"

    def __init__(self, program: Path, home: Path, scratch: Path) -> None:
        self.store = scratch / "agentsview"
        self.program = program
        self._env: Env = clean_env(home, scratch) | {
            "AGENTSVIEW_DATA_DIR": str(self.store),
            "AGENTSVIEW_NO_DAEMON": "1",
            "AGENTSVIEW_TELEMETRY_ENABLED": "0",
            "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
            "DO_NOT_TRACK": "1",
        }

    def sync(self, full: bool = False) -> Cost:
        return run([str(self.program), "sync", *(["--full"] if full else [])], self._env)

    def timed_search(self, query: str, times: int, daemon: Daemon, fts: bool) -> Hits:
        """The client's time and the daemon's: 0.46.1 refuses to search without one."""
        command = [str(self.program), "session", "search", query, *self._EVERYTHING.split()]
        command += ["--fts"] if fts else []
        before = _cpu_of(daemon.pid)
        cost = typical(times, lambda: run(command, self._env))
        # a clock tick of the daemon is 10 ms, so its share is an average (the warming run counts as
        # one)
        cost = replace(cost, cpu=cost.cpu + (_cpu_of(daemon.pid) - before) / (times + 1))
        return _hits(cost, msgspec.json.decode(cost.output, type=_Matches).matches or [])

    @contextmanager
    def daemon(self, *, watches: bool = False) -> Iterator[Daemon]:
        """A server on loopback that only answers: no sync, no watching; unless told to, as it
        does by itself."""
        self.store.mkdir(parents=True, exist_ok=True)
        log = self.store / "bench-serve.log"
        command = [str(self.program), *self._SERVE.split(), *([] if watches else ["--no-sync"])]
        with log.open("wb") as out:
            child = subprocess.Popen(
                command, env=self._env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        try:
            _await_text(log, b"listening at", child)
            start_cpu = _cpu_of(child.pid)
            _await_idle(child.pid)
            yield Daemon(child.pid, start_cpu, _ADDRESS.findall(log.read_text())[-1])
        finally:
            child.terminate()
            child.wait()


def _await_text(
    log: Path, text: bytes, child: subprocess.Popen[bytes], seconds: float = 60
) -> None:
    deadline = time.monotonic() + seconds
    while text not in log.read_bytes():
        if child.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("agentsview serve did not start")
        time.sleep(0.05)


def _await_idle(pid: int) -> None:
    """What a server still does after its start must not be charged to a search."""
    before, now = -1.0, _cpu_of(pid)
    while now > before:
        time.sleep(1)
        before, now = now, _cpu_of(pid)


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def find_whyfor() -> Path | None:
    program = Path(sys.executable).with_name("whyfor")
    return program if program.exists() else None


def find_agentsview() -> Path | None:
    """The binary, from this environment or one made for the benchmark; None when it cannot be
    installed."""
    for prefix in (Path(sys.prefix), _BENCH_VENV):
        if binary := _binary(prefix):
            return binary
    venv.create(_BENCH_VENV, with_pip=True)
    subprocess.run(
        [_BENCH_VENV / "bin/python", "-m", "pip", "install", "--quiet", _AGENTSVIEW], check=False
    )
    return _binary(_BENCH_VENV)


def _binary(prefix: Path) -> Path | None:
    return next(prefix.glob("lib/python*/site-packages/agentsview/bin/agentsview"), None)
