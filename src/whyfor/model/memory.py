"""What is remembered of a session: its summary, observations, the commands it ran."""

from __future__ import annotations

from collections.abc import Iterable
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
StatementAction = Literal["write", "pin", "unpin", "wrong", "forget", "asked"]
TITLE_MAX = 120
PRINTED_MAX = 200  # characters of a tool's result that memory is made of


class Quote(msgspec.Struct, frozen=True):
    """Words of one event, cited: the event and where in its text they stand. Without a place they
    are no words of the text but what was recorded: a command, an item of a list."""

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
    concepts: tuple[str, ...] = ()  # names of things in the code
    commit: str | None = None  # the first that holds what the note is about
    anchors: tuple[str, ...] = ()  # files it is about: with another content it may not hold
    evidence: tuple[Quote, ...] = ()
    by: str = "derived"  # derived | model:NAME | agent | person
    pinned: bool = False
    replaces: str | None = None  # the key of a note that this one takes the place of


class ModelCall(msgspec.Struct, frozen=True):
    """That a model was asked about a session, and what came of it."""

    model: str
    sent: int  # tokens
    received: int
    cost: float | None  # None: no prices are set
    kept: int  # notes
    rejected: int  # notes that cite nothing they were shown
    outcome: str  # ok, or why there is no answer


class AskedSession(msgspec.Struct, frozen=True):
    """A session that the model was asked about."""

    name: str  # agent:id
    call: ModelCall


class ModelRound(msgspec.Struct, frozen=True):
    """What came of one round."""

    asked: list[AskedSession]
    stopped: str | None = None  # why not all were asked about
    hint: str = ""


class NoteStatement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person, an agent or a model said about a note: how it reads, that it is pinned, wrong,
    gone. With the action `asked`: that a model was asked about a session."""

    key: str  # of a note that was derived, or that this begins
    at: int
    by: str  # person | agent | model:NAME
    action: StatementAction
    text: str = ""  # with write; the note's type, files and the rest too
    type: ObservationType = "discovery"
    files: tuple[str, ...] = ()
    replaces: str | None = None
    project: str | None = None  # identity
    branch: str | None = None
    agent: str = ""  # the session that the note belongs to, if there is one
    session_id: str = ""
    turn: int = 0
    evidence: tuple[Quote, ...] = ()
    call: ModelCall | None = None  # with asked
    commit: str | None = None  # that last changed the files when it was written


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
    ok_seq: int = 0  # the event of that; 0: of several sessions, or none


class ProjectCommand(msgspec.Struct, frozen=True):
    """A command with its counts in all sessions of a project."""

    count: CommandCount
    sessions: int  # that ran it
    session: int  # the number of the one in which it passed last
    turn: int


class SearchCard(msgspec.Struct, frozen=True):
    """What a session was about, in few words: what a search for it looks at first."""

    prompts: str = ""
    closing: str = ""  # the agent's last words in each turn
    commits: str = ""  # messages it committed with
    learned: str = ""


class SessionMemory(msgspec.Struct, frozen=True):
    """All that is derived from one session."""

    summary: SessionSummary
    observations: tuple[Observation, ...]
    commands: tuple[CommandCount, ...]
    card: SearchCard = SearchCard()


class NoteStanding(msgspec.Struct, frozen=True):
    """Whether a note still holds, as far as git and later notes tell now."""

    changed: tuple[str, ...] = ()  # files it is about that have another content since
    elsewhere: bool = False  # it comes from a branch that is not part of the present one
    gone: str = ""  # why it is not told any more; empty: it is


class StoredObservation(msgspec.Struct, frozen=True):
    """An observation with the session it was made in; one that a person wrote has none."""

    observation: Observation
    agent: str
    session_id: str
    parent_session_id: str | None
    project: str | None  # identity
    branch: str | None
    superseded_by: str | None = None  # the key of the note that took its place
    standing: NoteStanding = NoteStanding()
    person: str | None = None  # whose session it was made in, on a team server

    @property
    def shown_state(self) -> str:
        """What a person is told first: that it is wrong, replaced or stale, before how it was
        known."""
        if self.observation.state == "refuted":
            return "refuted"
        if self.superseded_by:
            return "superseded"
        if self.standing.gone or self.standing.changed:
            return "stale"
        return self.observation.state


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
    pinned: bool = False  # only those
    current: bool = False  # only those that no other note replaces
    words: tuple[str, ...] = ()  # all of them stand in its title, narrative or facts
    numbers: tuple[int, ...] | None = None  # only of these sessions
    paths: tuple[str, ...] | None = None  # only about one of these files, as the agent named it


class NotePlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a note stands in a list, newest first."""

    at: int  # -1: unknown
    key: str


