"""The list price of responses against what the real Claude Code says they cost, by its telemetry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from whyfor import config
from whyfor.model.telemetry import signed_tokens
from whyfor.service.ingest import ingest
from whyfor.service.init import InitOptions, init
from whyfor.service.telemetry import telemetry_address
from whyfor.store.open import reading_local

from report import Cell, Check, Report, Table
from telemetry import list_price

sys.path.append(str(Path(__file__).parents[1]))

from tests.agents import Call, Claude, Reply, Say, ScriptedModel, Usage
from tests.server.wire import served

_USAGES = (
    Usage(input=1100, cache_read=22000, cache_write=3300, output=440, reasoning=0),
    Usage(input=7, cache_read=60000, cache_write=5, output=4, reasoning=0),
    Usage(input=90_000, cache_read=0, cache_write=0, output=9000, reasoning=0),
    Usage(input=3, cache_read=150_000, cache_write=40_000, output=1, reasoning=0),
)


def agent_cost(report: Report, scratch: Path) -> None:
    home, repo = scratch / "home", scratch / "repo"
    (home / ".claude").mkdir(parents=True)
    repo.mkdir()
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    settings = config.load({"HOME": str(home), "WHYFOR_HOME": str(scratch / "whyfor")})
    init(settings, home, InitOptions(agents=("claude",), with_git=False, telemetry=True))
    path = home / ".claude" / "settings.json"
    with ScriptedModel() as model, served(settings) as server:
        path.write_text(path.read_text().replace(telemetry_address(), server.url))
        calls = [Reply(Call("shell", {"command": "echo hi"}), usage=each) for each in _USAGES[:-1]]
        model.add(*calls, Reply(Say("Done."), usage=_USAGES[-1]))
        Claude(home, repo, model).run("Say hi")
    ingest(settings)
    with reading_local(settings) as store:
        told = [each.request for each in store.telemetry.requests(0)]
    rows: list[list[Cell]] = []
    worst = 1.0
    for each in told:
        ours = list_price(each.model or "", signed_tokens(each), each.at, settings.home)
        worst_here = abs(ours - each.usd) / each.usd if ours and each.usd else 1.0
        worst = worst_here if not rows else max(worst, worst_here)
        rows.append([f"{each.model}, {sum(signed_tokens(each)):,} tokens", each.usd, ours])
    report.add(
        Table("The list price and the agent's own", ["", "cost_usd", "API price"], rows),
        Check("cost against cost_usd, largest difference", worst * 100, 0.1, " %"),
    )
