"""Hermes Agent: one SQLite database for all sessions, ~/.hermes/state.db. It is only read, never
locked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import RecordReader, SourceShape
from whyfor.agents.databases.agent import DatabaseAgent
from whyfor.agents.databases.shape import SessionTables, StoreTable
from whyfor.agents.hermes.facts import FACTS, own_folder
from whyfor.model.findings import Record

STORE = SessionTables(
    sessions="sessions",
    parent="",  # what it calls a parent is the session that a compressed one goes on from
    tables=(
        StoreTable(
            "messages",
            "id",
            "session_id",
            "coalesce(octet_length(content), 0) + coalesce(octet_length(tool_calls), 0)",
        ),
    ),
    columns={"messages": {"content", "tool_calls", "timestamp"}, "sessions": {"started_at"}},
)


class Hermes(DatabaseAgent):
    name = "hermes"
    title = "Hermes"
    facts = FACTS
    store = STORE
    files = ("state.db",)

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [own_folder(home, env)]

    def times(self, row: Record) -> Iterator[object]:
        yield row.get("timestamp")
        yield row.get("started_at")

    def place(self, row: Record) -> object:
        return row.get("cwd")

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.hermes.read import HermesReader  # most commands read nothing

        return HermesReader(state, shape, FACTS)

    def resume(self, session_id: str) -> str:
        return f"hermes chat --resume {session_id}"


AGENT = Hermes()
