"""Paths as agents name them, below the top of their project."""

from __future__ import annotations

from collections.abc import Sequence


def below_top(path: str, folders: Sequence[str]) -> str | None:
    """Return a path below the project's top; None if it is elsewhere. `folders` are work trees and
    folders that sessions ran in."""
    if not path.startswith(("/", "\\")) and ":" not in path[:3]:
        return path.removeprefix("./")
    best = max(
        (folder for folder in folders if path.startswith(f"{folder.rstrip('/')}/")),
        key=len,
        default=None,
    )
    return path[len(best.rstrip("/")) + 1 :] if best else None
