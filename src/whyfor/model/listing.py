"""The list of sessions as people browse it: one row for a conversation, with its subagents, resumes
and copies folded into it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from whyfor.model.cost import Cost

# By last activity, by beginning, by the time the agent worked, by all tokens used, by their price.
LIST_SORTS = ("last", "started", "longest", "tokens", "cost")
# What came of a session, in the order in which the first that holds is said.
OUTCOMES = ("open", "asked", "failed", "committed", "changed", "nothing")
_PART_WORDS = {
    "first": "Started",
    "resumed": "Resumed",
    "forked": "Forked",
    "restored": "Restored copy",
}
_TIMES = {1: "once", 2: "twice"}
# Of checks, as recall names their families, those that run tests.
_TESTS = re.compile(
    r"test|spec|jest|mocha|phpunit|bats|cypress|playwright|e2e|^(?:tox|nox)$", re.IGNORECASE
)


def fold_words(kinds: Iterable[str]) -> str:
    """Say how often a session was resumed, forked and restored: `resumed twice, forked once`;
    empty if it has no copies."""
    found = Counter(kinds)
    return ", ".join(
        f"{kind} {_TIMES.get(found[kind], f'{found[kind]} times')}"
        for kind in ("resumed", "forked", "restored")
        if found[kind]
    )


class ListFilter(msgspec.Struct, frozen=True):
    """Which rows; times are those of the last activity, in ms."""

    agent: str | None = None
    projects: tuple[int, ...] | None = None
    homeless: bool = False  # only sessions without a project
    folder: str | None = None  # began there or below
    branch: str | None = None
    model: str | None = None  # used by the part that the row shows
    since: int | None = None
    until: int | None = None
    outcome: str | None = None  # of OUTCOMES
    open_sessions: tuple[int, ...] = ()  # sessions that are open now, for the outcome `open`
    words: tuple[str, ...] = ()  # each stands in the title or in a prompt
    file: str | None = None  # wrote this file or below this folder; any end of a path
    task: str | None = None  # worked on this task; `*`: on any
    person: int | None = None  # whose sessions; on a team only


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

    @property
    def words(self) -> str:
        return _PART_WORDS[self.kind]


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
    cost: Cost  # with its subagents
    subagents: int = 0
    commits: int = 0
    files: int = 0  # written
    parts: tuple[RowPart, ...] = ()  # if there are several
    # By the name of a check (pytest, make lint): whether it passed the last time that is known.
    checks: dict[str, bool] = {}
    title_source: str | None = None  # as of a session

    @property
    def tests(self) -> str:
        """How the last run of tests ended: `tests passed`, `tests failed`; empty if unknown."""
        ended = [passed for family, passed in self.checks.items() if _TESTS.search(family)]
        if not ended:
            return ""
        return "tests passed" if all(ended) else "tests failed"

    @property
    def name(self) -> str:
        return f"{self.agent}:{self.session_id}"

    @property
    def part_names(self) -> list[str]:
        """The sessions that it is made of, as agent:id, without subagents."""
        return [f"{part.agent}:{part.session_id}" for part in self.parts] or [self.name]

    @property
    def folded(self) -> str:
        """What is folded into it besides subagents: resumed twice, forked once."""
        return fold_words(part.kind for part in self.parts)


class ListTotals(msgspec.Struct, frozen=True):
    """All that is listed, and what is folded in."""

    rows: int
    projects: int
    since: int | None
    recordings: int
    subagents: int
    parts: int  # resumes, forks and copies
    lone: int = 0  # rows that are a subagent whose caller was not recorded


class FolderCount(msgspec.Struct, frozen=True):
    """Rows of sessions that ran in one folder, on one branch."""

    project: int | None
    cwd: str | None
    branch: str | None
    rows: int
    last_at: int


class PeriodCount(msgspec.Struct, frozen=True):
    """Rows of a day or a month, and the commits that came of them."""

    period: str  # 2026-03-17 or 2026-03
    rows: int
    commits: int = 0
    cost: Cost = Cost()
    without: int = 0  # rows of which no price is known
