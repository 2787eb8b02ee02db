"""What is shared with a team: remotes, what waits to be sent, and what machines send."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.checkpoints import Checkpoint
from whyfor.model.memory import NoteStatement

SHARES = ("push", "all", "ask")
LOCAL = "local"  # the commit was not seen on the project's remote yet
WAITS = "waits"
SENT = "sent"
REFUSED = "refused"  # it will not leave unless a person does something
HELD = "held"  # a person wants it to stay here
COMMIT, SESSION = "commit", "session"
RETRACT = "retract"  # what a person takes back, and may share again
FORGET = "forget"  # what nobody may share again


class Remote(msgspec.Struct, frozen=True):
    """Where a project of this machine is shared, and on what terms."""

    project: str  # identity
    url: str
    team_project: int = 0  # its number on the server
    name: str = ""  # what the server calls the project
    share: str = "push"  # one of SHARES
    confirmed_at: int | None = None  # when a person saw what would leave, and agreed
    paused: bool = False


class OutboxItem(msgspec.Struct, frozen=True):
    """A commit, a session or a deletion that is to be sent."""

    id: int
    project: int
    kind: str  # commit | session | retract | forget
    name: str  # sha, or agent:id; for the last two, commit:sha or agent:id
    state: str
    added_at: int
    attempts: int = 0
    next_at: int = 0
    error: str | None = None
    sent_at: int | None = None
    size: int | None = None  # bytes of what it would send or sent
    redacted: int | None = None  # places
    digest: str | None = None  # of what was sent


class SentSource(msgspec.Struct, frozen=True):
    """What the server has of one source of a session."""

    agent: str
    path: str
    generation: int
    rules: str
    segments: list[tuple[int, int, str]]  # start, end, digest


class SyncTry(msgspec.Struct, frozen=True):
    """One try to send what waits."""

    at: int
    why: str
    project: str
    sent: int
    refused: int
    error: str | None
    took: int  # ms


# -- what machines send --------------------------------------------------------------------------


class UploadedSegment(msgspec.Struct, frozen=True):
    """Redacted bytes [start, end) of a source, whole records only."""

    start: int
    end: int
    digest: str  # SHA-256 of these bytes


class SessionUpload(msgspec.Struct, frozen=True):
    """One source of a session: its transcript, a subagent's, or a file beside it."""

    machine: str
    agent: str
    session_id: str
    path: str
    framing: str
    generation: int  # rises when what was sent before is to be replaced
    segments: tuple[UploadedSegment, ...]
    parent: str | None = None
    sidecar: str | None = None
    cwd: str | None = None


class UploadPlan(msgspec.Struct, frozen=True):
    """What a machine has to send before it can commit."""

    missing: tuple[str, ...]  # digests, each once
    generation: int  # that the server has; -1 if it has none
    stored: tuple[UploadedSegment, ...] = ()  # what the server has of that generation


class ReceivedUpload(msgspec.Struct, frozen=True):
    """What came of a commit; nothing if it was repeated."""

    segments: int  # that were new
    events: int
    replaced: bool  # an older generation is gone


class SharedNote(msgspec.Struct, frozen=True):
    """A note on a commit that somebody wrote, as the journal has it."""

    commit: str
    by: str
    at: int
    note: dict[str, Any]


class StoryUpload(msgspec.Struct, frozen=True):
    """A story, whole: the sources of its sessions, and what is told of its commit."""

    machine: str
    rules: str  # digest of the rules that secrets were looked for with
    sources: tuple[SessionUpload, ...]
    checkpoints: tuple[Checkpoint, ...] = ()
    # by agent:id, then by the seq that a checkpoint names: the event's key in what was sent
    keys: dict[str, dict[int, int]] = {}
    notes: tuple[SharedNote, ...] = ()
    statements: tuple[NoteStatement, ...] = ()  # what people said about notes of these sessions


class Retraction(msgspec.Struct, frozen=True):
    """What a person takes back: sessions (agent:id) and stories of commits."""

    sessions: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    forever: bool = False  # later uploads of it are refused, from anybody


class PlanRequest(msgspec.Struct, frozen=True):
    sources: tuple[SessionUpload, ...]


class PlanAnswer(msgspec.Struct, frozen=True):
    sources: tuple[UploadPlan, ...]


class CommitAnswer(msgspec.Struct, frozen=True):
    events: int  # that are new
    stories: int  # that changed


class SharedStory(msgspec.Struct, frozen=True):
    """What one person shared of a commit."""

    person: int
    who: str
    machine: str
    checkpoint: Checkpoint | None  # None: of a session that no commit was asked for
    matched: str = "sha"  # sha | patch
    sources: tuple[SessionUpload, ...] = ()
    # as in an upload: which events the checkpoint names
    keys: dict[str, dict[int, int]] = {}


STORY = "story"  # a story is new or has grown
FORGOTTEN = "forgotten"  # it was taken back
REPLACED = "replaced"  # what was sent of a session before is not to be read any more


class SharedChange(msgspec.Struct, frozen=True):
    id: int
    kind: str  # one of the above
    name: str
    person: int


class ChangesAnswer(msgspec.Struct, frozen=True):
    changes: tuple[SharedChange, ...]
    last: int  # the number to ask after next time


class RetractionAnswer(msgspec.Struct, frozen=True):
    retracted: int


class StoryLookup(msgspec.Struct, frozen=True):
    """Commits whose stories are asked for, by id, else by their changes."""

    commits: tuple[str, ...]
    patches: tuple[str, ...] = ()
    sources: bool = False  # also where the records of their sessions are


class TeamProjectName(msgspec.Struct, frozen=True):
    """A project of a team server, as somebody knows it."""

    id: int
    name: str
    role: str
    visibility: str


class TokenOwner(msgspec.Struct, frozen=True):
    """Whose a token is, and what it is good for."""

    name: str
    email: str
    scopes: tuple[str, ...]
    expires_at: int
    projects: tuple[TeamProjectName, ...] = ()
