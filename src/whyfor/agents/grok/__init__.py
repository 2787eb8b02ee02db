"""Grok Build: a folder per session under ~/.grok/sessions/<folder>, with a stream of updates, and
a summary that is rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_dict,
    get_str,
    head_records,
    walk,
)
from whyfor.agents.beside import small_object
from whyfor.agents.grok.facts import FACTS, own_folder
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter

UPDATES, SUMMARY = "updates.jsonl", "summary.json"


class Grok(FileAgent):
    name = "grok"
    title = "Grok Build"
    facts = FACTS
    mutable = True

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [own_folder(home, env) / "sessions"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        """A session's summary comes before its updates: it says when the session began."""
        for path in walk(root, (SUMMARY, UPDATES), onerror):
            if path.name in (SUMMARY, UPDATES):
                yield path

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if path.name == SUMMARY:
            is_own = b'"info"' in head and b'"session_summary"' in head
            parent = _parent(path) if is_own else None
            shape = SourceShape("document", path.parent.name, parent, sidecar="meta")
            return shape if is_own else None
        for record in head_records(head):
            given = get_dict(record, "params")
            session = get_str(given, "sessionId")
            if session and get_str(record, "method").endswith("session/update"):
                cwd = unquote(path.parent.parent.name)
                place = cwd if cwd.startswith("/") else None
                return SourceShape("lines", session, _parent(path), cwd=place)
        return None

    def stamp(self, record: Record) -> RecordStamp:
        given = get_dict(record, "params")
        told = get_dict(given, "_meta").get("agentTimestampMs")
        at = parse_iso(told) or parse_iso(record.get("timestamp"))
        return RecordStamp(
            at=at,
            since=at or parse_iso(record.get("created_at")),
            cwd=get_str(get_dict(record, "info"), "cwd") or None,
            session_id=get_str(given, "sessionId") or None,
            retells="session_summary" in record,
        )

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.grok.read import SummaryReader, UpdatesReader  # most read nothing

        if shape.sidecar:
            return SummaryReader(state, shape, FACTS)
        return UpdatesReader(state, shape, FACTS)

    def writer(self) -> SessionWriter:
        from whyfor.agents.grok.write import WRITER

        return WRITER


def _parent(path: Path) -> str | None:
    """Return the session that this one is a subagent of: it keeps a folder for each, in which its
    own id stands nowhere but in its place."""
    if small_object(path.with_name(SUMMARY)).get("session_kind") != "subagent":
        return None
    for found in path.parents[1].glob(f"*/subagents/{escape(path.parent.name)}/meta.json"):
        return found.parents[2].name
    return None


AGENT = Grok()
