"""What an agent's package must provide, and the types it works with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec

from whyfor.agents.facts import AgentFacts
from whyfor.model.findings import Bucket, Record, Sink
from whyfor.model.flat import flatten
from whyfor.model.titles import TITLE_AGENT, TITLE_DERIVED, TITLE_PERSON, TITLE_PROMPT

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter

__all__ = [
    "MAX_DECODED",
    "TITLE_AGENT",
    "TITLE_DERIVED",
    "TITLE_PERSON",
    "TITLE_PROMPT",
    "Agent",
    "AnswerRequest",
    "Bucket",
    "FileAgent",
    "Framing",
    "OnError",
    "ProcessList",
    "Record",
    "RecordReader",
    "RecordStamp",
    "RegisteredProcess",
    "Rows",
    "Sink",
    "SourceShape",
    "as_dict",
    "as_int",
    "as_list",
    "as_str",
    "can_decode",
    "flatten",
    "get_dict",
    "get_int",
    "get_list",
    "get_str",
    "head_records",
    "walk",
]

MAX_DECODED = 32 << 20
"""Largest line that is decoded, in bytes. Real ones, pictures included, are a few MB."""
LARGE = 1 << 20  # bytes below which memory is not checked
_DOLLARS_MAX = 1_000_000.0  # no response costs more
# bytes of memory per byte of JSON: a character may take four, besides the text itself
_PER_BYTE = 5
_PER_VALUE = 80  # and for each value
_MAX_VALUES = 6_000_000  # in one line or document, half a GB of them; real ones have some thousands

Framing = Literal["lines", "document", "blob", "rows"]
OnError = Callable[[OSError], None]  # called for each directory that cannot be listed


class SourceShape(msgspec.Struct, frozen=True):
    """What kind of source a file is, detected from its content."""

    framing: Framing
    session_id: str
    parent: str | None = None  # the session this one is a subagent of
    # the kind of file beside a transcript: `result`, `meta`; None for a transcript
    sidecar: str | None = None
    cwd: str | None = None  # for agents whose records do not contain it


class Rows(msgspec.Struct, frozen=True):
    """New rows of one session in an agent's database as JSON lines, and the position to continue
    from."""

    session_id: str
    parent: str | None
    lines: bytes
    position: Record
    error: Exception | None = None  # why this session could not be read; the others are


class RecordStamp(msgspec.Struct):
    """When and where a record was written, and what it is. The capture filters decide by this
    whether it is stored. Times are in ms; None means the record does not say."""

    at: int | None = None  # when it was written
    since: int | None = None  # when what it describes began; usually the same
    until: int | None = None  # when it was last changed, if it says both
    cwd: str | None = None
    session_id: str | None = None
    retells: bool = False  # it repeats earlier records: a summary, a title, a rewritten history
    name: str = ""  # its id
    is_link: bool = False  # later records name it as their parent


class RecordReader(Protocol):
    """Turns the records of one source into events, in order."""

    state: Record
    """Plain JSON: what must survive until the source grows again."""

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        """Add what one record says to `out`; never raises on unexpected values."""


class RegisteredProcess(NamedTuple):
    """An entry of an agent's own list of running processes."""

    session_id: str
    cwd: str
    pid: int
    start: int  # clock ticks since boot; 0 where it does not say
    status: str  # as the agent calls it; empty at first
    waiting_for: str
    at: int  # ms, when the status began
    interactive: bool = False  # a person sits at it, as far as it says


AnswerRequest = Callable[[str, str, bool], bool]
"""Answers what a session asks: its id, the exact action, whether it is allowed; returns whether the
agent took the answer."""


class ProcessList(Protocol):
    """An agent's own list of its running processes."""

    @property
    def known(self) -> Mapping[str, RegisteredProcess]:
        """Return the entries by session id."""

    def look(self) -> list[RegisteredProcess]:
        """Return the entries that changed since the last call."""

    def running(self) -> Iterator[RegisteredProcess]:
        """Yield the entries whose process is alive."""


