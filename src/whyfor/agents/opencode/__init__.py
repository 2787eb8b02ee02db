"""OpenCode: one SQLite database for all sessions, whose rows change in place. It is only read,
never locked."""

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
    Rows,
    SourceShape,
)
from whyfor.agents.opencode.facts import FACTS, data_folder
from whyfor.agents.opencode.stamp import stamp
from whyfor.model.findings import Record

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter

MAGIC = b"SQLite format 3\x00"
FORKS = ("kilo",)  # programs whose databases have the same tables, by the files' names


class OpenCode(FileAgent):
    name = "opencode"
    title = "OpenCode"
    facts = FACTS
    mutable = True
    local = False

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        data = data_folder("opencode", home, env)
        database = env.get("OPENCODE_DB")
        return [data / database if database and database != ":memory:" else data]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        try:
            found = sorted(root.iterdir())
        except OSError as error:
            onerror(error)
            return
        pattern = rf"{self.name}(-.+)?\.db"
        yield from (path for path in found if re.fullmatch(pattern, path.name))

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if not head.startswith(MAGIC) or not self._is_own(path):
            return None
        # SQLite, which most commands do without
        from whyfor.agents.databases.connection import has_columns
        from whyfor.agents.opencode.tables import NEEDED

        return SourceShape("rows", "") if has_columns(path, NEEDED) else None

    def _is_own(self, path: Path) -> bool:
        """Return whether a database may be this program's. A fork has the same tables: what lies in
        its folder is its own."""
        return path.name.removesuffix(".db").partition("-")[0] not in FORKS

    def stamp(self, record: Record) -> RecordStamp:
        return stamp(record)

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.opencode.reader import RowReader

        return RowReader(state, subagent=shape.parent is not None)

    def under(self, record: Record) -> tuple[str, str] | None:
        from whyfor.agents.opencode.reader import under

        return under(record)

    def rows(self, path: Path, positions: Mapping[str, Record]) -> Iterator[Rows]:
        """One batch at a time, each in a short transaction of its own."""
        from whyfor.agents.opencode.changes import new_rows

        return new_rows(path, positions)

    def writer(self) -> SessionWriter:
        from whyfor.agents.opencode.write import OpenCodeWriter

        return OpenCodeWriter(self.name)


AGENT = OpenCode()
