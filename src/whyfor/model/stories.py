"""A commit with its story: which sessions it came from, and what was said for it."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.checkpoints import Checkpoint
from whyfor.model.sessions import Session, Tokens


class Commit(msgspec.Struct, frozen=True):
    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored_at: int  # ms; survives a rebase
    committed_at: int  # ms; does not
    subject: str
    body: str

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


class CommitStory(msgspec.Struct, frozen=True):
    """A commit and its story, or why it has none."""

    commit: Commit
    checkpoint: Checkpoint | None
    reason: str | None
    nearby: list[dict[str, Any]] = []  # hints, never links
    beside: list[Checkpoint] = []  # of its group, found only now


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
