"""Whether a path a session wrote is the file a commit changes: in any worktree or clone, on any
machine."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Agents put worktrees below the repository, and take them away again.
_WORKTREE = re.compile(r"(?:^|/)\.?(?:[\w-]+-)?worktrees?/[^/]+/(.+)$")


class Places:
    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = tuple(folder.replace("\\", "/").rstrip("/") + "/" for folder in folders)
        self._inside: dict[str, frozenset[str]] = {}

    def same(self, written: str, path: str, *, foreign: bool) -> bool:
        """Below a known folder the rest must be the path; elsewhere, for sessions of the
        project, its end."""
        inside = self._inside.get(written)
        if inside is None:
            inside = self._inside[written] = self._below(written)
        if inside:
            return path in inside
        if foreign:
            return False
        if written.startswith(("/", "~")) or written[1:3] == ":/":
            return written.endswith("/" + path)
        return written == path or path.endswith("/" + written)

    def _below(self, written: str) -> frozenset[str]:
        found = {written[len(folder) :] for folder in self._folders if written.startswith(folder)}
        found |= {match[1] for rest in found if (match := _WORKTREE.search(rest))}
        return frozenset(found)


def last_part(path: str) -> str:
    return path.rsplit("/", 1)[-1]
