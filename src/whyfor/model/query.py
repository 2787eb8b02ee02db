"""A parsed search query: every clause must match, and no excluded term may."""

from __future__ import annotations

import msgspec

from whyfor.model.sessions import Session

FIELDS = ("prompts", "answers", "thinking", "tools")
SORTS = ("last", "started", "tokens")  # of sessions: last activity, beginning, all tokens used


class Atom(msgspec.Struct, frozen=True):
    """A word, a phrase or a literal with punctuation; with `prefix`, its last word may continue."""

    text: str
    prefix: bool = False


class Query(msgspec.Struct, frozen=True):
    clauses: tuple[tuple[Atom, ...], ...] = ()  # all of them; of each any
    without: tuple[Atom, ...] = ()
    files: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Filters(msgspec.Struct, frozen=True):
    """Restrict a search to sessions and times."""

    agent: str | None = None
    projects: tuple[int, ...] | None = None
    since: int | None = None
    until: int | None = None
    branch: str | None = None
    fields: tuple[str, ...] = ()  # of FIELDS; empty is all
    agents: tuple[str, ...] = ()  # any of these; empty is all
    committed: bool = False  # only turns that a commit came of
    file: str | None = None  # sessions that wrote this file or below this folder; any end of a path


class Match(msgspec.Struct, frozen=True):
    """A matching part of one turn, with its rank (higher is better)."""

    session: int
    first_seq: int
    last_seq: int
    turn: int
    created_at: int | None
    score: float


class TurnMatch(msgspec.Struct, frozen=True):
    """A piece of a turn that matches, unranked."""

    session: int
    turn: int
    created_at: int | None
    agent: str
    project: int | None


class Hit(msgspec.Struct, frozen=True):
    session: Session
    seq: int
    turn: int
    kind: str
    created_at: int | None
    snippet: str
    marks: list[tuple[int, int]]  # where the words stand in the snippet
    score: float
    named: bool = False  # found in the session's title, which the agent wrote


class SessionFilter(msgspec.Struct, frozen=True):
    """Filters as people give them."""

    project: str | None = None
    agent: str | None = None
    since: str | None = None
    until: str | None = None
    branch: str | None = None
    fields: str | None = None
    file: str | None = None
    # a project's, exactly; for clients, whose words must not become paths
    identity: str | None = None
