"""The story of a pull request: its lines, the prompts behind them, what was checked."""

from __future__ import annotations

import msgspec

from whyfor.model.line_counts import FileCounts, RangeCounts
from whyfor.model.review import ReviewFinding
from whyfor.model.sessions import Tokens


class PullPrompt(msgspec.Struct):
    """One turn whose lines stand in the head commit."""

    number: int  # in the comment
    agent: str
    session_id: str
    turn: int | None
    text: str
    question: str | None = None
    closing: str | None = None
    lines: int = 0
    files: list[str] = []
    at: int = 0
    weighed: list[str] = []  # alternatives that were noted for its commits
    intent: str = ""


class PullFile(msgspec.Struct, frozen=True):
    """A file, and the prompts that its lines come from."""

    counts: FileCounts
    prompts: list[int]


class CheckRun(msgspec.Struct, frozen=True):
    """A command that tests or checks, as it ended last."""

    command: str
    outcome: str  # passed | failed
    exit_code: int | None  # None: not recorded
    runs: int
    failures: int


class GivenApproval(msgspec.Struct, frozen=True):
    """A command that no rule may allow, and that a person allowed."""

    command: str
    reason: str  # why no rule may


class PullStory(msgspec.Struct, frozen=True):
    """All that the comment tells."""

    revisions: str
    counts: RangeCounts
    files: list[PullFile]
    prompts: list[PullPrompt]
    sessions: int
    commits: int
    active: int  # ms
    tokens: Tokens
    checks: list[CheckRun]
    approvals: list[GivenApproval]
    findings: list[ReviewFinding]


class PostedComment(msgspec.Struct, frozen=True):
    """Where a comment went."""

    tool: str  # gh | glab
    number: int
    action: str  # created | updated | unchanged
