"""Pi's tools, variables and marks. It has no command hooks, but loads an extension of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyfor.agents.facts import AgentFacts, ArgumentNames, PluginFile, kinds, split_words


def sessions_folder(home: Path, env: Mapping[str, str]) -> Path:
    """Return where its sessions are, as its own variables say it."""
    told = env.get("PI_CODING_AGENT_SESSION_DIR")
    if told:
        return Path(told)
    return pi_folder(home, env) / "sessions"


def pi_folder(home: Path, env: Mapping[str, str]) -> Path:
    own = env.get("PI_CODING_AGENT_DIR")
    return Path(own) if own else home / ".pi" / "agent"


PLUGIN = PluginFile(
    agent="pi",
    title="Pi",
    folder=pi_folder,
    file="extensions/whyfor.ts",
    source="pi/extension.ts",
)
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
    plugin=PLUGIN,
    hook_events={
        "SessionStart": "started",
        "UserPromptSubmit": "prompt",
        "Stop": "done",
        "SessionEnd": "exited",
    },
    folder_variables=("PI_CODING_AGENT_SESSION_DIR", "PI_CODING_AGENT_DIR"),
    structure=frozenset(
        split_words("type role id parentId timestamp version cwd toolCallId toolName name model")
    ),
    identities=frozenset(
        split_words("id parentid timestamp type role model version cwd toolcallid")
    ),
)
