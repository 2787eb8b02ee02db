"""A commit with its story: which sessions it came from, and what was said for it."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.checkpoints import Annotation, Checkpoint
from whyfor.model.sessions import Session, Tokens

MERGE = "context_reset"  # a reason, as programs get it
UNLINKED = "unlinked by a person"
_MERGE_TEXT = "it is a merge, which has no conversation of its own"


class Commit(msgspec.Struct, frozen=True):
    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored_at: int  # ms; survives a rebase
    committed_at: int  # ms; does not
    subject: str
    body: str
    committer: str = ""
    committer_email: str = ""

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


def stored_commit(kept: Checkpoint) -> Commit:
    """Return what is stored of a commit, which git may not have any more."""
    return Commit(
        kept.commit,
        tuple(kept.parents),
        kept.author,
        kept.email,
        kept.authored_at,
        kept.committed_at,
        kept.subject,
        "",
    )


class UnlinkedSession(msgspec.Struct, frozen=True):
    """A session that a person took off a commit."""

    agent: str
    session_id: str
    at: int


class CommitStory(msgspec.Struct, frozen=True):
    """A commit and its story, or why it has none."""

    commit: Commit
    checkpoint: Checkpoint | None
    reason: str | None
    nearby: list[dict[str, Any]] = []  # hints, never links
    beside: list[Checkpoint] = []  # of its group, found only now
    noted: Annotation | None = None  # what somebody wrote about a commit without a story
    unlinked: list[UnlinkedSession] = []
    person: str | None = None  # who shared the story, if it is not kept here

    @property
    def annotation(self) -> Annotation | None:
        """Return what its checkpoint says it is for, else what somebody wrote about it."""
        kept = self.checkpoint.annotation if self.checkpoint else None
        return kept or self.noted

    @property
    def reason_text(self) -> str:
        """Why it has no story, in words for people."""
        return _MERGE_TEXT if self.reason == MERGE else self.reason or "the reason is unknown"


class StoryLine(msgspec.Struct, frozen=True):
    """One statement (request, answer, closing words) in a commit's story."""

    role: str  # request | answer | question | closing words
    by: str  # person | agent
    agent: str
    session_id: str
    turn: int
    seq: int
    created_at: int | None
    text: str


class FullStory(msgspec.Struct, frozen=True):
    told: CommitStory
    said: list[StoryLine]
    sessions: dict[str, Session]  # by agent:id
    tokens: Tokens
    group: list[Checkpoint]  # all of its group, oldest first
    reverts: CommitStory | None = None


class CommitFilter(msgspec.Struct, frozen=True):
    """Of a project's commits."""

    branch: str | None = None  # none: where HEAD is; "*": all of them
    author: str | None = None  # part of a name or an address
    agent: str | None = None
    tag: str | None = None
    story: bool | None = None
    since: int | None = None
    until: int | None = None
    task: str | None = None
    commits: frozenset[str] | None = None  # those that came of the task; None: any

    def fits(self, story: CommitStory) -> bool:
        commit, checkpoint = story.commit, story.checkpoint
        parts = checkpoint.parts if checkpoint else []
        note = story.annotation
        return (
            (not self.author or self.author.lower() in f"{commit.author} {commit.email}".lower())
            and (not self.agent or any(part.agent == self.agent for part in parts))
            and (not self.tag or (note is not None and note.tag == self.tag))
            and (self.story is None or bool(parts) == self.story)
            and (self.since is None or commit.committed_at >= self.since)
            and (self.until is None or commit.committed_at <= self.until)
            and (self.commits is None or commit.sha in self.commits)
        )


def undo_command(sha: str) -> str:
    """Return what a person types to take back every unlink of a commit."""
    return f"whyfor unlink --undo {sha[:10]}"
