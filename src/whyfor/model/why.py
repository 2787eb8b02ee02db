"""Why a line is there: the turn that wrote it, and what was said in it."""

from __future__ import annotations

import msgspec

from whyfor.model.blame import BlameRow, LineWho
from whyfor.model.checkpoints import Annotation


class EarlierLine(msgspec.Struct, frozen=True):
    """A line that stood in the place of the one that is asked about."""

    commit: str
    time: int  # seconds
    summary: str
    text: str
    who: LineWho


class SessionHint(msgspec.Struct, frozen=True):
    """A session that may have to do with a line that nobody is known for: a hint, no more."""

    agent: str
    session_id: str
    why: str


class LineReason(msgspec.Struct, frozen=True):
    """Lines that stand together and come from the same commit and turn."""

    path: str
    rows: list[BlameRow]
    who: LineWho
    question: str | None = None  # that the person's words answer
    closing: str | None = None  # the agent's last words of the turn
    tool: str | None = None  # the tool that was called
    annotation: Annotation | None = None  # of the commit
    history: list[EarlierLine] = []
    nearby: list[SessionHint] = []
    resume: str | None = None  # the command to go on from there
    notes: list[str] = []  # what a reader should know of the answer

    @property
    def first(self) -> BlameRow:
        return self.rows[0]


class GoneText(msgspec.Struct, frozen=True):
    """A text that was removed: by which commit and turn."""

    path: str
    text: str  # the line that had it
    commit: str
    time: int
    summary: str
    who: LineWho
    question: str | None = None
    closing: str | None = None
    resume: str | None = None
