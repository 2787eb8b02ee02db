"""What agents' lists of things to do say: which are open."""

from __future__ import annotations

from typing import Any

from whyfor.agents.edits import first_text

_LISTS = ("todos", "plan", "items")
_DONE = frozenset({"completed", "done", "cancelled", "canceled", "deleted"})


def open_todos(given: Any) -> list[str] | None:
    """Return the open items of a list that a call writes, in its order; None if it writes none."""
    if not isinstance(given, dict):
        return None
    items = next((given[name] for name in _LISTS if isinstance(given.get(name), list)), None)
    if items is None:
        return None
    found = []
    for item in items:
        if isinstance(item, dict) and str(item.get("status", "")).lower() not in _DONE:
            text = first_text(item, "content", "step", "description", "text")
            found += [text] if text else []
    return found
