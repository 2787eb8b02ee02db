"""agents: which agents are here, what was recorded of them, and what is missing."""

from __future__ import annotations

import shutil

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.base import Agent
from whyfor.agents.hooks import is_present
from whyfor.capture.discover import roots
from whyfor.capture.manifest import load_manifest
from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.model.listing import ListFilter
from whyfor.model.paths import to_text
from whyfor.store.open import OpenStore, reading


class AgentState(msgspec.Struct, frozen=True):
    """An agent that Whyfor knows: whether it is here, what was recorded, and what is missing."""

    agent: str
    title: str
    found: bool  # it has a folder here, or its program is in PATH
    folders: list[str]
    version: str | None  # of its last session, if that says it
    sessions: int
    last_record_at: int | None
    hooks: str | None  # installed | absent; None: it has none that are supported
    resume: bool  # there is a command that resumes a session
    restore: bool  # a session can be written for it
    untold: list[str]  # what its files do not tell

    @property
    def missing(self) -> list[str]:
        """What one may miss in its sessions, in words."""
        wanted = {"no hooks": self.hooks is None, "no restore": not self.restore}
        todo = ["hooks not installed"] if self.found and self.hooks == "absent" else []
        return [*todo, *(what for what, lacks in wanted.items() if lacks), *self._untold()]

    def _untold(self) -> list[str]:
        return [f"no {what}" for what in self.untold]


def agent_states(settings: Settings) -> list[AgentState]:
    """Return all agents that Whyfor knows: those found here first, the last active one at the
    top."""
    changed = load_manifest(settings).files.values()
    installed = {one.agent for one in changed if one.kind in ("agent", "plugin")}
    kept: dict[str, _AgentRecords] = {}
    try:
        with reading(settings) as library:
            kept = {name: _records(library, name) for name in AGENTS}
    except NotFound:
        pass  # nothing was recorded yet
    found = [
        _state(AGENTS[name], settings, kept.get(name, _AgentRecords()), name in installed)
        for name in AGENTS
    ]
    return sorted(found, key=lambda one: (not one.found, -(one.last_record_at or 0)))


class _AgentRecords(msgspec.Struct, frozen=True):
    """What the store has of an agent."""

    sessions: int = 0
    last_record_at: int | None = None
    version: str | None = None


def _records(library: OpenStore, agent: str) -> _AgentRecords:
    which = ListFilter(agent=agent)
    for _, row in library.listing.page(which, "last", 1):
        return _AgentRecords(
            library.listing.count(which),
            library.sessions.last_ended(agent),
            library.sessions.agent_version(row.id),
        )
    return _AgentRecords()


def _state(agent: Agent, settings: Settings, kept: _AgentRecords, is_installed: bool) -> AgentState:
    folders = roots(agent, settings)
    hooks = agent.facts.hooks
    if hooks:
        is_here = is_present(hooks, settings.user_home, settings.env)
    else:
        is_here = shutil.which(agent.name, path=settings.env.get("PATH", "")) is not None
    if plugin := agent.facts.plugin:
        is_here = is_here or plugin.folder(settings.user_home, settings.env).is_dir()
    state = "installed" if is_installed else "absent"
    return AgentState(
        agent=agent.name,
        title=agent.title,
        found=is_here or any(folder.exists() for folder in folders),
        folders=[to_text(folder) for folder in folders],
        version=kept.version,
        sessions=kept.sessions,
        last_record_at=kept.last_record_at,
        hooks=state if hooks or agent.facts.plugin else None,
        resume=agent.resume("ID") is not None,
        restore=agent.writer() is not None,
        untold=list(agent.facts.untold),
    )