class Agent(Protocol):
    name: str
    """The word for it everywhere: `claude`, `codex`, …"""
    title: str
    """What people call it."""
    mutable: bool
    """Later records may replace what earlier ones said (same event key)."""
    lists: tuple[str, ...]
    """Arrays inside a record whose elements are messages by themselves."""
    local: bool
    """`find` in any folder below a root names what it would name there from the root."""
    facts: AgentFacts
    """Its tools, variables, hooks and marks."""
    rewritable: tuple[Framing, ...]
    """Of which framings its writer can continue the records; others it can only retell."""

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Return the directories (or databases) it writes to, following its environment
        variables."""

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        """Yield the files below a root that may be sources: transcripts first, then the files that
        belong to them."""

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        """Return what kind of source a file is, from its first bytes; None if it is not this
        agent's."""

    def reader(self, shape: SourceShape, state: Record) -> RecordReader: ...

    def stamp(self, record: Record) -> RecordStamp:
        """Return when and where a record was written. For a record with a list of messages, also of
        each message."""

    def alone(self, message: Record) -> Record:
        """Return an element of one of the `lists` as a record that the reader understands."""

    def begins(self, record: Record) -> bool:
        """Return whether a record is written before a prompt but belongs to the prompt's turn."""

    def under(self, record: Record) -> tuple[str, str] | None:
        """For agents whose records are not in order: return the id of a record's message, and the
        id of the message it belongs to or answers."""

    def rows(self, path: Path, positions: Mapping[str, Record]) -> Iterator[Rows]:
        """For databases: yield the new rows of each session since its position. Empty for agents
        with files."""

    def writer(self) -> SessionWriter | None:
        """Return what writes a session in the agent's own format; None if it cannot resume a
        session from a file."""

    def resume(self, session_id: str) -> str | None:
        """Return the command that resumes a session; the id is already quoted for a shell."""

    def processes(self, home: Path, env: Mapping[str, str]) -> ProcessList | None:
        """Return the agent's own list of running sessions; None if it keeps none."""

    def answers(self, home: Path, env: Mapping[str, str]) -> AnswerRequest | None:
        """Return what answers a session's request from outside; None if nothing can."""

    def owns_hook(self, payload: Record) -> bool:
        """Return whether a hook's payload comes from this agent. Other agents may run the hooks in
        its settings too."""

    def requested(self, payload: Record) -> Record:
        """Return what a hook's payload asks a person to allow: `tool`, `text`, `path`; empty if
        nothing."""


class FileAgent:
    """Defaults for agents that write plain files."""

    mutable = False
    lists: tuple[str, ...] = ()
    local = True
    rewritable: tuple[Framing, ...] = ("lines",)

    def alone(self, message: Record) -> Record:
        return message

    def begins(self, record: Record) -> bool:
        return False

    def under(self, record: Record) -> tuple[str, str] | None:
        return None

    def rows(self, path: Path, positions: Mapping[str, Record]) -> Iterator[Rows]:
        return iter(())

    def writer(self) -> SessionWriter | None:
        return None

    def resume(self, session_id: str) -> str | None:
        writer = self.writer()
        return writer.command(session_id) if writer else None

    def processes(self, home: Path, env: Mapping[str, str]) -> ProcessList | None:
        return None

    def answers(self, home: Path, env: Mapping[str, str]) -> AnswerRequest | None:
        return None

    def owns_hook(self, payload: Record) -> bool:
        return True

    def requested(self, payload: Record) -> Record:
        given = payload.get("tool_input")
        asks = payload.get("hook_event_name") in ("PermissionRequest", "PermissionDenied")
        if asks and isinstance(given, dict):
            return {"text": given.get("command"), "path": given.get("file_path")}
        return {}


def as_dict(value: object) -> Record:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_int(value: object) -> int | None:
    """Return an integer that a database can store, else None; damaged files may contain any
    value."""
    if isinstance(value, int) and not isinstance(value, bool) and -(2**53) < value < 2**53:
        return value
    return None


def as_str(value: object) -> str:
    return value if isinstance(value, str) else ""


def get_dict(record: Record, name: str) -> Record:
    return as_dict(record.get(name))


def get_list(record: Record, name: str) -> list[Any]:
    return as_list(record.get(name))


def get_int(record: Record, name: str) -> int | None:
    return as_int(record.get(name))


def get_dollars(record: Record, name: str) -> float | None:
    """Return what an agent says something cost; None if it does not say, or says 0, which they
    write for what they have no price of."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value < _DOLLARS_MAX else None


def get_str(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def can_decode(data: bytes) -> bool:
    """Return whether there is enough memory to decode this JSON.

    The decoder crashes when memory runs out, so the memory is requested first and released again.
    """
    if len(data) < LARGE:
        return True
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    if values > _MAX_VALUES:
        return False
    try:
        bytes(len(data) * _PER_BYTE + values * _PER_VALUE)
    except MemoryError:
        return False
    return True


def head_records(head: bytes, limit: int = 50) -> Iterator[Record]:
    """Yield the objects on the first complete lines of a file, to detect what it is."""
    for line in head.split(b"\n", limit)[:limit]:
        if len(line) > MAX_DECODED or not can_decode(line):
            continue
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = _with_halves(line)
        if isinstance(value, dict):
            yield value


def _with_halves(line: bytes) -> object:
    """Return the value of a line that contains half a surrogate pair, as a path that is not UTF-8
    may; else None."""
    if b"\\ud" not in line and b"\\uD" not in line:
        return None
    import json  # here: lines that need it are rare

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def walk(root: Path, suffixes: tuple[str, ...], onerror: OnError) -> Iterator[Path]:
    """Yield the files below a directory with one of these suffixes, in a stable order."""
    for folder, folders, files in os.walk(root, onerror=onerror):
        folders.sort()
        for name in sorted(files):
            if name.endswith(suffixes):
                yield Path(folder, name)
