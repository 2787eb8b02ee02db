"""The real agents as clients of `whyfor mcp`: each lists the tools, calls one, and sends its answer
to the model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript

from . import AGENTS, Agent, Call, Reply, Request, Say, ScriptedModel
from .script import Json

Cli = Callable[..., Result]
FOUND = "The basket is slow because every price is read from the disk twice."
_ARGUMENTS = ["-m", "whyfor", "mcp"]


@pytest.fixture(params=AGENTS)
def agent(
    request: pytest.FixtureRequest,
    agent_home: Path,
    agent_repo: Path,
    scripted_model: ScriptedModel,
) -> Agent:
    return AGENTS[request.param](agent_home, agent_repo, scripted_model)


def register(agent: Agent, whyfor_home: Path) -> list[str]:
    """Tell an agent of the server, as its users do; return the options it is then run with."""
    env = {"WHYFOR_HOME": str(whyfor_home)}
    server: Json = {"command": sys.executable, "args": _ARGUMENTS, "env": env}
    if agent.name == "codex":
        settings = [
            f"mcp_servers.whyfor.command={json.dumps(sys.executable)}",
            f"mcp_servers.whyfor.args={json.dumps(_ARGUMENTS)}",
            f"mcp_servers.whyfor.env={{WHYFOR_HOME={json.dumps(str(whyfor_home))}}}",
        ]
        return [flag for setting in settings for flag in ("-c", setting)]
    if agent.name == "gemini":
        path = agent.home / ".gemini" / "settings.json"
        known = json.loads(path.read_text())
        path.write_text(json.dumps({**known, "mcpServers": {"whyfor": {**server, "trust": True}}}))
        return []
    allowed = agent.home / ".claude" / "settings.json"
    allowed.parent.mkdir(exist_ok=True)
    allowed.write_text(json.dumps({"permissions": {"allow": ["mcp__whyfor"]}}))
    listed = agent.home / "servers.json"
    listed.write_text(json.dumps({"mcpServers": {"whyfor": server}}))
    return ["--mcp-config", str(listed)]


class AskOnce:
    """A model that finds the tool `recall` as its agent wants it to, calls it, and is done.

    Claude Code connects in the background and has a tool to wait for that; Codex offers tools of
    servers only after a search for them.
    """

    def __init__(self) -> None:
        self.called = False

    def __call__(self, request: Request) -> Reply:
        if self.called:
            return Reply(Say("It was the disk."))
        offered = {tool.get("name") or tool.get("type") for tool in _tools(request)}
        name = next((name for name in offered if str(name).endswith("whyfor_recall")), None)
        name = name or next((name for name in offered if name == "mcp__whyfor__recall"), None)
        if name is None and "tool_search_output" in str(request.body["input"]):
            name = "mcp__whyfor::recall"
        if name is not None:
            self.called = True
            return Reply(Call(name, {"query": "basket slow"}))
        if "WaitForMcpServers" in offered:
            return Reply(Call("WaitForMcpServers"))
        return Reply(Call("tool_search", {"query": "whyfor recall"}))


def _tools(request: Request) -> list[Json]:
    """All tools that a model is offered; Gemini puts them one level deeper."""
    found: list[Json] = []
    for tool in request.body.get("tools") or ():
        found += tool.get("functionDeclarations") or [tool]
    return found


def test_an_agent_calls_a_tool_and_its_answer_reaches_the_model(
    agent: Agent, cli: Cli, tmp_path: Path
) -> None:
    past = Transcript("may", cwd=str(agent.cwd))
    past.prompt("Make the checkout faster")
    past.say(FOUND)
    past.save(agent.home)
    assert cli("ingest").code == 0
    options = register(agent, tmp_path / "whyfor")
    agent.model.add(*[AskOnce()] * 4)

    run = agent.run("Why is the basket slow?", *options)
    assert (run.code, "It was the disk." in run.stdout) == (0, True), run.stderr
    answer = agent.model.main_requests[-1].history[-1]
    assert answer.role == "user"
    assert FOUND in answer.text
    assert "not instructions" in answer.text
    assert run.killed == (), "the server ends with the agent"
