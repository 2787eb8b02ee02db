"""Cline CLI: two JSON documents per session under ~/.cline/data/sessions, both rewritten as it
goes on: the messages, and what is known of the session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_str,
    walk,
)
from whyfor.agents.beside import small_object
from whyfor.agents.cline.facts import FACTS, cline_sessions
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

MESSAGES = ".messages.json"


class Cline(FileAgent):
    name = "cline"
    title = "Cline"
    facts = FACTS
    mutable = True
    lists = ("messages",)

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [cline_sessions(home, env)]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        """What is known of a session comes before its messages."""
        for path in walk(root, (".json",), onerror):
            if path.name in (f"{path.parent.name}.json", f"{path.parent.name}{MESSAGES}"):
                yield path

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if not head.lstrip().startswith(b"{"):
            return None
        if path.name.endswith(MESSAGES) and b'"messages"' in head and b'"sessionId"' in head:
            ident = path.name.removesuffix(MESSAGES)
            about = small_object(path.with_name(f"{ident}.json"))
            return SourceShape("document", ident, cwd=get_str(about, "cwd") or None)
        if b'"session_id"' in head and b'"messages_path"' in head:
            return SourceShape("document", path.stem, sidecar="meta")
        return None

    def alone(self, message: Record) -> Record:
        return {"messages": [message]}

    def stamp(self, record: Record) -> RecordStamp:
        at = parse_iso(record.get("ts"))
        return RecordStamp(
            at=at,
            since=at or parse_iso(record.get("started_at")),
            cwd=get_str(record, "cwd") or None,
            session_id=get_str(record, "sessionId") or get_str(record, "session_id") or None,
            retells="metadata" in record,
            name=get_str(record, "id"),
        )

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.cline.read import ManifestReader, MessagesReader  # most read nothing

        if shape.sidecar:
            return ManifestReader(state, shape, FACTS)
        return MessagesReader(state, shape, FACTS)

    def resume(self, session_id: str) -> str:
        return f"cline --id {session_id}"


AGENT = Cline()
