"""Sessions, projects and tokens as the store returns them."""

from __future__ import annotations

import msgspec


class Tokens(msgspec.Struct, frozen=True):
    """Token counts, and what they cost at list price. None means unknown: the agent did not record
    it, or nobody knows the price."""

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cost: int | None = None  # in billionths of a dollar: see model/cost.py
    unpriced: int | None = None  # responses that are not in the cost, or not wholly

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
    copy_of: str | None = None  # agent:id of the session it begins with the records of
    copy_kind: str | None = None  # restored | forked | resumed (in a file of its own)
    own_from: int = 1  # the first event of its own; prompts, messages, … count from there
    original: str | None = None  # agent:id of the first session of its thread, if it is a copy
    title_source: str | None = None  # person | plan | agent | request | template | commit | work

    @property
    def name(self) -> str:
        return f"{self.agent}:{self.session_id}"

    @property
    def thread(self) -> str:
        """By which it is folded with its copies, or with what it is a copy of."""
        return self.original or self.name

    @property
    def given(self) -> int:
        """The last event that was restored from a session that is not here, such as a teammate's;
        0 if there is none."""
        if self.copy_of is not None or self.parent_session_id is not None:
            return 0
        return self.own_from - 1

    @property
    def unopened(self) -> bool:
        """Whether it is a copy in which nothing was said yet."""
        return self.own_from > 1 and not self.messages


class Person(msgspec.Struct, frozen=True):
    """Somebody of a team, as others see them."""

    id: int
    name: str


class Project(msgspec.Struct, frozen=True):
    """A repository, independent of its path."""

    identity: str
    evidence: str  # remote | root | path
    name: str
    remote: str | None = None
    root_commit: str | None = None
    path: str | None = None


SessionName = tuple[str, str]  # agent and session id


class NamedSession(msgspec.Struct, frozen=True):
    """What a session is called by, and whose work it is."""

    agent: str
    session_id: str
    parent: str | None
    project: str | None  # identity


class SessionBrief(msgspec.Struct, frozen=True):
    """What those who watch a session must know of it at a glance."""

    id: int
    agent: str
    session_id: str
    parent: str | None
    ended_at: int | None
    last_seq: int
    project_id: int | None
    branch: str | None
    title: str | None
    own_from: int

    @property
    def worked(self) -> bool:
        """Whether something happened in it: in a restored copy that nobody opened nothing did."""
        return self.own_from == 1 or self.own_from <= self.last_seq


class SessionCopy(msgspec.Struct, frozen=True):
    """A session that begins with the records of another."""

    id: int
    name: str  # agent:id
    original: str  # of the first session of its thread
    copy_of: str  # of the one it is a copy of
    kind: str  # restored | forked | resumed
    own_from: int
    unopened: bool  # nothing happened in it yet


class SessionPlace(msgspec.Struct, frozen=True):
    """Where a session began."""

    agent: str
    session_id: str
    cwd: str | None


class SessionFile(msgspec.Struct, frozen=True):
    """A session and the transcript it was read from, of the size it had then."""

    agent: str
    session_id: str
    title: str | None
    ended_at: int | None
    path: str
    size: int | None


class CommitAuthor(msgspec.Struct, frozen=True):
    """Under which name a session in a folder made commits."""

    cwd: str | None
    name: str
    email: str


class CandidateSession(msgspec.Struct, frozen=True, array_like=True):
    """A session that may have a part in a project's commits."""

    id: int
    agent: str
    session_id: str
    parent: str | None
    project_id: int | None
    started_at: int | None
    ended_at: int | None
    last_seq: int
    linked: int  # how much of it earlier runs have looked at
    cwd: str | None = None
    # the last event that was restored from a session that is not here, such as a teammate's
    given: int = 0
