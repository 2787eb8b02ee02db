"""What an agent waits for: the start of `whyfor mcp` up to its list of tools, over a bare interpreter
and over the official SDK, and the time of a `recall` in a large store."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from report import Cell, Check, Report, Table

QUERIES = (
    "retry with backoff",
    "why does the login fail",
    "database migration",
    "race condition in the cache",
    "flaky test",
    "invoice rounding",
    "timeout",
    "parser error handling",
    "deploy script",
    "memory leak worker",
)
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
_LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
_PEER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("peer")
@server.tool()
def recall(query: str) -> str:
    return query
server.run("stdio")
"""


class Server:
    """A server that is asked line by line."""

    def __init__(self, command: list[str], env: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=dict(env))

    def ask(self, message: Mapping[str, Any]) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


def _cpu_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def start_up(command: list[str], env: Mapping[str, str]) -> float:
    """Return the CPU seconds from the start of a server to its list of tools and its end."""
    before = _cpu_children()
    server = Server(command, env)
    server.ask(_INITIALIZE)
    assert server.ask(_LIST)["result"]["tools"]
    server.close()
    return _cpu_children() - before


def bare() -> float:
    before = _cpu_children()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return _cpu_children() - before


def _spent(process: int) -> float:
    """Return the CPU seconds of a running process, to the nanosecond; Linux says so."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def recall_times(env: Mapping[str, str], rounds: int) -> list[float]:
    """Return the CPU seconds of each warm `recall`, over all projects."""
    server = Server([sys.executable, "-m", "whyfor", "mcp"], env)
    server.ask(_INITIALIZE)
    taken = []
    for number in range(rounds + 1):
        for query in QUERIES:
            arguments = {"query": query, "all": True}
            params = {"name": "recall", "arguments": arguments}
            began = _spent(server.process.pid)
            found = server.ask(
                {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
            )
            if number:  # the first round warms up
                taken.append(_spent(server.process.pid) - began)
            assert "isError" not in found["result"], found
    server.close()
    return taken


def mcp_server(report: Report, store: Path | None, rounds: int) -> None:
    """Measure the start of the server, and `recall` in a store if one is given."""
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HOME": home, "WHYFOR_HOME": str(store or Path(home) / "w")}
        ours = [sys.executable, "-m", "whyfor", "mcp"]
        peer = [sys.executable, "-c", _PEER]
        least = min(bare() for _ in range(rounds))
        own = min(start_up(ours, env) for _ in range(rounds))
        sdk = min(start_up(peer, env) for _ in range(3))
        taken = sorted(recall_times(env, rounds)) if store else []
    rows: list[list[Cell]] = [
        ["python -c pass", least * 1e3, 1.0],
        ["whyfor mcp", own * 1e3, own / least],
        ["the official SDK", sdk * 1e3, sdk / least],
    ]
    note = "CPU time from the start to the list of tools and the end; least of several."
    report.add(
        Table("MCP: the start of a server", ["", "CPU ms", "× bare"], rows, note),
        Check("whyfor mcp to its list of tools / bare interpreter", own / least, 7),
    )
    if taken:
        worst = taken[int(len(taken) * 0.95)] * 1e3
        found: list[list[Cell]] = [["recall", len(taken), statistics.median(taken) * 1e3, worst]]
        columns = ["", "calls", "CPU ms p50", "p95"]
        report.add(
            Table("MCP: an answer", columns, found, "Warm, over all projects of one home."),
            Check("recall, CPU p95", worst, 150, " ms"),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, nargs="?", help="a WHYFOR_HOME with many sessions")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    mcp_server(Report(), options.store, options.rounds)


if __name__ == "__main__":
    main()
