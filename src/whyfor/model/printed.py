"""What git prints of a commit it made, wherever it is met: `[main 126e95e] subject`."""

from __future__ import annotations

import re

_PRINTED = re.compile(
    r"^[ \t]*\[(?:detached HEAD|[^\s\]]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.M
)


def printed(text: str) -> tuple[tuple[str, str], ...]:
    """Abbreviated hashes and subjects."""
    return tuple((sha, subject.strip()) for sha, subject in _PRINTED.findall(text))


def reported(operation: object) -> str | None:
    """The hash in Claude Code's own account of what a command did to the repository."""
    commit = operation.get("commit") if isinstance(operation, dict) else None
    sha = commit.get("sha") if isinstance(commit, dict) else None
    return sha if isinstance(sha, str) else None
