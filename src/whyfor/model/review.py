"""What a change is about to undo: lines that turns put there or took away, and what was decided."""

from __future__ import annotations

import msgspec

from whyfor.model.blame import LineWho

UNDOES, RETURNS, FAILED, RULE_BROKEN = "undoes", "returns", "failed", "rule"


class ReviewDecision(msgspec.Struct, frozen=True):
    """What was decided, and where it stands."""

    kind: str  # request | answer | correction | rule | decision | gotcha | bugfix
    text: str
    question: str | None = None  # that an answer answers
    note: str | None = None  # the key of the note that says it


class ReviewLine(msgspec.Struct, frozen=True):
    """A line that goes or comes."""

    sign: str  # + or -
    number: int  # before the change for a line that goes, after it for one that comes
    text: str


class ReviewFinding(msgspec.Struct, frozen=True):
    """One thing that a change undoes."""

    kind: str  # undoes | returns | failed | rule
    path: str
    lines: list[ReviewLine]
    who: LineWho
    decision: ReviewDecision
    because: str  # why it is told, in words
    commit: str | None = None  # that the lines come from
    summary: str = ""
    time: int = 0  # seconds; of the commit


class TouchedTurn(msgspec.Struct, frozen=True):
    """Lines of one turn that a change removes or changes, without undoing what was decided."""

    path: str
    who: LineWho
    lines: int


class ChangeReview(msgspec.Struct, frozen=True):
    """What past sessions say about a change."""

    what: str  # staged, work tree, or a range
    files: int
    removed: int
    added: int
    findings: list[ReviewFinding] = []
    touched: list[TouchedTurn] = []
    left_out: list[str] = []
