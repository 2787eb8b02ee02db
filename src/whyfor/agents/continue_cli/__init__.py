"""Continue: one JSON document per session under ~/.continue/sessions, rewritten as it goes on. The
extensions of editors write there too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import FileAgent, OnError, RecordReader, RecordStamp, SourceShape, get_str
from whyfor.agents.continue_cli.facts import FACTS, own_folder
from whyfor.model.findings import Record

_LIST = "sessions.json"  # of all sessions


class Continue(FileAgent):
    name = "continue"
    title = "Continue"
    facts = FACTS
    mutable = True
    lists = ("history",)

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [own_folder(home, env) / "sessions"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        try:
            found = sorted(root.iterdir())
        except OSError as error:
            onerror(error)
            return
        yield from (path for path in found if path.suffix == ".json" and path.name != _LIST)

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        is_object = head.lstrip().startswith(b"{")
        names = (b'"sessionId"', b'"history"', b'"workspaceDirectory"')
        if not is_object or not all(name in head for name in names):
            return None
        return SourceShape("document", path.stem)

    def alone(self, message: Record) -> Record:
        return {"history": [message]}

    def stamp(self, record: Record) -> RecordStamp:
        """Nothing in a session says when it was written."""
        return RecordStamp(
            cwd=get_str(record, "workspaceDirectory") or None,
            session_id=get_str(record, "sessionId") or None,
        )

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.continue_cli.read import HistoryItems  # most commands read nothing

        return HistoryItems(state, shape, FACTS)

    def resume(self, session_id: str) -> str:
        return f"cn --fork {session_id}"


AGENT = Continue()
