"""What is remembered of a session: its summary, observations, the commands it ran."""

from __future__ import annotations

from typing import Literal

import msgspec

from whyfor.model.query import Filters

ObservationType = Literal[
    "bugfix",
    "feature",
    "refactor",
    "change",
    "decision",
    "discovery",
    "gotcha",
    "correction",
    "rule",
    "command",
]
ObservationState = Literal["verified", "stated", "hypothesis", "refuted"]


class Quote(msgspec.Struct, frozen=True):
    """Words of one event, cited: the event and where in its text they stand."""

    seq: int
    start: int
    end: int
    text: str


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing worth remembering, with the events it comes from."""

    key: str  # stable: made of the session, the first event and the rule
    type: ObservationType
    state: ObservationState
    title: str
    turn: int
    at: int | None
    facts: tuple[str, ...] = ()  # what was recorded: commands, exit codes, commits
    narrative: str = ""  # what somebody said, as a quote
    files_read: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    evidence: tuple[Quote, ...] = ()
    by: str = "derived"  # derived | model:NAME | agent | person


class SessionSummary(msgspec.Struct, frozen=True):
    """A session in five parts; each part quotes what was said. Empty: nothing was said of it."""

    request: tuple[Quote, ...] = ()
    investigated: tuple[str, ...] = ()  # files read and not written
    learned: tuple[Quote, ...] = ()
    completed: tuple[Quote, ...] = ()
    next_steps: tuple[Quote, ...] = ()


class CommandCount(msgspec.Struct, frozen=True):
    """A command that builds, tests or checks, and how often it succeeded."""

    family: str
    command: str  # as it was run last
    runs: int  # also those whose exit code a pipe or a later command hid
    ok: int
    failed: int
    last_ok: int | None  # when


class SessionMemory(msgspec.Struct, frozen=True):
    """All that is derived from one session."""

    summary: SessionSummary
    observations: tuple[Observation, ...]
    commands: tuple[CommandCount, ...]


class StoredObservation(msgspec.Struct, frozen=True):
    """An observation with the session it was made in."""

    observation: Observation
    agent: str
    session_id: str
    parent_session_id: str | None
    project: str | None  # identity
    branch: str | None


class WaitingSession(msgspec.Struct, frozen=True):
    """A session whose memory is to be made, from its first own event to its last."""

    number: int
    agent: str
    session_id: str
    first_seq: int
    last_seq: int
    subagent: bool = False


class MemoryFilter(msgspec.Struct, frozen=True):
    """Which observations: those of some sessions, types, states, or about a file."""

    sessions: Filters = Filters()
    types: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    file: str | None = None  # its path, or the end of it


class TouchedFile(msgspec.Struct, frozen=True):
    """A file that sessions of a project read or wrote."""

    path: str  # as the agent named it
    last_at: int | None
    sessions: int
    written: bool


class PastSession(msgspec.Struct, frozen=True):
    """A session in one line: what was asked, and what came of it."""

    name: str  # agent:id
    at: int | None
    request: str
    outcome: str
    next_steps: tuple[str, ...] = ()


class BlockMaterial(msgspec.Struct, frozen=True):
    """What the next session in a project could be told, the most useful first in each part."""

    project: str
    branch: str | None = None
    rules: tuple[StoredObservation, ...] = ()
    sessions: tuple[PastSession, ...] = ()
    findings: tuple[StoredObservation, ...] = ()
    failures: tuple[StoredObservation, ...] = ()
    commands: tuple[CommandCount, ...] = ()
    files: tuple[str, ...] = ()  # below the project's top
    changed: tuple[str, ...] = ()  # files that differ from HEAD now


class BlockLine(msgspec.Struct, frozen=True):
    """One line of the block, what it comes from, and why it is in it."""

    section: str
    text: str
    source: str  # a note's id, a session, a command, a folder
    why: str


class MemoryBlock(msgspec.Struct, frozen=True):
    """What the next session is told: the text, and where each line of it comes from."""

    text: str  # empty if there is nothing to tell
    tokens: int  # about
    budget: int
    lines: tuple[BlockLine, ...]
    left_out: dict[str, int]  # lines that did not fit, by section
