"""A parsed search query: every clause must match, and no excluded term may."""

from __future__ import annotations

import re

import msgspec

from whyfor.model.sessions import Session

FIELDS = ("prompts", "answers", "thinking", "tools")
_WORD = re.compile(r"[^\W_]+")
_HYPHENATED = re.compile(r"[^\W\d_]{2,}(?:-[^\W\d_]{2,})+[^\w\s]*")


class Atom(msgspec.Struct, frozen=True):
    """A word, a phrase or a literal with punctuation; with `prefix`, its last word may continue.

    What was typed in quotes is meant as it stands: no other form of a word will do.
    """

    text: str
    prefix: bool = False
    quoted: bool = False

    @property
    def words(self) -> list[str]:
        """Its words, as an index has them apart."""
        return _WORD.findall(self.text)

    @property
    def apart(self) -> bool:
        """Whether it is words with hyphens between them, which may stand apart in a text."""
        return not self.quoted and _HYPHENATED.fullmatch(self.text) is not None

    @property
    def plain(self) -> bool:
        """Whether any form of its words will do."""
        if self.quoted or self.prefix:
            return False
        return self.apart or len(self.words) == 1


class Query(msgspec.Struct, frozen=True):
    clauses: tuple[tuple[Atom, ...], ...] = ()  # all of them; of each any
    without: tuple[Atom, ...] = ()
    files: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class PassageQuery(msgspec.Struct, frozen=True):
    """What is looked for in passages, where any form of a word will do."""

    clauses: tuple[tuple[Atom, ...], ...]
    every: bool  # all clauses, not just any
    within: Query  # what the turn must have besides, as it was typed


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
    task: str | None = None  # sessions that worked on this task
    person: int | None = None  # whose sessions; on a team only


class Match(msgspec.Struct, frozen=True):
    """A matching part of one turn, with its rank (higher is better)."""

    session: int
    first_seq: int
    last_seq: int
    turn: int
    created_at: int | None
    score: float


class CardMatch(msgspec.Struct, frozen=True):
    """A session whose card matches, with its rank (higher is better)."""

    session: int
    score: float
    started_at: int | None


class TurnMatch(msgspec.Struct, frozen=True):
    """A piece of a turn that matches, unranked."""

    session: int
    turn: int
    created_at: int | None
    agent: str
    project: int | None


class SessionOwner(msgspec.Struct, frozen=True):
    """Whom a session is counted with."""

    main: int  # itself, or the session a subagent worked for
    thread: str  # of the main session and its copies the first, as agent:id
    own_from: int  # the first event that is not copied


class FoundPassage(msgspec.Struct, frozen=True):
    """A place where words of a query stand."""

    session: Session  # that it stands in: the one that was found, a subagent's, or a copy
    seq: int
    turn: int
    kind: str
    created_at: int | None
    snippet: str
    marks: list[tuple[int, int]]  # where the words stand in the snippet
    score: float
    named: bool = False  # found in the session's title, which the agent wrote


class FoundNote(msgspec.Struct, frozen=True):
    """A note of a session that has the words of a query."""

    key: str
    type: str
    state: str
    title: str


class Hit(msgspec.Struct, frozen=True):
    """A session that was found, with what its subagents did and what its copies repeat."""

    session: Session
    passages: list[FoundPassage]  # of different turns, best first; at least one
    copies: list[str]  # the other sessions of its thread, as agent:id
    folded: str  # the same for people: resumed twice, forked once
    score: float
    notes: list[FoundNote] = []  # that were made in it and have the words
    person: str | None = None  # whose it is, on a team server

    @property
    def best(self) -> FoundPassage:
        return self.passages[0]


class SessionFilter(msgspec.Struct, frozen=True):
    """Filters as people give them."""

    project: str | None = None
    agent: str | None = None
    since: str | None = None
    until: str | None = None
    branch: str | None = None
    fields: str | None = None
    file: str | None = None
    task: str | None = None
    who: str | None = None  # a person's number; on a team only
    # a project's, exactly; for clients, whose words must not become paths
    identity: str | None = None
