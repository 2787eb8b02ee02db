"""Sessions, projects and tokens as the store returns them."""

from __future__ import annotations

import msgspec


class Tokens(msgspec.Struct, frozen=True):
    """Token counts. None means unknown: the agent did not record it."""

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None

    @property
    def total(self) -> int | None:
        """All that is known of input and output; None if nothing is."""
        numbers = (self.input, self.cache_read, self.cache_write, self.output)
        known = [number for number in numbers if number is not None]
        return sum(known) if known else None


class Session(msgspec.Struct, frozen=True):
    """One conversation of one agent."""

    id: int
    agent: str
    session_id: str
    project: str | None
    cwd: str | None
    branch: str | None
    title: str | None
    started_at: int | None
    ended_at: int | None
    prompts: int
    messages: int
    tool_calls: int
    tokens: Tokens
    models: list[str]
    files_modified: list[str]
    parent_session_id: str | None
    subagent: str | None
    unparsed: int


class Project(msgspec.Struct, frozen=True):
    """A repository, independent of its path."""

    identity: str
    evidence: str  # remote | root | path
    name: str
    remote: str | None = None
    root_commit: str | None = None
    path: str | None = None
