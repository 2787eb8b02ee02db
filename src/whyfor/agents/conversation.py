"""Writing sessions: what every agent's writer can do, and plain text that every agent
understands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from whyfor.agents.facts import MARKER
from whyfor.model.events import StoredEvent
from whyfor.model.findings import Record

RESULT_MAX = 8000  # characters of a tool's result that another agent gets


class SpokenLine(msgspec.Struct, frozen=True):
    """One message as plain text, independent of any agent."""

    role: str  # user | assistant
    text: str
    at: int
    model: str | None = None


class NewSession(msgspec.Struct, frozen=True):
    """The session to be written: its new id, its directory, its title."""

    session_id: str
    cwd: str
    title: str
    now: int
    home: Path
    env: Mapping[str, str]
    copy_of: str  # agent:id of the session it is a copy of, or the largest part of one
    origin: str | None = None  # the same by its id alone, if it is the same agent's


class NewFile(msgspec.Struct, frozen=True):
    path: Path
    content: bytes


class SessionWriter(Protocol):
    """Writes records in an agent's own format. It returns files; the caller puts them on disk."""

    def new_id(self, now: int) -> str: ...

    def command(self, session_id: str, path: str = "") -> str:
        """Return the command that resumes the session; `path` is the file that was written."""

    def opens(self, record: Record) -> list[str]:
        """Return the ids of the tool calls in a record."""

    def answers(self, record: Record) -> list[str]:
        """Return the ids of the tool calls whose results are in a record."""

    def asks(self, record: Record) -> bool:
        """Return whether a record is a person's prompt, which begins a turn."""

    def without(self, record: Record, calls: set[str]) -> Record | None:
        """Return the record without these calls; None if nothing else is in it."""

    def ident(self, record: Record) -> str | None:
        """Return the id by which a record is recognised in a fork; None if it has none."""

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        """Return the session whose first bytes this one continues, and how many bytes; None if it
        is complete."""

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """Return one session's records under a new id."""

    def live(self, records: Sequence[Record]) -> list[Record]:
        """Return the records that are in the agent's context: the active branch since the last
        compaction, in order."""

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        """Return plain messages as records."""

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """Return records from several sessions as one session."""

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        """Return a file that belongs to the session (a subagent's transcript) at its new path; None
        if the agent has no such files."""

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        """Return the session's file, then the files that the agent needs to find it."""


def json_lines(records: Iterable[Record]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def spoken_turns(events: Iterable[StoredEvent], begun: int) -> list[list[SpokenLine]]:
    """Return the turns as plain messages, without thinking. A compaction with a summary replaces
    everything before it."""
    turns: dict[int, list[SpokenLine]] = {}
    at, model = begun, None
    for event in events:
        at = event.created_at or at
        data = event.data or {}
        model = data.get("model") or model
        role, text = _words(event)
        if event.kind == "compaction" and text:
            turns.clear()
        if text:
            _add(
                turns.setdefault(event.turn, []),
                SpokenLine(role, text, at, model if role == "assistant" else None),
            )
    return list(turns.values())


def _words(event: StoredEvent) -> tuple[str, str]:
    """Return the role and the text of an event. Text that nobody typed gets a marker, so that it is
    never taken for a prompt."""
    data = event.data or {}
    text = event.text.strip()
    if event.kind == "user.prompt":
        return "user", "\n".join([text, *["[an image]"] * len(data.get("images") or ())]).strip()
    if event.kind == "compaction":
        return "user", f"{MARKER}what came before, in short]\n{text}" if text else ""
    if event.kind == "assistant.message":
        return "assistant", text
    if event.kind == "tool.call" and event.actor != "user":
        return "assistant", f"[Tool call: {event.name or 'unknown'}]\n{_given(data)}"
    if event.kind == "tool.call":
        return "user", f"{MARKER}a command the user ran]\n{text}"
    if event.kind == "tool.result" and not (data.get("external") and not data.get("uuid")):
        return (
            "user",
            f"{MARKER}tool result{_outcome(data)}]\n{_short(text)}",
        )
    return "", ""


def _outcome(data: Record) -> str:
    return " (denied)" if data.get("rejected") else " (failed)" if data.get("failed") else ""


def _given(data: Record) -> str:
    return msgspec.json.encode(data.get("input")).decode() if data.get("input") else ""


def _short(text: str) -> str:
    if len(text) <= RESULT_MAX:
        return text
    return f"{text[:RESULT_MAX]}\n[{len(text) - RESULT_MAX} more characters]"


def _add(turn: list[SpokenLine], said: SpokenLine) -> None:
    """Add a message; join it to the last one if both have the same role, because models expect
    roles to alternate."""
    if turn and turn[-1].role == said.role:
        last = turn.pop()
        said = SpokenLine(
            last.role, f"{last.text}\n\n{said.text}", last.at, said.model or last.model
        )
    turn.append(said)
