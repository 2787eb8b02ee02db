"""The definitions in Whyfor's directory, and the agents that they add."""

from __future__ import annotations

from pathlib import Path

from whyfor.agents import AGENTS, register_agent, unregister
from whyfor.agents.declared.agent import DeclaredAgent
from whyfor.agents.declared.definition import AgentDefinition, read_definition
from whyfor.model.errors import BadInput

_added: dict[str, AgentDefinition] = {}
_problems: list[BadInput] = []


def use_definitions(folder: Path) -> None:
    """Make the agents known that the definitions in a folder describe, and forget those of an
    earlier call. A wrong definition adds nothing; `definition_problems` returns why."""
    for name in _added:
        unregister(name)
    _added.clear()
    _problems.clear()
    for path in sorted(folder.glob("*.toml")):
        try:
            _add(read_definition(path), path)
        except BadInput as problem:
            _problems.append(problem)


def _add(definition: AgentDefinition, path: Path) -> None:
    if definition.name in AGENTS:
        raise BadInput(
            f"{path.name}: an agent is called {definition.name!r} already", "Choose another name."
        )
    register_agent(DeclaredAgent(definition))
    _added[definition.name] = definition


def definition_problems() -> list[BadInput]:
    """Return what was wrong with definitions at the last look."""
    return list(_problems)


def declared_names() -> list[str]:
    """Return the names of the agents that definitions added."""
    return list(_added)
