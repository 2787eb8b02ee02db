"""Cline's tools, variables and marks. Its hooks are scripts in a folder: none are installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyfor.agents.facts import AgentFacts, ArgumentNames, kinds, split_words


def cline_sessions(home: Path, env: Mapping[str, str]) -> Path:
    """Return where its sessions are, as the nearest of its own variables says it."""
    told = env.get("CLINE_SESSION_DATA_DIR")
    if told:
        return Path(told)
    data = env.get("CLINE_DATA_DIR")
    own = env.get("CLINE_DIR")
    base = Path(own) if own else home / ".cline"
    return (Path(data) if data else base / "data") / "sessions"


FACTS = AgentFacts(
    mark="Cn",
    colour="#b06ab3",
    tools=kinds(
        shell="run_commands execute_command",
        read="read_files read_file",
        list="list_files",
        search="search_files search_codebase",
        edit="editor replace_in_file",
        write="write_to_file",
        fetch="fetch_web_content web_fetch",
        subagent="spawn_agent",
    ),
    arguments=ArgumentNames(
        path=("path",),
        command=("command",),
        old=("old_text",),
        new=("new_text",),
        whole=("content",),
    ),
    folder_variables=("CLINE_DIR", "CLINE_DATA_DIR", "CLINE_SESSION_DATA_DIR"),
    structure=frozenset(
        split_words("type role id ts sessionId session_id version cwd name tool_use_id model")
    ),
    identities=frozenset(
        split_words("id ts sessionid session_id type role model version cwd tool_use_id branch")
    ),
)
