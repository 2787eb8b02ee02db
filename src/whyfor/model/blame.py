"""A file line by line: which commit a line comes from, which turn wrote it, and what was asked."""

from __future__ import annotations

import msgspec

from whyfor.model.events import SpokenWord
from whyfor.model.lines import (
    AGENT,
    CONFIDENCE,
    MODIFIED_LINE,
    PERSON,
    UNKNOWN_AUTHOR,
    LineWriter,
)

INFERRED = "inferred"
NOT_COMMITTED = "0" * 40


class LineWho(msgspec.Struct, frozen=True):
    """Who wrote a line, and how that is known."""

    kind: str  # agent | modified | person | unknown
    evidence: str = ""
    agent: str = ""
    session_id: str = ""
    model: str | None = None  # None: not recorded, or several in this session
    turn: int | None = None
    asked: SpokenWord | None = None
    writer: LineWriter | None = None
    person: str = ""  # who shared it; empty: it is kept here

    @property
    def confidence(self) -> str | None:
        """Return high, medium or low; None where nothing is claimed."""
        return "low" if self.kind == PERSON else CONFIDENCE.get(self.evidence)


NOBODY = LineWho(UNKNOWN_AUTHOR)
INFERRED_PERSON = LineWho(PERSON, INFERRED)
KINDS_OF_LINES = (AGENT, MODIFIED_LINE, PERSON, UNKNOWN_AUTHOR)


class BlameRow(msgspec.Struct, frozen=True):
    """One line of a file."""

    line: int
    text: str
    commit: str  # zeros: not committed yet
    path: str  # of the file in that commit
    old: int  # the number of the line in that commit
    author: str
    mail: str
    time: int  # seconds; when the commit was authored
    summary: str
    who: LineWho = NOBODY


class FileBlame(msgspec.Struct, frozen=True):
    """A file, or some of its lines."""

    path: str
    commit: str | None  # None: as it is in the work tree, or was given
    rows: list[BlameRow]
    notes: list[str] = []  # what a reader should know of the answer
