"""One module per agent behind one Protocol: where it writes, how to read it."""

from __future__ import annotations

from backstory.agents.base import Agent
from backstory.agents.claude import AGENT as CLAUDE
from backstory.agents.codex import AGENT as CODEX
from backstory.agents.copilot import AGENT as COPILOT
from backstory.agents.gemini import AGENT as GEMINI
from backstory.agents.opencode import AGENT as OPENCODE

AGENTS: dict[str, Agent] = {
    "claude": CLAUDE,
    "codex": CODEX,
    "gemini": GEMINI,
    "copilot": COPILOT,
    "opencode": OPENCODE,
}
