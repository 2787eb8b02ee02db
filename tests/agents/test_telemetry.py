"""The real agents send their telemetry, and it becomes costs and decisions of their sessions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.server.wire import served
from whyfor import config
from whyfor.model.telemetry import TELEMETRY, TelemetryRequest
from whyfor.service.ingest import ingest
from whyfor.service.init import InitOptions, init, uninstall
from whyfor.store.open import reading_local

from . import AGENTS, Agent, Call, Reply, Say, ScriptedModel, Usage

USAGES = (
    Usage(input=1100, cache_read=22000, cache_write=3300, output=440, reasoning=55),
    Usage(input=7, cache_read=60000, cache_write=5, output=4, reasoning=3),
)


@pytest.fixture(params=AGENTS)
def agent(
    request: pytest.FixtureRequest,
    agent_home: Path,
    agent_repo: Path,
    scripted_model: ScriptedModel,
) -> Agent:
    return AGENTS[request.param](agent_home, agent_repo, scripted_model)


def settings_file(agent: Agent, home: Path) -> Path:
    names = {
        "claude": ".claude/settings.json",
        "codex": ".codex/config.toml",
        "gemini": ".gemini/settings.json",
    }
    return home / names[agent.name]


def test_what_an_agent_sends_is_joined_to_its_session(agent: Agent, agent_home: Path) -> None:
    settings = config.load()
    path = settings_file(agent, agent_home)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes() if path.exists() else None
    init(settings, agent_home, InitOptions(agents=(agent.name,), with_git=False, telemetry=True))
    with served(settings) as server:
        path.write_text(re.sub(r"127\.0\.0\.1:7717", f"127.0.0.1:{server.port}", path.read_text()))
        agent.model.add(
            Reply(Call("shell", {"command": "echo hello"}), usage=USAGES[0]),
            Reply(Say("Done."), usage=USAGES[1]),
        )
        run = agent.run("Say hello in the shell")
        path.write_text(re.sub(rf"127\.0\.0\.1:{server.port}", "127.0.0.1:7717", path.read_text()))
    ingest(settings)
    with reading_local(settings) as library:
        session = library.sessions.find(run.session_id, agent.name)
        told = [each.request for each in library.telemetry.requests(0)]
        rows = library.telemetry.responses(agent.name, run.session_id)
    mine = [each for each in told if each.session_id == run.session_id]
    assert len(mine) >= 2, told
    _check_requests(agent, mine)
    assert len(rows) >= 2 and session.tokens.output
    if agent.name == "claude":  # its own figure counts, also where list prices are known
        assert session.tokens.cost == round(sum(each.usd or 0 for each in mine) * 1e9)
    spooled = b"".join(path.read_bytes() for path in (settings.home / "spool").iterdir())
    for line in spooled.splitlines():
        if TELEMETRY.encode() in line:
            assert b"hello" not in line
    uninstall(settings, agent_home, everything=True)
    left = path.read_bytes() if path.exists() else None
    # Codex writes there by itself that it trusts the folder.
    assert left == before or (agent.name == "codex" and left and b"otel" not in left)


def _check_requests(agent: Agent, told: list[TelemetryRequest]) -> None:
    """Every number is the scripted one; what includes reasoning differs by agent."""
    spent = {(each.cache_read, each.model is not None) for each in told}
    assert {(usage.cache_read, True) for usage in USAGES} <= spent
    assert all(bool(each.usd) == (agent.name == "claude") for each in told)
    assert all((each.duration_ms is None) == (agent.name == "codex") for each in told)
