"""The words in a structure."""

from __future__ import annotations


def flatten(value: object, limit: int = 200_000) -> str:
    """The words in a tool's input: its string values, one per line, without JSON's escapes."""
    if isinstance(value, str):
        return value
    out: list[str] = []
    todo: list[object] = [value]
    while todo and limit > 0:
        item = todo.pop()
        if isinstance(item, str):
            out.append(item)
            limit -= len(item)
        elif isinstance(item, dict):
            todo.extend(reversed(item.values()))
        elif isinstance(item, list):
            todo.extend(reversed(item))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            out.append(str(item))
    return "\n".join(out)
