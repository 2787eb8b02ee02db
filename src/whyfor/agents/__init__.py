"""One package per agent, all behind one Protocol: where it writes, how to read it, its facts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from whyfor.agents.base import Agent
from whyfor.model.errors import NotFound


class AgentEntry(NamedTuple):
    """An agent's package, and how to tell without it whether the agent may have files here."""

    package: str
    traces: tuple[tuple[str, str], ...] = ()
    """A variable that names a folder, and the folder below the user's home where it is not set; the
    variable may be empty. None at all: the package is always asked."""


_DATA = "XDG_DATA_HOME"
_NOWHERE = (("", ""),)
_PACKAGES: dict[str, AgentEntry] = {
    "claude": AgentEntry("whyfor.agents.claude"),
    "codex": AgentEntry("whyfor.agents.codex"),
    "gemini": AgentEntry("whyfor.agents.gemini"),
    "copilot": AgentEntry("whyfor.agents.copilot"),
    "opencode": AgentEntry("whyfor.agents.opencode"),
    "kilo": AgentEntry("whyfor.agents.kilo", ((f"{_DATA}/kilo", ".local/share/kilo"),)),
    "qwen": AgentEntry("whyfor.agents.qwen", (("QWEN_RUNTIME_DIR", ""), ("QWEN_HOME", ".qwen"))),
    "pi": AgentEntry(
        "whyfor.agents.pi", (("PI_CODING_AGENT_SESSION_DIR", ""), ("PI_CODING_AGENT_DIR", ".pi"))
    ),
    "droid": AgentEntry("whyfor.agents.droid", (("", ".factory"),)),
    "cline": AgentEntry(
        "whyfor.agents.cline",
        (("CLINE_SESSION_DATA_DIR", ""), ("CLINE_DATA_DIR", ""), ("CLINE_DIR", ".cline")),
    ),
    "grok": AgentEntry("whyfor.agents.grok", (("GROK_HOME", ".grok"),)),
    "kimi": AgentEntry(
        "whyfor.agents.kimi", (("KIMI_CODE_HOME", ".kimi-code"), ("KIMI_SHARE_DIR", ".kimi"))
    ),
    "goose": AgentEntry(
        "whyfor.agents.goose",
        (("GOOSE_PATH_ROOT", ""), (f"{_DATA}/goose", ".local/share/goose")),
    ),
    "crush": AgentEntry(
        "whyfor.agents.crush",
        (("CRUSH_GLOBAL_DATA", ""), (f"{_DATA}/crush", ".local/share/crush")),
    ),
    "vibe": AgentEntry("whyfor.agents.vibe", (("VIBE_HOME", ".vibe"),)),
    "openhands": AgentEntry(
        "whyfor.agents.openhands",
        (("OPENHANDS_CONVERSATIONS_DIR", ""), ("OPENHANDS_PERSISTENCE_DIR", ".openhands")),
    ),
    "continue": AgentEntry("whyfor.agents.continue_cli", (("CONTINUE_GLOBAL_DIR", ".continue"),)),
    "hermes": AgentEntry("whyfor.agents.hermes", (("HERMES_HOME", ".hermes"),)),
    # What `whyfor run` records, below Whyfor's own folder.
    "terminal": AgentEntry(
        "whyfor.agents.terminal",
        (
            ("WHYFOR_HOME/recordings", ""),
            (f"{_DATA}/whyfor/recordings", ".local/share/whyfor/recordings"),
            ("", "Library/Application Support/whyfor/recordings"),
        ),
    ),
    # What only an import brings has no folder here.
    "chatgpt": AgentEntry("whyfor.agents.imports.chatgpt", _NOWHERE),
    "claude-web": AgentEntry("whyfor.agents.imports.claude_web", _NOWHERE),
    "specstory": AgentEntry("whyfor.agents.imports.specstory", _NOWHERE),
    "cursor": AgentEntry("whyfor.agents.imports.cursor", _NOWHERE),
}
_loaded: dict[str, Agent] = {}
_names = tuple(_PACKAGES)


class UnknownAgent(NotFound, KeyError):
    """No agent has this name: its definition is gone, or this version does not know it yet."""

    def __init__(self, name: str) -> None:
        hint = "Bring its definition back, or upgrade Whyfor; what is stored of it stays."
        super().__init__(f"no agent is called {name!r} here", hint)


class _Registry(Mapping[str, Agent]):
    """Agents by name. A package is imported when its agent is needed, so that most commands import
    none."""

    def __getitem__(self, name: str) -> Agent:
        agent = _loaded.get(name)
        if agent is None:
            if name not in _PACKAGES:
                raise UnknownAgent(name)
            agent = _loaded[name] = import_module(_PACKAGES[name].package).AGENT
        return agent

    def __contains__(self, name: object) -> bool:
        return name in _PACKAGES

    def __iter__(self) -> Iterator[str]:
        return iter(_PACKAGES)

    def __len__(self) -> int:
        return len(_PACKAGES)


AGENTS: Mapping[str, Agent] = _Registry()
IMPORTED = ("chatgpt", "claude-web", "specstory", "cursor")
"""Programs that are no coding agents here: their conversations are imported."""
RECORDED = ("terminal",)
"""Terminals that Whyfor itself recorded, whatever ran in them."""
USUAL = ("claude", "codex", "gemini", "copilot", "opencode")
"""Agents that lists name even where they never ran; the others only where they did."""


def left_traces(name: str, home: Path, env: Mapping[str, str]) -> bool:
    """Return whether an agent may have files here: one look at each folder, and no import."""
    traces = _PACKAGES[name].traces
    return not traces or any(_is_there(trace, home, env) for trace in traces)


def _is_there(trace: tuple[str, str], home: Path, env: Mapping[str, str]) -> bool:
    variable, _, below = trace[0].partition("/")
    told = env.get(variable) if variable else None
    if told:
        place = os.path.join(told, below) if below else told  # noqa: PTH118 - called for each agent
    elif trace[1]:
        place = os.path.join(home, trace[1])  # noqa: PTH118
    else:
        return False
    return os.path.exists(place)  # noqa: PTH110


def registered_agents() -> tuple[str, ...]:
    """Return the names of all agents; the same object until one is added or removed."""
    return _names


def register(name: str, package: str) -> None:
    """Add an agent: `package` is the import path of a module with an `AGENT`."""
    global _names
    _PACKAGES[name] = AgentEntry(package)
    _names = tuple(_PACKAGES)


def register_agent(agent: Agent) -> None:
    """Add an agent that has no package of its own."""
    register(agent.name, "")
    _loaded[agent.name] = agent


def unregister(name: str) -> None:
    global _names
    del _PACKAGES[name]
    _loaded.pop(name, None)
    _names = tuple(_PACKAGES)
