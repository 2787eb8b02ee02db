"""What the stream sends as it happens."""

from __future__ import annotations

import msgspec

from whyfor.model.checkpoints import Checkpoint
from whyfor.model.events import StoredEvent
from whyfor.model.status import LiveStatus
from whyfor.model.wire.base import copy_fields
from whyfor.model.wire.status import WireStatus, status_fields

TEXT_MAX = 4000  # characters of an event that travel; all of them are in the session's events


class StreamEvent(msgspec.Struct, frozen=True):
    """An event as it happens."""

    session: str  # agent:id
    agent: str
    session_id: str
    parent_session_id: str | None
    project: str | None
    seq: int
    turn: int
    kind: str
    source: str
    confidence: str
    created_at: str | None
    observed_at: str | None
    actor: str
    name: str | None
    text: str
    cut: bool  # there is more of the text
    changed: bool  # it was told before, and is otherwise now


class StreamPart(msgspec.Struct, frozen=True, rename={"first": "from", "last": "to"}):
    session: str  # agent:id
    agent: str
    session_id: str
    first: int
    last: int


class StreamCommit(msgspec.Struct, frozen=True):
    """A commit whose story is new or otherwise; without a checkpoint it has none any more."""

    project: str | None
    commit: str
    subject: str | None
    checkpoint: str | None
    evidence: str | None
    superseded_by: str | None
    sessions: list[StreamPart]


class StreamStatus(WireStatus, frozen=True):
    session: str  # agent:id
    gone: bool  # it is not open any more


class SessionNames(msgspec.Struct, frozen=True):
    """Whose event it is."""

    agent: str
    session_id: str
    parent_session_id: str | None
    project: str | None

    @property
    def name(self) -> str:
        return f"{self.agent}:{self.session_id}"


def stream_event(found: StoredEvent, names: SessionNames, *, changed: bool) -> StreamEvent:
    return copy_fields(
        StreamEvent,
        found,
        **msgspec.structs.asdict(names),
        session=names.name,
        text=found.text[:TEXT_MAX],
        cut=len(found.text) > TEXT_MAX or found.whole_size > 0,
        changed=changed,
    )


def stream_commit(sha: str, project: str | None, found: Checkpoint | None) -> StreamCommit:
    if found is None:
        return StreamCommit(project, sha, None, None, None, None, [])
    parts = [copy_fields(StreamPart, part, session=part.name) for part in found.parts]
    return copy_fields(StreamCommit, found, commit=sha, checkpoint=found.id, sessions=parts)


def stream_status(found: LiveStatus, *, gone: bool) -> StreamStatus:
    return copy_fields(
        StreamStatus, found.status, **status_fields(found), session=found.name, gone=gone
    )
