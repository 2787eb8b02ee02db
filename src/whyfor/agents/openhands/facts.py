"""OpenHands' tools, variables, hooks and marks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyfor.agents.facts import AgentFacts, ArgumentNames, kinds, split_words

EDITOR = "file_editor"  # one tool for several things, as its argument `command` says


def conversations_folder(home: Path, env: Mapping[str, str]) -> Path:
    """Return where its conversations are, as the nearest of its own variables says it."""
    told = env.get("OPENHANDS_CONVERSATIONS_DIR")
    if told:
        return Path(told)
    own = env.get("OPENHANDS_PERSISTENCE_DIR")
    return (Path(own) if own else home / ".openhands") / "conversations"


FACTS = AgentFacts(
    mark="Oh",
    colour="#d4b84a",
    tools=kinds(shell="terminal execute_bash", edit=EDITOR, subagent="task", todo="task_tracker"),
    tool_commands={EDITOR: {"view": "read", "create": "write"}},
    untold=("branch",),
    arguments=ArgumentNames(
        path=("path",),
        command=("command",),
        old=("old_str",),
        new=("new_str",),
        whole=("file_text",),
    ),
    folder_variables=("OPENHANDS_PERSISTENCE_DIR", "OPENHANDS_CONVERSATIONS_DIR"),
    structure=frozenset(
        split_words(
            "type role kind id timestamp source tool_name tool_call_id action_id name model"
        )
    ),
    identities=frozenset(
        split_words("id timestamp type role tool_call_id action_id llm_response_id model")
    ),
)
