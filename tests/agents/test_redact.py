"""A redacted session is still the agent's: restored from what was ingested, and resumed by the
real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from whyfor.privacy.samples import expand
from whyfor.service.restore import RestoredSource

from . import AGENTS, Agent, Call, Reply, Say, ScriptedModel
from .test_restore import bring_back, in_order, resumed, whole

Cli = Callable[..., Result]
TOKEN = expand("ghp_{A36}")
PASSWORD = expand("{A24}")


@pytest.fixture(params=["claude", "codex"])
def agent(
    request: pytest.FixtureRequest,
    agent_home: Path,
    agent_repo: Path,
    scripted_model: ScriptedModel,
) -> Agent:
    return AGENTS[request.param](agent_home, agent_repo, scripted_model)


def test_a_redacted_session_is_resumed_without_its_secrets(agent: Agent, cli: Cli) -> None:
    write = Call(
        "write", {"path": agent.cwd / f"{TOKEN}.txt", "content": f"DB_PASSWORD={PASSWORD}\n"}
    )
    agent.model.add(
        Reply(
            Say(f"Writing {TOKEN} down."),
            write,
            Call("shell", {"command": f"echo {PASSWORD} {TOKEN}"}),
        )
    )
    agent.model.add(Say(f"It is {PASSWORD}."))
    run = agent.run(f"Plant the fern with {TOKEN}, and use the password {PASSWORD}")
    assert run.code == 0
    before = [json.loads(line) for line in run.transcript.read_text().split("\n") if line]
    for path in run.files:
        assert cli("redact", path, "--output", path).code == 0
        assert not [value for value in (TOKEN, PASSWORD) if value in path.read_text()]
    after = [json.loads(line) for line in run.transcript.read_text().split("\n") if line]
    assert [sorted(record) for record in before] == [sorted(record) for record in after]

    assert cli("ingest").code == 0
    assert cli("show", run.session_id, "--json").json["session"]["unparsed"] == 0
    made = bring_back(RestoredSource(agent.name, run.session_id), into=agent)
    sent = whole(resumed(agent, made.session_id))
    assert in_order(
        sent, "Plant the fern with [REDACTED:github-token#1]", "echo [REDACTED:", "Where were we?"
    )
    assert not [value for value in (TOKEN, PASSWORD) if value in sent]
