"""GitHub Copilot CLI: an event log per session under ~/.copilot/session-state, subagents in the
same log."""

from __future__ import annotations

import re
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
from whyfor.agents.copilot.facts import FACTS, own_folder
from whyfor.agents.copilot.stamp import stamp
from whyfor.model.findings import Record

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter

_HISTORY = rb'"(?:timeline|chatMessages)"\s*:\s*\['
_HISTORY_ID = rb'"sessionId"\s*:\s*"([^"]+)"'


class Copilot(FileAgent):
    name = "copilot"
    title = "Copilot CLI"
    facts = FACTS
    lists = ("timeline", "chatMessages")
    local = False

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        base = own_folder(home, env)
        return [base / "session-state", base / "history-session-state"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        """A session's directory also holds working files, which are never transcripts."""
        for path in walk(root, (".jsonl", ".json"), onerror):
            depth = len(path.relative_to(root).parts)
            if depth == 1 or (depth == 2 and path.name == "events.jsonl"):
                yield path

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        from whyfor.agents.copilot.read import EVENTS, SILENT  # most commands read nothing

        found = False
        for record in head_records(head):
            kind, data = get_str(record, "type"), record.get("data")
            if not isinstance(data, dict) or "timestamp" not in record:
                continue
            ident = get_str(data, "sessionId")
            if kind == "session.start" and ident:
                return SourceShape("lines", ident)
            found = found or ("parentId" in record and (kind in SILENT or kind in EVENTS))
        if found:
            return SourceShape(
                "lines",
                path.parent.name if path.name == "events.jsonl" else path.name.split(".")[0],
            )
        if head.lstrip().startswith(b"{") and re.search(_HISTORY, head) and b'"startTime"' in head:
            named = re.search(_HISTORY_ID, head)
            return SourceShape("document", named[1].decode("utf-8", "replace")) if named else None
        return None

    def alone(self, message: Record) -> Record:
        return {"timeline": [message]}

    def stamp(self, record: Record) -> RecordStamp:
        return stamp(record)

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        if shape.framing == "document":
            from whyfor.agents.copilot.history import HistoryReader

            return HistoryReader(state)
        from whyfor.agents.copilot.read import EventsReader

        return EventsReader(state)

    def writer(self) -> SessionWriter:
        from whyfor.agents.copilot.write import WRITER

        return WRITER


AGENT = Copilot()
