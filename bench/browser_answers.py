"""How long it takes from an answer in the browser until the real Claude Code runs the tool."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median, quantiles

from tests.agents import Reply, Say, ScriptedModel
from tests.agents.conftest import make_repository
from tests.agents.install import missing_tool
from tests.agents.test_rules import turn_on
from tests.agents.test_status import in_terminal
from tests.agents.test_stories import Desk, shell
from tests.server.test_approvals import Office
from tests.server.wire import served
from whyfor import config
from whyfor.service.ingest import ingest

from report import Cell, Check, Report, Table

_TARGET = 500  # ms
_NAME = "browser answer → tool runs, p95"


def browser_answers(report: Report, scratch: Path, rounds: int) -> None:
    """Answer requests of one session, one after another, and look for what the tool makes."""
    if missing := missing_tool():
        report.skip(f"{missing} is not installed: no answers from the browser")
        return
    scratch.mkdir(parents=True)
    home, repo = scratch / "home", scratch / "repo"
    home.mkdir()
    make_repository(repo)
    with ScriptedModel() as model:
        desk = Desk(home, repo, model)
        desk.git("commit", "-q", "--allow-empty", "-m", "root")
        took = _measure(desk, rounds)
    p95 = quantiles(took, n=20)[-1]
    note = (
        f"{rounds} requests of one session of the real Claude Code in a terminal: from the form "
        "that is sent to the file that the command makes."
    )
    rows: list[list[Cell]] = [["Claude Code", median(took), p95, max(took)]]
    report.add(
        Table("Answer from the browser", ["", "p50 ms", "p95 ms", "longest ms"], rows, note),
        Check(_NAME, p95, _TARGET, " ms"),
    )


def _measure(desk: Desk, rounds: int) -> list[float]:
    settings = config.load({**desk.env, "WHYFOR_HOME": str(desk.kept)})
    ingest(settings)
    took = []
    with served(settings, beside=True) as server:
        turn_on(desk, server.port)
        office = Office(desk.repo, server, settings)
        with in_terminal(desk) as terminal:
            terminal.see("for shortcuts")
            for number in range(rounds):
                desk.model.add(shell(f"touch q{number}.txt"), Reply(Say(f"It sits {number}.")))
                terminal.enter(f"Touch {number}")
                terminal.see("Do you want to")
                path, digest = office.request()
                begun = time.perf_counter()
                office.post(path, {"word": "allow", "digest": digest})
                _await_file(desk.repo / f"q{number}.txt")
                took.append((time.perf_counter() - begun) * 1e3)
                terminal.see(f"It sits {number}.")
                terminal.see("for shortcuts")  # the turn is over
            terminal.patience = 1.0  # it is ended, whether or not it would leave by itself
    return took


def _await_file(path: Path) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > end:
            raise RuntimeError(f"{path.name} was not made")
        time.sleep(0.001)
