"""What each agent's sessions cost to read, a home with all of them, and what those that are not
there cost."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from measure import Cost, clean_env, run
from peers import Whyfor
from report import Cell, Check, Report, Table, ratio

_HERE = Path(__file__).parent
_NOOPS = 15
# The ingest of a program that knows only the five agents that were there first.
_FEWER = """
import sys
from whyfor.agents import registered_agents, unregister
for name in registered_agents():
    if name not in ("claude", "codex", "gemini", "copilot", "opencode"):
        unregister(name)
from whyfor.__main__ import main
sys.exit(main(["ingest", "--json"]))
"""
_ALL = """
import sys
from whyfor.__main__ import main
sys.exit(main(["ingest", "--json"]))
"""


def agents(report: Report, scratch: Path, program: Path | None, sessions: int) -> None:
    if program is None:
        report.skip("whyfor is not installed beside this interpreter: no agent is measured")
        return
    names = _names(scratch, program)
    costs = {name: _first(scratch / f"agent {name}", program, sessions, [name]) for name in names}
    base = costs["claude"]
    rows: list[list[Cell]] = [
        [name, round(size, 1), round(cost.cpu, 2), round(cost.cpu / size, 2), _times(each, base)]
        for name, each in costs.items()
        for cost, size in [each]
    ]
    every, size = _first(scratch / "agent all", program, max(10, sessions // 8), names)
    rows.append(
        ["all at once", round(size, 1), round(every.cpu, 2), round(every.cpu / size, 2), ""]
    )
    worst = max((_times(each, base) or 0 for each in costs.values()), default=None)
    title = "Agents: the first ingest"
    note = f"{sessions} sessions of each, the same conversation in its own format; an empty home's "
    note += "ingest is taken off."
    columns = ["agent", "MB", "CPU s", "CPU s per MB", "against Claude Code"]
    limit = Check("an agent's ingest per MB, against Claude Code's", worst, 2.0)
    report.add(Table(title, columns, rows, note), limit)
    _noops(report, scratch / "agent noop", program, sessions)


def _names(scratch: Path, program: Path) -> list[str]:
    code = (
        "from whyfor.agents import AGENTS, IMPORTED, RECORDED; import json; "
        "print(json.dumps([n for n in AGENTS if n not in (*IMPORTED, *RECORDED)]))"
    )
    python = str(program.with_name("python"))
    done = run([python, "-c", code], clean_env(scratch, scratch))
    found: list[str] = json.loads(done.output)
    return found


def _first(folder: Path, program: Path, sessions: int, names: Sequence[str]) -> tuple[Cost, float]:
    """The better of two first ingests, without what starting costs, and the megabytes read."""
    home = folder / "home"
    home.mkdir(parents=True)
    made = run(
        [sys.executable, str(_HERE / "copies.py"), str(home), str(sessions), *names],
        clean_env(folder, folder),
    )
    empty = folder / "empty"
    empty.mkdir()
    idle = _ingest(empty, program, folder / "idle")
    cost = min(
        (_ingest(home, program, folder / f"store{number}") for number in range(2)),
        key=lambda each: each.cpu,
    )
    less = Cost(max(0.01, cost.cpu - idle.cpu), cost.wall, cost.peak_mb)
    return less, float(json.loads(made.output))


def _ingest(home: Path, program: Path, scratch: Path) -> Cost:
    ours = Whyfor(program, home, scratch)
    del ours.env["XDG_DATA_HOME"]  # some agents have their data there
    return ours.ingest()


def _times(each: tuple[Cost, float], base: tuple[Cost, float]) -> float | None:
    found = ratio(each[0].cpu / each[1], base[0].cpu / base[1])
    return None if found is None else round(found, 2)


def _noops(report: Report, folder: Path, program: Path, sessions: int) -> None:
    """One agent is used; in turns, with all agents known and with five."""
    home = folder / "home"
    home.mkdir(parents=True)
    run(
        [sys.executable, str(_HERE / "copies.py"), str(home), str(sessions), "claude"],
        clean_env(folder, folder),
    )
    ours = Whyfor(program, home, folder / "store")
    del ours.env["XDG_DATA_HOME"]
    ours.ingest()
    costs: dict[str, list[float]] = {"all": [], "five": []}
    for _ in range(_NOOPS):
        for name, code in (("all", _ALL), ("five", _FEWER)):
            costs[name].append(run([ours.python, "-c", code], ours.env).cpu)
    best = {name: min(found) for name, found in costs.items()}
    rows: list[list[Cell]] = [
        ["all agents known", round(best["all"], 3)],
        ["five agents known", round(best["five"], 3)],
    ]
    title = "Agents: an ingest that finds nothing new, where only Claude Code is used"
    report.add(
        Table(title, ["", "CPU s"], rows, f"The best of {_NOOPS} each, in turns."),
        Check("no-op ingest with all agents known", ratio(best["all"], best["five"]), 1.05),
    )
