"""Where Claude Code keeps its sessions, and what it calls a subagent's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def projects_folder(home: Path, env: Mapping[str, str]) -> Path:
    """Return the folder that has a folder of transcripts for every project."""
    override = env.get("CLAUDE_CONFIG_DIR")
    return (Path(override) if override else home / ".claude") / "projects"


def subagent_id(agent_id: str, parent: str) -> str:
    """Return the session id of a subagent: its own id is short and repeats, the parent's is not."""
    return f"agent-{agent_id.removeprefix('agent-')}@{parent}"
