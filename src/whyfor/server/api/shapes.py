"""What the API answers, as structs: the same words as the commands' --json, with a schema."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

_Item = TypeVar("_Item")


class Page(msgspec.Struct, Generic[_Item], frozen=True):
    items: list[_Item]
    next: str | None  # give it as `after` for the items that follow; null: these are the last


class Tokens(msgspec.Struct, frozen=True):
    input: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None


class Session(msgspec.Struct, frozen=True):
    agent: str
    session_id: str
    project: str | None
    cwd: str | None
    branch: str | None
    title: str | None
    started_at: str | None
    ended_at: str | None
    prompts: int
    messages: int
    tool_calls: int
    tokens: Tokens
    models: list[str]
    files_modified: list[str]
    parent_session_id: str | None
    subagent: str | None
    unparsed: int


class Approval(msgspec.Struct, frozen=True):
    kind: str
    asked_at: str | None
    tool: str | None
    action: str | None
    path: str | None
    call: str | None
    subagent: str | None
    cut: bool
    certain: bool


class Standing(msgspec.Struct, frozen=True):
    """What an open session does now, and how we know."""

    agent: str
    session_id: str
    parent_session_id: str | None
    project: str | None
    branch: str | None
    title: str | None
    phase: str
    evidence: str
    confidence: str
    since: str | None
    heard_at: str | None
    activity: str | None
    activity_at: str | None
    approval: Approval | None
    questions: list[str]
    subagent: bool
    interrupted: bool
    failed: str | None
    summary: str | None
    pid: int | None


class SessionDetail(msgspec.Struct, frozen=True):
    session: Session
    subagents: list[Session]
    status: Standing | None  # null: it is not open


class Event(msgspec.Struct, frozen=True):
    seq: int
    turn: int
    kind: str
    source: str
    confidence: str
    created_at: str | None
    observed_at: str | None
    actor: str
    text: str
    name: str | None
    data: dict[str, Any] | None


class Events(msgspec.Struct, frozen=True):
    items: list[Event]
    next: int | None  # give it as `after`; null: nothing follows yet


class Turns(msgspec.Struct, frozen=True):
    items: list[dict[str, Any]]
    next: int | None  # give it as `after`; null: nothing follows yet


class Summary(msgspec.Struct, frozen=True):
    """The last turns, each on one line."""

    current: str
    recent: str
    prompt: str


class Project(msgspec.Struct, frozen=True):
    identity: str
    evidence: str
    name: str
    remote: str | None
    root_commit: str | None
    path: str | None
    sessions: int
    last_at: str | None
    here: bool  # its repository can be asked for commits


class Hint(msgspec.Struct, frozen=True):
    agent: str
    session_id: str
    why: str


class File(msgspec.Struct, frozen=True):
    path: str
    added: int
    removed: int


class Annotation(msgspec.Struct, frozen=True):
    title: str
    intent: str
    alternatives: list[str]
    summary: str
    tag: str
    by: str
    files: list[File]


class Part(msgspec.Struct, frozen=True, rename={"first": "from", "last": "to"}):
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


class Checkpoint(msgspec.Struct, frozen=True):
    id: str
    group_root: str
    is_merge: bool
    evidence: str | None
    confidence: str | None
    superseded_by: str | None
    annotation: Annotation | None
    sessions: list[Part]


class Commit(msgspec.Struct, frozen=True):
    commit: str
    subject: str
    author: str
    committed_at: str | None
    checkpoint: Checkpoint | None
    reason: str | None
    nearby: list[Hint]


class Timeline(msgspec.Struct, frozen=True):
    project: str
    branches: list[str]
    items: list[Commit]
    next: str | None


class Said(msgspec.Struct, frozen=True):
    role: str
    by: str
    agent: str
    session_id: str
    turn: int
    seq: int
    created_at: str | None
    text: str


class Story(msgspec.Struct, frozen=True):
    commit: str
    subject: str
    author: str
    committed_at: str | None
    checkpoint: Checkpoint | None
    reason: str | None
    nearby: list[Hint]
    files: list[File]
    related: list[Said]
    tokens: Tokens | None
    group: list[str]
    reverts: str | None


class Line(msgspec.Struct, frozen=True):
    role: str
    kind: str
    text: str
    created_at: str | None
    agent: str
    session_id: str
    seq: int
    name: str | None


class Lines(msgspec.Struct, frozen=True):
    items: list[Line]
    next: int | None  # give it as `after`; null: these are the last


class Hit(msgspec.Struct, frozen=True):
    agent: str
    session_id: str
    seq: int
    turn: int
    kind: str
    created_at: str | None
    project: str | None
    title: str | None
    snippet: str
    score: float
    marks: list[tuple[int, int]]  # where in the snippet the words stand


class Capture(msgspec.Struct, frozen=True):
    agent: str
    title: str
    last_record_at: str | None
    last_hook_at: str | None


class Health(msgspec.Struct, frozen=True):
    version: str
    agents: list[Capture]
    paused: list[dict[str, Any]]
    trouble: list[str]  # what keeps this server from being up to date; empty is fine
    listeners: int


class Items(msgspec.Struct, Generic[_Item], frozen=True):
    items: list[_Item]
