"""The real coding agents, run headless against a scripted model on loopback.

def test_it(agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel) -> None:
    scripted_model.add(Reply(Say("On it."), Call("shell", {"command": "ls"})), Say("That is all."))
    claude = Claude(agent_home, agent_repo, scripted_model)
    run = claude.run("What is here?")
    claude.resume(run.session_id, "And now?")
    assert "On it." in scripted_model.main_requests[-1].said("assistant")
"""

from .agent import AGENTS, ALL_AGENTS, Agent, Claude, Codex, Copilot, Gemini, OpenCode, Run
from .model import ScriptedModel
from .script import Call, Fail, Message, Reply, Request, Say, Think, Usage

__all__ = [
    "AGENTS",
    "ALL_AGENTS",
    "Agent",
    "Call",
    "Claude",
    "Codex",
    "Copilot",
    "Fail",
    "Gemini",
    "Message",
    "OpenCode",
    "Reply",
    "Request",
    "Run",
    "Say",
    "ScriptedModel",
    "Think",
    "Usage",
]
