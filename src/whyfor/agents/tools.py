"""What tools do and what their arguments are called: from the agent's facts, else from those of all
agents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from whyfor.agents import AGENTS, registered_agents
from whyfor.agents.facts import AgentFacts, ArgumentNames, kinds
from whyfor.model.tools import MCP, ToolKind

# Tools of no agent that is read here: of forks, of editors, of MCP servers that use bare names.
_FOREIGN = kinds(
    shell="terminal",
    read="cat open_file",
    search="search find file_search",
    edit="update",
    write="create_file",
    web="fetch webfetch_tool",
    plan="plan",
    todo="todo",
)
_BACKGROUND = ("Command running in background", "Process running with session ID")
_FOREIGN_ARGUMENTS = ArgumentNames(
    path=("relative_path", "target_file"),
    folder=("cwd",),
    old=("old_text", "oldText"),
    new=("new_text", "newText", "body"),
    whole=("contents",),
    patch=("patch",),
)


def tool_kind(name: str, agent: str = "", given: Any = None) -> ToolKind:
    """Return what a tool does. Some tools need the arguments of the call (`given`) to tell."""
    lowered = name.lower()
    if lowered.startswith(MCP):
        return "mcp"
    command = given.get("command") if isinstance(given, dict) else None
    for facts in _facts(agent):
        by_command = facts.tool_commands.get(lowered, {})
        if isinstance(command, str) and command in by_command:
            return by_command[command]
        if lowered in facts.tools:
            return facts.tools[lowered]
    return _FOREIGN.get(lowered, "other")


def is_of_an_agent(name: str) -> bool:
    """Return whether one of the agents has a tool of this name itself."""
    return name.lower() in _tools(registered_agents())


def names_of(kind: ToolKind) -> frozenset[str]:
    """Return the names of all tools of a kind, in lower case."""
    tables = (_tools(registered_agents()), _FOREIGN)
    return frozenset(name for table in tables for name, each in table.items() if each == kind)


def argument_names(agent: str = "") -> ArgumentNames:
    """Return the argument names of an agent first, then those of all others."""
    return _argument_names(agent, registered_agents())


def command_of(given: Any) -> str:
    """Return the command that a call of a shell tool runs, without the shell around it."""
    if isinstance(given, dict):
        names = argument_names().command
        given = next((given[name] for name in names if name in given), "")
    if isinstance(given, list):
        parts = [str(part) for part in given]
        return parts[-1] if len(parts) == 3 and parts[1] in ("-c", "-lc") else " ".join(parts)
    return given if isinstance(given, str) else ""


def is_in_background(given: Any, result: str) -> bool:
    """Return whether a command went on when its call returned: how it ended is not known."""
    asked = isinstance(given, dict) and given.get("run_in_background") is True
    return asked or result.startswith(_BACKGROUND)


def hook_kind(event: str, agent: str = "") -> str | None:
    """Return what a hook event says about a session's status; None if it is unknown."""
    lowered = event.lower()  # a hook may come from the settings of another agent
    for facts in _facts(agent):
        for name, kind in facts.hook_events.items():
            if name.lower() == lowered:
                return kind
    return None


def notice_kind(notice: str, agent: str = "") -> str | None:
    """Return what a kind of notification says about a session's status."""
    found = (facts.notices.get(notice) for facts in _facts(agent))
    return next((kind for kind in found if kind), None)


def process_kind(state: str, waiting_for: str, agent: str = "") -> str | None:
    """Return what an agent's process list says about a session's status."""
    exact = f"{state} ({waiting_for})"
    for facts in _facts(agent):
        states = facts.process_states
        if exact in states or state in states:
            return states.get(exact) or states[state]
    return None


def ends_with_turn(started: Mapping[str, object], agent: str) -> bool:
    """Whether the start of a session says that its program ends when the turn does."""
    own = AGENTS[agent].facts.single_turn if agent in AGENTS else {}
    return any(started.get(name) == value for name, value in own.items())


def decider_of(word: str, agent: str) -> str:
    """Return who decided on a call, by the word of the agent's telemetry; unknown if it is none of
    its words."""
    known = AGENTS[agent].facts.decision_sources if agent in AGENTS else {}
    lowered = {name.lower(): who for name, who in known.items()}
    return lowered.get(word.lower(), "unknown")


def was_denied(result: Mapping[str, object] | None, text: str) -> bool:
    """Whether a call was denied, by the person or by a rule, from the data and text of its
    result."""
    data = result or {}
    return bool(data.get("rejected")) or (
        bool(data.get("failed")) and text.startswith(_refusals(registered_agents()))
    )


def refused_by(text: str, agent: str) -> str | None:
    """Return who denied a call, by the beginning of its result: terminal, agent or nobody; None if
    it does not say."""
    for facts in _facts(agent):
        for beginning, who in facts.refused_by.items():
            if text.startswith(beginning):
                return who
    return None


def _facts(agent: str) -> tuple[AgentFacts, ...]:
    return _ordered(agent, registered_agents())


# The caches depend on who is registered.


@cache
def _ordered(agent: str, registered: tuple[str, ...]) -> tuple[AgentFacts, ...]:
    """Return the agent's own facts, then those of the others."""
    names = sorted(registered, key=lambda name: name != agent)
    return tuple(AGENTS[name].facts for name in names)


@cache
def _tools(registered: tuple[str, ...]) -> Mapping[str, ToolKind]:
    found: dict[str, ToolKind] = {}
    for facts in reversed(_ordered("", registered)):
        found |= facts.tools
    return found


@cache
def _refusals(registered: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for facts in _ordered("", registered) for text in facts.refusals)


@cache
def _argument_names(agent: str, registered: tuple[str, ...]) -> ArgumentNames:
    tables = [facts.arguments for facts in _ordered(agent, registered)]
    tables.append(_FOREIGN_ARGUMENTS)
    merged = {
        field: tuple(dict.fromkeys(name for table in tables for name in getattr(table, field)))
        for field in ArgumentNames.__struct_fields__
    }
    return ArgumentNames(**merged)
