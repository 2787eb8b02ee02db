"""What a tool call was given and what it changed, as people read it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from whyfor.agents.edits import PATCH
from whyfor.agents.tools import tool_kind
from whyfor.model.events import StoredEvent

_TELLING = (
    "command",
    "cmd",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "query",
    "description",
    "url",
)


def argument(call: StoredEvent) -> str:
    """The one input that says most."""
    given = (call.data or {}).get("input")
    if isinstance(given, dict):
        for name in _TELLING:
            if isinstance(given.get(name), str):
                return str(given[name])
    return call.text


def question_calls(events: Iterable[StoredEvent]) -> set[str]:
    """Ids of calls that ask the person something: events of their own tell the questions."""
    asked = (event.data or {} for event in events if event.kind == "question.asked")
    return {data["id"] for data in asked if data.get("id")}


def failed(result: StoredEvent | None) -> bool:
    return bool(result and (result.data or {}).get("failed"))


def diff(call: StoredEvent, result: StoredEvent | None) -> list[str]:
    """The lines an edit took away and put in: the agent's own patch if it kept one, else from
    what it asked for."""
    data = (result or call).data or {}
    patch = data.get("patch")
    if isinstance(patch, list):
        return [
            line
            for hunk in patch
            if isinstance(hunk, dict)
            for line in hunk.get("lines", [])
            if isinstance(line, str)
        ]
    if isinstance(data.get("diff"), str):
        return [
            line
            for line in data["diff"].splitlines()
            if not line.startswith(("---", "+++", "@@", "Index", "==="))
        ]
    given = (call.data or {}).get("input")
    given = given if isinstance(given, dict) else {}
    old, new = (
        given.get("old_string") or given.get("oldString"),
        given.get("new_string") or given.get("newString"),
    )
    if isinstance(old, str) and isinstance(new, str):
        return list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[3:]
    content = given.get("content")
    if isinstance(content, str) and ("file_path" in given or "filePath" in given):
        return ["+" + line for line in content.splitlines()]
    if tool_kind(call.name or "") == "patch" or PATCH in call.text:
        return [
            line for line in call.text.splitlines() if line[:1] in "+-" or line.startswith("*** ")
        ]
    return []
