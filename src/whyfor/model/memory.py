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


class MemoryFilter(msgspec.Struct, frozen=True):
    """Which observations: those of some sessions, types, states, or about a file."""

    sessions: Filters = Filters()
    types: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    file: str | None = None  # its path, or the end of it
