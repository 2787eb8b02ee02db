"""A hook event: one parsed line of the spool."""

from __future__ import annotations

from typing import Any

import msgspec


class Process(msgspec.Struct, frozen=True, array_like=True):
    """One ancestor process of the hook, identified by pid and start time, because a pid can be
    reused."""

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
    # small facts only: rebasing, pairs of a rewrite, reason, tool …; never the whole payload
    data: dict[str, Any] = {}


class CommitSignal(msgspec.Struct, frozen=True):
    """A hook's account of a commit, and of the session it was made in, if the hook could tell."""

    sha: str
    session_agent: str | None
    session_id: str | None
    data: dict[str, Any]
    at: int
