"""One module per agent behind one Protocol: where it writes, how to read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from whyfor.agents.base import Agent

NAMES = ("claude", "codex", "gemini", "copilot", "opencode")


class _Registry(Mapping[str, Agent]):
    """Agents by name; a module is imported when its agent is asked for, so that reading commands
    import none."""

    def __getitem__(self, name: str) -> Agent:
        if name not in NAMES:
            raise KeyError(name)
        agent: Agent = import_module(f"whyfor.agents.{name}").AGENT
        return agent

    def __contains__(self, name: object) -> bool:
        return name in NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


AGENTS: Mapping[str, Agent] = _Registry()
