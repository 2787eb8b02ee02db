"""How a conversation is written down again: what every agent's writer can do, and the words all
of them share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from whyfor.agents.facts import MARKER
from whyfor.model.events import StoredEvent
from whyfor.model.findings import Record

RESULT_MAX = 8000  # characters of a tool's result that another agent is told


class SpokenLine(msgspec.Struct, frozen=True):
    """One thing said, in words any agent understands."""

    role: str  # user | assistant
    text: str
    at: int
    model: str | None = None


class NewSession(msgspec.Struct, frozen=True):
    """The session to be written: its new id, where it goes, what it is called."""

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
    """Puts records in an agent's own format and place; what comes out is written elsewhere."""

    def new_id(self, now: int) -> str: ...

    def command(self, session_id: str) -> str:
        """What resumes the session."""

    def opens(self, record: Record) -> list[str]:
        """Ids of tool calls that stand in the record."""

    def answers(self, record: Record) -> list[str]:
        """Ids of tool calls whose result stands in the record."""

    def asks(self, record: Record) -> bool:
        """A person's prompt: a new turn begins."""

    def without(self, record: Record, calls: set[str]) -> Record | None:
        """The record without these calls; None if nothing else is in it."""

    def ident(self, record: Record) -> str | None:
        """By what a record is known again in a fork."""

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        """The session whose first bytes are this one's beginning, and how many."""

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """One session's records under a new id."""

    def live(self, records: Sequence[Record]) -> list[Record]:
        """The records the agent would have in mind: the active branch, since the last
        compaction, in order."""

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        """What was said elsewhere, as records."""

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """Records of several origins as one session."""

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        """A file that belongs to the session (a subagent's transcript), moved along; None if
        there is no such thing."""

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        """The session's file, then what must be there for the agent to find it."""


def json_lines(records: Iterable[Record]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def spoken_turns(events: Iterable[StoredEvent], begun: int) -> list[list[SpokenLine]]:
    """Turns in plain words, thinking left out; a compaction with a summary stands for all before
    it."""
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
    """Who says it and how. What nobody typed is marked, so that it is never taken for a prompt."""
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
            f"{MARKER}tool result{' (failed)' if data.get('failed') else ''}]\n{_short(text)}",
        )
    return "", ""


def _given(data: Record) -> str:
    return msgspec.json.encode(data.get("input")).decode() if data.get("input") else ""


def _short(text: str) -> str:
    if len(text) <= RESULT_MAX:
        return text
    return f"{text[:RESULT_MAX]}\n[{len(text) - RESULT_MAX} more characters]"


def _add(turn: list[SpokenLine], said: SpokenLine) -> None:
    """One voice after the other: models expect user and assistant to take turns."""
    if turn and turn[-1].role == said.role:
        last = turn.pop()
        said = SpokenLine(
            last.role, f"{last.text}\n\n{said.text}", last.at, said.model or last.model
        )
    turn.append(said)
