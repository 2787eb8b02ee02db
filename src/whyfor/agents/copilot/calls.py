"""The arguments of a Copilot CLI tool call, and the files it touches."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.agents.base import as_dict, flatten, get_str
from whyfor.agents.copilot.facts import EDITOR, FACTS, PATCH_TOOL
from whyfor.agents.edits import patched_paths


def decoded(arguments: object) -> Any:
    """Return a call's arguments; a string that contains a JSON object is decoded."""
    if isinstance(arguments, str):
        try:
            decoded = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return arguments
        return decoded if isinstance(decoded, dict) else arguments
    return arguments if arguments is not None else {}


def touched_files(name: str, given: Any) -> list[list[str]]:
    """Return the files that a call reads or writes if it succeeds: path and action."""
    if name == PATCH_TOOL:
        return [[path, "write"] for path in dict.fromkeys(patched_paths(flatten(given)))]
    path = get_str(as_dict(given), "path")
    kind = FACTS.tools.get(name)
    if name == EDITOR:
        kind = FACTS.tool_commands[EDITOR].get(get_str(as_dict(given), "command"), kind)
    if not path or kind not in ("read", "edit", "write"):
        return []
    return [[path, "read" if kind == "read" else "write"]]
