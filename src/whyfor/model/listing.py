"""The list of sessions as people browse it: one row for a conversation, with its subagents, resumes
and copies folded into it."""

from __future__ import annotations

import msgspec

LIST_SORTS = ("last", "started", "longest", "tokens")
# What came of a session, in the order in which the first that holds is said.
OUTCOMES = ("open", "asked", "failed", "committed", "changed", "nothing")


class ListFilter(msgspec.Struct, frozen=True):
    """Which rows; times are those of the last activity, in ms."""

    agent: str | None = None
    projects: tuple[int, ...] | None = None
    homeless: bool = False  # only sessions without a project
    folder: str | None = None  # began there or below
    branch: str | None = None
    since: int | None = None
    until: int | None = None
    outcome: str | None = None  # of OUTCOMES
    open_sessions: tuple[int, ...] = ()  # sessions that are open now, for the outcome `open`
    words: tuple[str, ...] = ()  # each stands in the title or in a prompt
    file: str | None = None  # wrote a file whose path holds this


class RowKey(msgspec.Struct, frozen=True, array_like=True):
    """Where a row stands in a sorted list."""

    value: int
    head: int


class RowPart(msgspec.Struct, frozen=True):
    """A session that is folded into a row, or the one the row began with."""

    id: int
    agent: str
    session_id: str
    title: str | None
    kind: str  # first | resumed | forked | restored
    started_at: int | None
    ended_at: int | None
    turns: int


class ListedSession(msgspec.Struct, frozen=True):
    """A conversation in one row; what can be only said of one session is said of the part that
    was active last."""

    id: int
    head: int
    agent: str
    session_id: str
    project: str | None  # identity
    cwd: str | None
    branch: str | None
    title: str | None
    began_at: int | None
    last_at: int | None
    turns: int
    worked: int  # ms in which the agent did something
    tokens: int | None  # None: unknown
    models: list[str]
    asked: int | None  # the question at its end that nobody answered: its event
    failed: int | None  # the error it ended with: its event
    lone: bool  # a subagent whose caller was not recorded
    subagents: int = 0
    commits: int = 0
    files: int = 0  # written
    parts: tuple[RowPart, ...] = ()  # if there are several


class ListTotals(msgspec.Struct, frozen=True):
    """All that is listed, and what is folded in."""

    rows: int
    projects: int
    since: int | None
    recordings: int
    subagents: int
    parts: int  # resumes, forks and copies


class FolderCount(msgspec.Struct, frozen=True):
    """Rows of sessions that began in one folder."""

    project: int | None
    cwd: str | None
    rows: int
    last_at: int


class PeriodCount(msgspec.Struct, frozen=True):
    """Rows of a day or a month, and the commits that came of them."""

    period: str  # 2026-03-17 or 2026-03
    rows: int
    commits: int = 0
