"""What the monitor would have told of a session that a real agent left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Result

from . import Call, Claude, Fail, Reply, ScriptedModel

Cli = Callable[..., Result]


def test_a_plan_that_is_used_up_in_the_middle_of_the_work_is_told(
    agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel, cli: Cli
) -> None:
    claude = Claude(agent_home, agent_repo, scripted_model)
    refused = Fail(400, "Your credit balance is too low to access the API.")
    scripted_model.add(Reply(Call("shell", {"command": "true"})), refused)
    claude.run("Count the marsupials")
    assert cli("ingest").code == 0
    told = json.loads(cli("attention", "--replay", "--json").out)
    assert told["sessions"] == 1
    (firing,) = told["firings"]
    assert (firing["cause"], firing["level"]) == ("limit", "act")  # nobody sits before `-p`
    assert "redit balance is too low" in firing["evidence"]
    assert firing["command"].startswith("whyfor handoff claude:")
