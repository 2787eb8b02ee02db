"""A checkpoint: what was said for one commit, in which sessions, and how sure we are."""

from __future__ import annotations

import msgspec

from whyfor.model.ids import fold

# strongest first; nearby is a hint, never a link
EVIDENCE = ("person", "hook", "output", "content", "nearby")
TAGS = ("FEATURE", "BUGFIX", "REFACTORING", "TEST", "DOCS", "CHORE")


class ChangedFile(msgspec.Struct, frozen=True, array_like=True):
    path: str
    added: int
    removed: int


class Part(msgspec.Struct, frozen=True):
    """What one session gave to a commit: events first to last, both included."""

    agent: str
    session_id: str
    evidence: str  # one of EVIDENCE but nearby
    confidence: str  # high | medium | low
    role: str  # made | wrote | rewrote
    cut: int  # the event the link rests on: the commit's result, the last line written
    first: int
    last: int
    messages: int  # prompts and answers of the session up to here
    new_messages: int  # those of them since the session's last checkpoint
    prompts: int = 0  # real prompts in the range
    turns: int = 0  # that the range has a part of
    continued: bool = False  # the parent commit has a part of the same session
    lines: int = 0  # changed lines the session wrote, for content
    share: float | None = None  # of the commit's changed lines
    why: str = ""

    @property
    def name(self) -> str:
        """Of its session, whole."""
        return f"{self.agent}:{self.session_id}"


class Annotation(msgspec.Struct, frozen=True):
    """Written by the agent, by a person, or derived from what they said."""

    title: str
    intent: str
    alternatives: list[str]
    summary: str  # of the diff
    tag: str  # one of TAGS
    by: str  # derived | person | claude | codex | …


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of an annotation somebody wrote; the rest stays derived."""

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

    @property
    def id(self) -> str:
        return checkpoint_id(self.commit)


def checkpoint_id(commit: str) -> str:
    return f"ctx-{fold('checkpoint', commit) & 0xFFFFFFFFFFFFFFFF:016x}"
