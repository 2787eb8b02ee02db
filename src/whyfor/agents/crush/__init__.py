"""Crush: a SQLite database per project, in its folder .crush; a list in the user's data folder
names the projects. Databases are only read, never locked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import RecordReader, SourceShape, as_dict, get_list, get_str
from whyfor.agents.beside import small_object
from whyfor.agents.crush.facts import FACTS, global_folder
from whyfor.agents.databases.agent import DatabaseAgent
from whyfor.agents.databases.shape import SessionTables, StoreTable
from whyfor.model.findings import Record

DATABASE, OWN = "crush.db", ".crush"
STORE = SessionTables(
    sessions="sessions",
    parent="parent_session_id",
    tables=(StoreTable("messages", "id", "session_id", "octet_length(parts)"),),
    columns={"messages": {"parts", "role", "created_at"}, "sessions": {"prompt_tokens", "title"}},
)


class Crush(DatabaseAgent):
    name = "crush"
    title = "Crush"
    facts = FACTS
    store = STORE
    files = (DATABASE,)

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """Each project's own folder, and the one where the list of them is."""
        base = global_folder(home, env)
        listed = small_object(base / "projects.json")
        found = [base]
        for project in map(as_dict, get_list(listed, "projects")):
            place, data = get_str(project, "path"), get_str(project, "data_dir")
            if os.path.isabs(place):  # noqa: PTH117 - no path is made of what may be no path
                found.append(Path(place, data or OWN))
        return found

    def times(self, row: Record) -> Iterator[object]:
        yield row.get("created_at")

    def about(self, path: Path) -> Record:
        """A project's database is in a folder of the project."""
        is_usual = path.parent.name == OWN
        return {"folder": str(path.parent.parent)} if is_usual else {}

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.crush.read import CrushReader  # most commands read nothing

        return CrushReader(state, shape, FACTS)

    def resume(self, session_id: str) -> str:
        return f"crush --session {session_id}"


AGENT = Crush()
