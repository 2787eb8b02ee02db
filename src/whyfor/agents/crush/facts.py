"""Crush's tools, variables and marks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyfor.agents.facts import AgentFacts, ArgumentNames, kinds, split_words


def global_folder(home: Path, env: Mapping[str, str]) -> Path:
    """Return where it keeps the list of its projects."""
    told = env.get("CRUSH_GLOBAL_DATA")
    if told:
        return Path(told)
    return Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "crush"


FACTS = AgentFacts(
    mark="Cr",
    colour="#e05f9e",
    tools=kinds(
        shell="bash",
        read="view",
        list="ls",
        search="grep glob sourcegraph",
        edit="edit multiedit",
        write="write",
        fetch="fetch web_fetch download",
        web="web_search",
        subagent="agent agentic_fetch",
        todo="todos",
    ),
    untold=("branch", "tokens per answer", "cached tokens"),
    arguments=ArgumentNames(
        path=("file_path",),
        command=("command",),
        folder=("working_dir",),
        old=("old_string",),
        new=("new_string",),
        whole=("content",),
        edits=("edits",),
    ),
    folder_variables=("CRUSH_GLOBAL_DATA", "XDG_DATA_HOME"),
    session_variables=("CRUSH_SESSION_ID",),
    structure=frozenset(
        split_words("type role id session_id parent_session_id tool_call_id name model created_at")
    ),
    identities=frozenset(
        split_words("id session_id parent_session_id tool_call_id type role model created_at")
    ),
)
