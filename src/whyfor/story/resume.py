"""How a session is taken up again in its agent."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from whyfor.agents import AGENTS
from whyfor.model.paths import to_path, to_text
from whyfor.model.sessions import Session


def resume_command(session: Session) -> str | None:
    """Return what resumes it, in its own folder; None for a subagent, which has no life of its
    own."""
    if session.parent_session_id is not None:
        return None
    return agent_command(session.agent, session.session_id)


def agent_command(agent: str, session_id: str) -> str | None:
    """Return what resumes a session in its own folder; None if its agent cannot."""
    known = AGENTS.get(agent)
    return known.resume(shlex.quote(session_id)) if known else None


def resume_anywhere(agent: str, session_id: str, cwd: str | None, home: PurePath) -> str | None:
    """Return what resumes a session, whatever folder one is in; None if its agent cannot, or its
    folder is gone."""
    command = agent_command(agent, session_id)
    if command is None or not cwd or not to_path(cwd).is_dir():
        return None
    return f"cd {_shell_path(cwd, to_text(home))} && {command}"


def _shell_path(path: str, home: str) -> str:
    """Return a path as one would type it."""
    if path == home:
        return "~"
    if path.startswith(f"{home}/"):
        return f"~/{shlex.quote(path[len(home) + 1 :])}"
    return shlex.quote(path)
