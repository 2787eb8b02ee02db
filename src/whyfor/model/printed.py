"""Recognise what git prints after a commit: `[main 126e95e] subject`."""

from __future__ import annotations

import re

# Begins with a literal, so that long texts are searched fast; what stands before it on its line
# is looked at afterwards.
_PRINTED = re.compile(
    r"\[(?:detached HEAD|[^\s\]]{1,250})(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.M
)


def printed(text: str) -> tuple[tuple[str, str], ...]:
    """Return the abbreviated hashes and subjects in a text."""
    return tuple(
        (found[1], found[2].strip())
        for found in _PRINTED.finditer(text)
        if not text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip(" \t")
    )


def reported(operation: object) -> str | None:
    """Return the hash in Claude Code's description of a git operation; None if there is none."""
    commit = operation.get("commit") if isinstance(operation, dict) else None
    sha = commit.get("sha") if isinstance(commit, dict) else None
    return sha if isinstance(sha, str) else None
