"""One module per agent behind one Protocol: where it writes, how to read it."""

from __future__ import annotations

from backstory.agents import claude, codex, copilot, gemini, opencode
from backstory.agents.base import Agent

AGENTS: dict[str, Agent] = {
    "claude": claude.AGENT,
    "codex": codex.AGENT,
    "gemini": gemini.AGENT,
    "copilot": copilot.AGENT,
    "opencode": opencode.AGENT,
}
