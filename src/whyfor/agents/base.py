"""What Whyfor asks of an agent's module, and what the module hands back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec

from whyfor.agents.facts import AgentFacts
from whyfor.model.findings import (
    TITLE_AGENT,
    TITLE_DERIVED,
    TITLE_PERSON,
    TITLE_PROMPT,
    Bucket,
    Record,
    Sink,
)

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter

__all__ = [
    "MAX_DECODED",
    "TITLE_AGENT",
    "TITLE_DERIVED",
    "TITLE_PERSON",
    "TITLE_PROMPT",
    "Agent",
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
_LARGE = 1 << 20  # bytes below which memory is not asked for
# bytes of memory for one of JSON: a character may take four, beside the text it stands in
_PER_BYTE = 5
_PER_VALUE = 80  # and for each value
_MAX_VALUES = 6_000_000  # in one line or document, half a GB of them; real ones have some thousands

Framing = Literal["lines", "document", "blob", "rows"]
OnError = Callable[[OSError], None]  # told of each folder that cannot be listed


class SourceShape(msgspec.Struct, frozen=True):
    """What a file turned out to be, judged by its content."""

    framing: Framing
    session_id: str
    parent: str | None = None  # the session this one is a subagent of
    # what it adds to a session, if it is not a transcript: `result`, `meta`
    sidecar: str | None = None
    cwd: str | None = None  # for agents whose records do not say it


class Rows(msgspec.Struct, frozen=True):
    """New rows of one session in an agent's database, as JSON lines, and where to go on next
    time."""

    session_id: str
    parent: str | None
    lines: bytes
    position: Record
    error: Exception | None = None  # why this session could not be read; the others are


class RecordStamp(msgspec.Struct):
    """What one record says about itself, whatever it tells: by this it is decided whether it may
    be stored. Times are in ms; None is not said."""

    at: int | None = None  # when it was written
    since: int | None = None  # when what it tells began: mostly the same
    until: int | None = None  # when it was last changed, if it says both
    cwd: str | None = None
    session_id: str | None = None
    retells: bool = False  # a summary, a title, a history written anew: of records long before it
    name: str = ""  # its own id
    is_link: bool = False  # records after it name it as the one before them


class RecordReader(Protocol):
    """Turns the records of one source into events, in order."""

    state: Record
    """Plain JSON: what must survive until the source grows again."""

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        """Understand one record; never raises on odd shapes inside it."""


class RegisteredProcess(NamedTuple):
    """What a process of an agent says of itself."""

    session_id: str
    cwd: str
    pid: int
    start: int  # clock ticks since boot; 0 where it does not say
    status: str  # in the agent's word; empty in its first moments
    waiting_for: str
    at: int  # ms, when the status began


class ProcessList(Protocol):
    """An agent's own list of its processes."""

    @property
    def known(self) -> Mapping[str, RegisteredProcess]:
        """By session."""

    def look(self) -> list[RegisteredProcess]:
        """Return what changed since the last look."""

    def running(self) -> Iterator[RegisteredProcess]:
        """Those whose process is alive."""


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
        """Folders (or databases) it writes to, its environment overrides respected."""

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        """Files below a root worth a look: transcripts first, what hangs on them after."""

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        """What this file is, by its first bytes; None if it is none of ours."""

    def reader(self, shape: SourceShape, state: Record) -> RecordReader: ...

    def stamp(self, record: Record) -> RecordStamp:
        """When and where a record, or a message of its own in one, was written."""

    def alone(self, message: Record) -> Record:
        """An element of such a list, as a record that the reader understands."""

    def begins(self, record: Record) -> bool:
        """Whether a record stands before a prompt and belongs to its turn already."""

    def under(self, record: Record) -> tuple[str, str] | None:
        """Where records come in no order: a record's message, and the one it is a part of or an
        answer to."""

    def rows(self, path: Path, positions: Mapping[str, Record]) -> Iterator[Rows]:
        """For databases: what is new in each session since its position. Empty for all others."""

    def writer(self) -> SessionWriter | None:
        """What writes a session in its own format; None if it cannot resume one from a file."""

    def resume(self, session_id: str) -> str | None:
        """The command that resumes a session; the id is quoted for a shell already."""

    def processes(self, home: Path, env: Mapping[str, str]) -> ProcessList | None:
        """Its own list of the sessions that run now; None if it keeps none."""

    def owns_hook(self, payload: Record) -> bool:
        """Whether a hook's payload is its own; others may run the hooks in its settings too."""

    def requested(self, payload: Record) -> Record:
        """What a hook's payload asks a person to allow: `tool`, `text`, `path`; empty if
        nothing."""


class FileAgent:
    """The parts that agents with plain files share."""

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

    def owns_hook(self, payload: Record) -> bool:
        return True

    def requested(self, payload: Record) -> Record:
        given = payload.get("tool_input")
        if payload.get("hook_event_name") == "PermissionRequest" and isinstance(given, dict):
            return {"text": given.get("command")}
        return {}


def as_dict(value: object) -> Record:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_int(value: object) -> int | None:
    """A whole number that a database can hold; a damaged file may claim any."""
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


def get_str(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def flatten(value: object, limit: int = 200_000) -> str:
    """The words in a tool's input: its string values, one per line, without JSON's escapes."""
    if isinstance(value, str):
        return value
    out: list[str] = []
    todo: list[object] = [value]
    while todo and limit > 0:
        item = todo.pop()
        if isinstance(item, str):
            out.append(item)
            limit -= len(item)
        elif isinstance(item, dict):
            todo.extend(reversed(item.values()))
        elif isinstance(item, list):
            todo.extend(reversed(item))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            out.append(str(item))
    return "\n".join(out)


def can_decode(data: bytes) -> bool:
    """Return whether there is memory for what this JSON holds.

    The decoder does not survive being refused memory, so it is asked for before; asked for only,
    never written to.
    """
    if len(data) < _LARGE:
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
    """The objects on the first whole lines of a file, for sniffing."""
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
    """Return what a line holds that has half a surrogate pair in it, as a path that is not UTF-8
    may; else None."""
    if b"\\ud" not in line and b"\\uD" not in line:
        return None
    import json  # here: lines that need it are rare

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def walk(root: Path, suffixes: tuple[str, ...], onerror: OnError) -> Iterator[Path]:
    """Files below root by suffix, in a stable order."""
    for folder, folders, files in os.walk(root, onerror=onerror):
        folders.sort()
        for name in sorted(files):
            if name.endswith(suffixes):
                yield Path(folder, name)
