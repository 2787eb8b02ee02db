"""A checkpoint: the sessions behind one commit, their ranges, and the evidence."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from whyfor.model.events import EventRef
from whyfor.model.ids import fold

# strongest first; nearby is a hint, never a link
EVIDENCE = ("person", "hook", "output", "content", "nearby")
# why a commit has no story
NO_SESSION = "no session kept here made this commit or wrote its lines"
NOT_THEN = "no session kept here was active before this commit"
BOT = "made by a bot"
TAGS = ("FEATURE", "BUGFIX", "REFACTORING", "TEST", "DOCS", "CHORE")


class WrittenLines(msgspec.Struct, frozen=True, array_like=True):
    """How many of the lines that a commit adds to a file come from one turn."""

    session: str  # agent:id; empty: a person, inferred
    seq: int  # the event of what was asked; 0: not known
    at: int  # when the last of them was written
    lines: int
    modified: int = 0  # those of them that were changed since


class ChangedFile(msgspec.Struct, frozen=True, array_like=True):
    path: str
    added: int
    removed: int
    # Only of what is shared: the machine that has the repository counts them anew.
    written: tuple[WrittenLines, ...] = ()


class Part(msgspec.Struct, frozen=True):
    """The part of one session in a commit: events from first to last, both included."""

    agent: str
    session_id: str
    evidence: str  # one of EVIDENCE but nearby
    confidence: str  # high | medium | low
    role: str  # made | wrote | rewrote | squashed (only through the commits it was squashed from)
    cut: int  # the event the link rests on: the commit's result, the last line written
    first: int
    last: int
    messages: int  # prompts and answers of the session up to here, without those it was given
    new_messages: int  # those of them since the session's last checkpoint
    prompts: int = 0  # real prompts in the range
    turns: int = 0  # that the range has a part of
    continued: bool = False  # the parent commit has a part of the same session
    lines: int = 0  # added lines the session wrote
    share: float | None = None  # of the commit's added lines
    why: str = ""
    # what a squash has of the session, if other commits have something in between
    pieces: tuple[tuple[int, int], ...] = ()

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Return the first and last event of each run of events that belongs to the commit."""
        return list(self.pieces) or [(self.first, self.last)]

    @property
    def name(self) -> str:
        """Return the full name of its session (`agent:id`)."""
        return f"{self.agent}:{self.session_id}"


class Annotation(msgspec.Struct, frozen=True):
    """Title, intent, alternatives, summary and tag of a commit: written by the agent or a person,
    or derived."""

    title: str
    intent: str
    alternatives: list[str]
    summary: str  # of the diff
    tag: str  # one of TAGS
    by: str  # derived | person | claude | codex | …


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of an annotation that somebody wrote; the others stay derived."""

    title: str | None = None
    intent: str | None = None
    alternatives: list[str] | None = None
    summary: str | None = None
    tag: str | None = None


class Checkpoint(msgspec.Struct, frozen=True):
    commit: str
    project: str  # identity
    subject: str
    author: str
    email: str
    authored_at: int
    committed_at: int
    parents: list[str]
    is_merge: bool
    patch_id: str | None
    files: list[ChangedFile]
    parts: list[Part]
    evidence: str | None  # the strongest of its parts
    confidence: str | None
    group_root: str  # the id of the group's first checkpoint; its own if it is that
    superseded_by: str | None  # the commit that took its place
    annotation: Annotation | None  # none for a merge
    squashed_from: list[str] = []  # the commits whose changes it holds, oldest first

    @property
    def id(self) -> str:
        return checkpoint_id(self.commit)


def checkpoint_id(commit: str) -> str:
    return f"ctx-{fold('checkpoint', commit) & 0xFFFFFFFFFFFFFFFF:016x}"


class CommitMark(msgspec.Struct, frozen=True):
    """What a list of commits needs to know of one: how it is linked, its tag, whose words are in
    it."""

    evidence: str | None
    tag: str | None
    agents: frozenset[str]
    branches: frozenset[str] = frozenset()  # that its sessions were on


class LinkedCommit(msgspec.Struct, frozen=True):
    """A commit with a story."""

    sha: str
    subject: str
    committed_at: int
    evidence: str
    confidence: str
    project: str
    note: Annotation | None


class StoryTitle(msgspec.Struct, frozen=True):
    """A commit with a story in one line."""

    sha: str
    id: str  # of the checkpoint
    title: str


class SeenCommit(NamedTuple):
    """A commit that was looked at: why it has no story, and hints, as JSON."""

    sha: str
    authored_at: int
    committed_at: int
    reason: str | None
    nearby: str | None


class ChangeRecord(msgspec.Struct, frozen=True):
    """What changed after it was stored: an event, or a commit's story."""

    number: int
    event: EventRef | None
    commit: str | None
    project: str | None  # of the commit
    sessions: set[int] = set()  # that have or had a part in the commit
