"""What a hook announced: one envelope of the spool, understood."""

from __future__ import annotations

from typing import Any

import msgspec


class Process(msgspec.Struct, frozen=True, array_like=True):
    """One ancestor of the hook; a pid alone may be used again, pid and start may not."""

    pid: int
    start: int  # clock ticks since boot, as the system counts them; 0 where it does not say
    name: str


class Signal(msgspec.Struct, frozen=True):
    at: int  # ms, our clock
    agent: str  # claude, codex, … or git
    event: str  # the agent's own word: Stop, SessionEnd; for git: post-commit, post-rewrite, …
    cwd: str | None = None
    session_agent: str | None = None  # whose session this happened in, if the hook could tell
    session_id: str | None = None
    how: str | None = None  # payload | env | ancestry: how it could tell
    repository: str | None = None  # for git: the folder of the work tree
    sha: str | None = None  # for git: the commit HEAD was at
    chain: list[Process] = []  # ancestors, nearest first
    # small facts: rebasing, pairs of a rewrite, reason, tool …; never the whole payload
    data: dict[str, Any] = {}