class NoteCounts(msgspec.Struct, frozen=True):
    """How many notes there are, of how many sessions, and how many of them still hold."""

    notes: int
    sessions: int
    current: int


class ProjectNotes(msgspec.Struct, frozen=True):
    """A project that something is remembered of."""

    identity: str
    notes: int
    last_at: int | None


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
    short: str = ""  # what is enough of its name
    branch: str | None = None


class BranchCommit(msgspec.Struct, frozen=True):
    """A commit of a branch, and what it was for."""

    sha: str
    at: int
    subject: str
    intent: str


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
    commits: tuple[BranchCommit, ...] = ()  # of the branch, newest first


class BlockLine(msgspec.Struct, frozen=True):
    """One line of the block, what it comes from, and why it is in it."""

    section: str
    text: str
    source: str  # a note's id, a session, run:COMMAND, file:FOLDER
    why: str
    files: tuple[str, ...] = ()  # that it names, below the project's top


class Injection(msgspec.Struct, frozen=True):
    """What a session was told of earlier ones, and what it made of that."""

    at: int  # ms
    part: str  # start | threads | prompt
    block: str  # of which text: the beginning of its hash
    tokens: int  # about
    sources: tuple[str, ...] = ()  # as in a BlockLine
    files: tuple[str, ...] = ()  # that it named, below the project's top
    files_used: tuple[str, ...] = ()  # those of them that the session then read or wrote
    fetched: tuple[str, ...] = ()  # those of the sources that it then asked Whyfor about


class MemoryUse(msgspec.Struct, frozen=True):
    """What sessions made of what they were told at one moment: at the start, after a compaction,
    or with a prompt."""

    part: str
    sessions: int
    times: int
    tokens: int  # about
    files: int  # named
    files_used: int  # and then read or written
    sources: int  # ids
    fetched: int  # and then looked up


class ToldSession(msgspec.Struct, frozen=True):
    """A session that was told a note when it began."""

    at: int  # ms
    agent: str
    session_id: str
    title: str | None  # None if the session itself is not kept


class MemoryBlock(msgspec.Struct, frozen=True):
    """What the next session is told: the text, and where each line of it comes from."""

    text: str  # empty if there is nothing to tell
    tokens: int  # about
    budget: int
    lines: tuple[BlockLine, ...]
    left_out: dict[str, int]  # lines that did not fit, by section
    files: tuple[str, ...] = ()  # that its lines name


def cut_title(text: str) -> str:
    """Return a text short enough for a title."""
    return text if len(text) <= TITLE_MAX else text[: TITLE_MAX - 1].rstrip() + "…"


def statement_id(said: NoteStatement) -> tuple[str, int, str]:
    """Return what tells a statement from all others."""
    return said.key, said.at, said.action


def apply_statements(note: Observation | None, said: Iterable[NoteStatement]) -> Observation | None:
    """Return a note as it is after what was said of it, in order; None if there is none or it was
    forgotten."""
    for statement in said:
        note = _applied(note, statement)
    return note


def _applied(note: Observation | None, said: NoteStatement) -> Observation | None:
    if said.action == "forget":
        return None
    if said.action == "asked":
        return note
    if said.action == "write":
        return _written(note, said)
    if note is None:
        return None
    if said.action == "wrong":
        return msgspec.structs.replace(note, state="refuted", pinned=False)
    return msgspec.structs.replace(note, pinned=said.action == "pin")


def _written(note: Observation | None, said: NoteStatement) -> Observation:
    first_line = said.text.strip().partition("\n")[0]
    return Observation(
        key=said.key,
        type=said.type,
        state="stated",
        title=cut_title(first_line),
        turn=said.turn,
        at=said.at if note is None else note.at,
        narrative=said.text,
        files_written=said.files,
        commit=said.commit,
        anchors=said.files,
        evidence=said.evidence if note is None else note.evidence,
        by=said.by,
        pinned=note is not None and note.pinned,
        replaces=said.replaces,
    )
