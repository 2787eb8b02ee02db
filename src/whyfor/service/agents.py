"""What faces show of agents: their names, titles, marks and colours."""

from __future__ import annotations

from whyfor.agents import AGENTS, IMPORTED, RECORDED, USUAL
from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.model.text import label
from whyfor.store.open import reading

USUAL_AGENTS = USUAL
AGENT_CHOICE = f"{', '.join(USUAL)} or another; list them: whyfor agents"  # for help texts


def agent_names() -> list[str]:
    return list(AGENTS)


def agents_looked_for() -> list[str]:
    """The agents whose sessions an ingest looks for: not what is imported or recorded."""
    return [name for name in AGENTS if name not in (*IMPORTED, *RECORDED)]


def agents_shown(settings: Settings) -> list[str]:
    """The agents that a filter offers: the usual ones, and those that have sessions."""
    try:
        with reading(settings) as library:
            ended = {name: library.sessions.last_started(name) for name in AGENTS}
    except NotFound:
        ended = {}
    return [name for name in AGENTS if name in USUAL or ended.get(name) is not None]


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
