"""Recognise what git prints after a commit: `[main 126e95e] subject`."""

from __future__ import annotations

import re

_PRINTED = re.compile(
    r"^[ \t]*\[(?:detached HEAD|[^\s\]]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.M
)


def printed(text: str) -> tuple[tuple[str, str], ...]:
    """Return the abbreviated hashes and subjects in a text."""
    return tuple((sha, subject.strip()) for sha, subject in _PRINTED.findall(text))


def reported(operation: object) -> str | None:
    """Return the hash in Claude Code's description of a git operation; None if there is none."""
    commit = operation.get("commit") if isinstance(operation, dict) else None
    sha = commit.get("sha") if isinstance(commit, dict) else None
    return sha if isinstance(sha, str) else None
