"""One package per agent, all behind one Protocol: where it writes, how to read it, its facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from whyfor.agents.base import Agent

_PACKAGES = {
    "claude": "whyfor.agents.claude",
    "codex": "whyfor.agents.codex",
    "gemini": "whyfor.agents.gemini",
    "copilot": "whyfor.agents.copilot",
    "opencode": "whyfor.agents.opencode",
}
_loaded: dict[str, Agent] = {}
_names = tuple(_PACKAGES)


class _Registry(Mapping[str, Agent]):
    """Agents by name. A package is imported when its agent is needed, so that most commands import
    none."""

    def __getitem__(self, name: str) -> Agent:
        agent = _loaded.get(name)
        if agent is None:
            agent = _loaded[name] = import_module(_PACKAGES[name]).AGENT
        return agent

    def __contains__(self, name: object) -> bool:
        return name in _PACKAGES

    def __iter__(self) -> Iterator[str]:
        return iter(_PACKAGES)

    def __len__(self) -> int:
        return len(_PACKAGES)


AGENTS: Mapping[str, Agent] = _Registry()


def registered_agents() -> tuple[str, ...]:
    """Return the names of all agents; the same object until one is added or removed."""
    return _names


def register(name: str, package: str) -> None:
    """Add an agent: `package` is the import path of a module with an `AGENT`."""
    global _names
    _PACKAGES[name] = package
    _names = tuple(_PACKAGES)


def unregister(name: str) -> None:
    global _names
    del _PACKAGES[name]
    _loaded.pop(name, None)
    _names = tuple(_PACKAGES)
