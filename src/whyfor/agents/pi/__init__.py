"""Pi: a log per session under ~/.pi/agent/sessions/<folder>, a tree of entries with a header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_str,
    head_records,
    walk,
)
from whyfor.agents.pi.facts import FACTS, sessions_folder
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter

_RETOLD = ("compaction", "branch_summary", "session_info")


class Pi(FileAgent):
    name = "pi"
    title = "Pi"
    facts = FACTS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [sessions_folder(home, env)]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        return walk(root, (".jsonl",), onerror)

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        first = next(head_records(head, 1), None)
        if first is None or first.get("type") != "session":
            return None
        ident = get_str(first, "id")
        is_own = bool(ident) and "timestamp" in first and "cwd" in first
        return SourceShape("lines", ident) if is_own else None

    def stamp(self, record: Record) -> RecordStamp:
        at = parse_iso(record.get("timestamp"))
        return RecordStamp(
            at=at,
            since=at,
            cwd=get_str(record, "cwd") or None,
            retells=record.get("type") in _RETOLD,
            name=get_str(record, "id"),
            is_link="parentId" in record,
        )

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.pi.read import PiReader  # most commands read nothing

        return PiReader(state, shape, FACTS)

    def writer(self) -> SessionWriter:
        from whyfor.agents.pi.write import WRITER

        return WRITER


AGENT = Pi()
