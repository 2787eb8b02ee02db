"""A file for its page: its versions, its lines in runs of one writer, and those who wrote them."""

from __future__ import annotations

import msgspec

from whyfor.model.blame import BlameRow
from whyfor.model.events import SpokenWord
from whyfor.model.memory import StoredObservation
from whyfor.model.sessions import Person, Project


class VersionChoice(msgspec.Struct, frozen=True):
    """A commit that changed the file."""

    sha: str
    path: str  # where the file is in it
    subject: str
    at: int


class FileStory(msgspec.Struct, frozen=True):
    """A commit that changed the file, as members shared it with a team."""

    sha: str
    subject: str
    at: int
    intent: str
    added: int
    removed: int
    agents: tuple[str, ...] = ()
    people: tuple[Person, ...] = ()


class CardCommit(msgspec.Struct, frozen=True):
    """A commit that lines of a card come from, and how it is linked to their session."""

    sha: str
    summary: str
    evidence: str = ""
    confidence: str = ""


class WriterCard(msgspec.Struct):
    """One turn, one person, or what is unknown: who wrote some of the lines."""

    kind: str  # agent | modified | person | unknown
    name: str  # of the agent, or of the person
    label: str  # Cc T3, you, Mika, ?
    lines: int = 0
    at: int = 0  # ms; of the newest of its lines
    is_you: bool = False
    session_id: str = ""
    turn: int | None = None
    asked: SpokenWord | None = None
    question: str | None = None
    closing: str | None = None
    reason: str = ""  # why it is unknown
    commits: list[CardCommit] = []


class LineSpan(msgspec.Struct, frozen=True):
    """Lines that stand together and have the same writer."""

    first: int
    last: int
    card: WriterCard
    rows: list[BlameRow]

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def evidence(self) -> dict[str, int]:
        """Return how many of its lines are known how."""
        found: dict[str, int] = {}
        for row in self.rows:
            if row.who.evidence:
                found[row.who.evidence] = found.get(row.who.evidence, 0) + 1
        return found


class LineShare(msgspec.Struct, frozen=True):
    """How many of a file's lines are whose."""

    kind: str
    name: str
    lines: int
    is_you: bool = False


class FilePage(msgspec.Struct, frozen=True):
    """All that the page of a file shows. Without lines, `state` says why."""

    project: Project
    path: str
    branch: str | None = None
    state: str = (
        # not-text | too-large | link | submodule | directory | none | no-git | no-commit | shared
        ""
    )
    asked: str = ""  # the revision that was asked for, if git does not have it
    at: VersionChoice | None = None
    versions: list[VersionChoice] = []
    more_versions: bool = False
    removed: VersionChoice | None = None  # the commit that took the file away, if it is gone
    renamed: str | None = None
    total: int = 0
    first: int = 1  # of the lines that are shown
    spans: list[LineSpan] = []
    shares: list[LineShare] = []
    reasons: dict[str, int] = {}  # of the unknown lines
    is_whole: bool = True  # all lines were counted, not only those shown
    cards: list[WriterCard] = []
    selected: LineSpan | None = None
    notes: list[StoredObservation] = []
    stories: list[FileStory] = []  # on a team server, in the place of versions
    remarks: list[str] = []

    @property
    def known(self) -> int:
        """Return how many lines have a known writer."""
        return sum(share.lines for share in self.shares if share.kind != "unknown")

    @property
    def counted(self) -> int:
        return sum(share.lines for share in self.shares)

    @property
    def last(self) -> int:
        """Return the last line that is shown."""
        return self.spans[-1].last if self.spans else self.first
