"""Goose: one SQLite database for all sessions. It is only read, never locked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import RecordReader, SourceShape
from whyfor.agents.databases.agent import DatabaseAgent
from whyfor.agents.databases.shape import SessionTables, StoreTable
from whyfor.agents.goose.facts import FACTS
from whyfor.model.findings import Record

STORE = SessionTables(
    sessions="sessions",
    parent="parent_session_id",
    tables=(
        StoreTable(
            "messages",
            "id",
            "session_id",
            "octet_length(content_json) + octet_length(metadata_json)",
        ),
    ),
    columns={"messages": {"content_json"}, "sessions": {"working_dir"}},
)


class Goose(DatabaseAgent):
    name = "goose"
    title = "Goose"
    facts = FACTS
    store = STORE
    files = ("sessions.db",)

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        own = env.get("GOOSE_PATH_ROOT")
        if own:
            return [Path(own) / "data" / "sessions"]
        data = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share")
        return [data / "goose" / "sessions"]

    def times(self, row: Record) -> Iterator[object]:
        yield row.get("created_timestamp")
        yield row.get("created_at")

    def place(self, row: Record) -> object:
        return row.get("working_dir")

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.goose.read import GooseReader  # most commands read nothing

        return GooseReader(state, shape, FACTS)

    def resume(self, session_id: str) -> str:
        return f"goose session --resume --session-id {session_id}"


AGENT = Goose()
