"""What faces show of agents: their names, titles, marks and colours."""

from __future__ import annotations

from whyfor.agents import AGENTS
from whyfor.model.text import label

AGENT_LIST = ", ".join(AGENTS)
AGENT_CHOICE = " or ".join(AGENT_LIST.rsplit(", ", 1))  # for help texts


def agent_names() -> list[str]:
    return list(AGENTS)


def agent_title(name: str) -> str:
    return AGENTS[name].title if name in AGENTS else name


def agent_mark(name: str) -> str:
    """Two letters that stand for an agent; of an unknown one, those its name begins with."""
    return AGENTS[name].facts.mark if name in AGENTS else label(name)[:2]


def agent_colour(name: str) -> str:
    """Its colour in a terminal; empty for an unknown one."""
    return AGENTS[name].facts.colour if name in AGENTS else ""


def folder_variables() -> list[str]:
    """Environment variables that say where agents keep their files."""
    found = (agent.facts.folder_variables for agent in AGENTS.values())
    return [variable for variables in found for variable in variables]


def is_agent(name: str) -> bool:
    """Return whether a word is the name of an agent."""
    return name in AGENTS
