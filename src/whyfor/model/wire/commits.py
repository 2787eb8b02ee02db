"""Commits and their stories, as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.checkpoints import Annotation, ChangedFile, Checkpoint, Part
from whyfor.model.events import StoredEvent
from whyfor.model.reports import (
    CommitRange,
)
from whyfor.model.sessions import Session
from whyfor.model.stories import CommitStory, FullStory, StoryLine
from whyfor.model.times import to_iso
from whyfor.model.wire.base import copy_fields
from whyfor.model.wire.sessions import WireCost, WireSession, WireTokens, wire_spent


class WireHint(msgspec.Struct, frozen=True):
    agent: str
    session_id: str
    why: str


class WireFile(msgspec.Struct, frozen=True):
    path: str
    added: int
    removed: int


class WireAnnotation(msgspec.Struct, frozen=True):
    title: str
    intent: str
    alternatives: list[str]
    summary: str
    tag: str
    by: str
    files: list[WireFile]


class WireCommitNote(msgspec.Struct, frozen=True):
    title: str
    intent: str
    alternatives: list[str]
    summary: str
    tag: str
    by: str


class WireUnlinkedSession(msgspec.Struct, frozen=True):
    agent: str
    session_id: str
    at: str


class WirePart(msgspec.Struct, frozen=True, rename={"first": "from", "last": "to"}):
    agent: str
    session_id: str
    first: int
    last: int
    messages: int
    new_messages: int
    continued_from_parent: bool
    prompts: int
    turns: int
    evidence: str
    confidence: str
    role: str
    lines: int | None
    share: float | None
    why: str
    ranges: list[tuple[int, int]]


class WireCheckpoint(msgspec.Struct, frozen=True):
    id: str
    group_root: str
    is_merge: bool
    evidence: str | None
    confidence: str | None
    superseded_by: str | None
    squashed_from: list[str]
    annotation: WireAnnotation | None
    sessions: list[WirePart]


class WireCommit(msgspec.Struct, frozen=True, rename={"person": "from"}):
    commit: str
    subject: str
    author: str
    committed_at: str | None
    checkpoint: WireCheckpoint | None
    reason: str | None
    nearby: list[WireHint]
    note: WireCommitNote | None
    unlinked: list[WireUnlinkedSession]
    person: str | None  # who shared the story; null: it is kept here, or there is none


class WireSaid(msgspec.Struct, frozen=True):
    role: str
    by: str
    agent: str
    session_id: str
    turn: int
    seq: int
    created_at: str | None
    text: str


class WireStory(WireCommit, frozen=True):
    files: list[WireFile]
    related: list[WireSaid]
    tokens: WireTokens | None
    cost: WireCost | None
    group: list[str]
    reverts: str | None


class WireLine(msgspec.Struct, frozen=True):
    """Something said or done in the range of a commit."""

    role: str
    kind: str
    text: str
    created_at: str | None
    agent: str
    session_id: str
    seq: int
    name: str | None


class WireWholeStory(WireStory, frozen=True):
    conversation: list[WireLine]


class WireRangeSession(WireSession, frozen=True):
    """A session with a part in a range of commits."""

    new_messages: int


class WireRange(msgspec.Struct, frozen=True):
    commits: list[WireCommit]
    sessions: list[WireRangeSession]
    messages: int
    tokens: WireTokens
    cost: WireCost
    prompts: list[WireSaid]


class WireTimeline(msgspec.Struct, frozen=True):
    project: str
    branches: list[str]
    items: list[WireCommit]
    next: str | None


def wire_commit(found: CommitStory) -> WireCommit:
    return WireCommit(**_commit(found))


def _commit(found: CommitStory) -> dict[str, Any]:
    return {
        "commit": found.commit.sha,
        "subject": found.commit.subject,
        "author": found.commit.author,
        "committed_at": to_iso(found.commit.committed_at),
        "checkpoint": wire_checkpoint(found.checkpoint) if found.checkpoint else None,
        "reason": found.reason,
        "nearby": [WireHint(**hint) for hint in found.nearby],
        "note": _note(found.annotation),
        "unlinked": [
            WireUnlinkedSession(one.agent, one.session_id, to_iso(one.at) or "")
            for one in found.unlinked
        ],
        "person": found.person,
    }


def _note(found: Annotation | None) -> WireCommitNote | None:
    """What somebody wrote; what is only derived is no note."""
    return copy_fields(WireCommitNote, found) if found and found.by != "derived" else None


def wire_checkpoint(found: Checkpoint) -> WireCheckpoint:
    note = found.annotation
    return copy_fields(
        WireCheckpoint,
        found,
        annotation=copy_fields(WireAnnotation, note, files=_files(found.files)) if note else None,
        sessions=[_part(part) for part in found.parts],
    )


def _files(found: list[ChangedFile]) -> list[WireFile]:
    return [copy_fields(WireFile, file) for file in found]


def _part(found: Part) -> WirePart:
    return copy_fields(
        WirePart, found, continued_from_parent=found.continued, lines=found.lines or None
    )


def wire_said(found: StoryLine) -> WireSaid:
    return copy_fields(WireSaid, found)


def wire_line(found: StoredEvent, part: Part) -> WireLine:
    return copy_fields(
        WireLine, found, role=found.actor, agent=part.agent, session_id=part.session_id
    )


def wire_story(found: FullStory) -> WireStory:
    """Without the conversation, which may be long."""
    return WireStory(**_story(found))


def wire_whole_story(found: FullStory, conversation: list[WireLine]) -> WireWholeStory:
    return WireWholeStory(**_story(found), conversation=conversation)


def _story(found: FullStory) -> dict[str, Any]:
    known = found.told.checkpoint
    spent: dict[str, Any] = {"tokens": None, "cost": None}
    if known and known.parts:
        spent = wire_spent(found.tokens)
    return {
        **_commit(found.told),
        "files": _files(known.files) if known else [],
        "related": [wire_said(each) for each in found.said],
        **spent,
        "group": [other.commit for other in found.group],
        "reverts": found.reverts.commit.sha if found.reverts else None,
    }


def wire_commit_range(found: CommitRange) -> WireRange:
    return WireRange(
        [wire_commit(each) for each in found.commits],
        [_range_session(each, number) for each, number in found.sessions],
        found.messages,
        **wire_spent(found.tokens),
        prompts=[wire_said(each) for each in found.prompts],
    )


def _range_session(found: Session, new_messages: int) -> WireRangeSession:
    return copy_fields(
        WireRangeSession, found, **wire_spent(found.tokens), new_messages=new_messages
    )
