"""Pi's tools, variables and marks; its extensions are no command hooks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyfor.agents.facts import AgentFacts, ArgumentNames, kinds, split_words


def sessions_folder(home: Path, env: Mapping[str, str]) -> Path:
    """Return where its sessions are, as its own variables say it."""
    told = env.get("PI_CODING_AGENT_SESSION_DIR")
    if told:
        return Path(told)
    own = env.get("PI_CODING_AGENT_DIR")
    return (Path(own) if own else home / ".pi" / "agent") / "sessions"


FACTS = AgentFacts(
    mark="Pi",
    colour="#d0679d",
    tools=kinds(
        shell="bash", read="read", list="ls", search="grep find", edit="edit", write="write"
    ),
    untold=("branch",),
    arguments=ArgumentNames(
        path=("path",),
        command=("command",),
        old=("oldText",),
        new=("newText",),
        whole=("content",),
        edits=("edits",),
    ),
    folder_variables=("PI_CODING_AGENT_SESSION_DIR", "PI_CODING_AGENT_DIR"),
    structure=frozenset(
        split_words("type role id parentId timestamp version cwd toolCallId toolName name model")
    ),
    identities=frozenset(
        split_words("id parentid timestamp type role model version cwd toolcallid")
    ),
)
