"""Agents that keep their sessions in a database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordStamp,
    Rows,
    SourceShape,
    get_dict,
    get_str,
)
from whyfor.agents.databases.shape import SessionTables
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

MAGIC = b"SQLite format 3\x00"


class DatabaseAgent(FileAgent):
    """What they share. An agent says which files are its databases, and what a row tells of time
    and place."""

    mutable = True
    local = False
    store: SessionTables
    files: tuple[str, ...] = ()

    def times(self, row: Record) -> Iterator[object]:
        """Yield when a row was written, the surest first."""
        yield from ()

    def place(self, row: Record) -> object:
        """Return the folder that a session's row names."""
        return None

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        yield from (path for name in self.files if (path := root / name).is_file())

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if not head.startswith(MAGIC):
            return None
        # SQLite, which most commands do without
        from whyfor.agents.databases.connection import has_columns

        return SourceShape("rows", "") if has_columns(path, self.store.needed()) else None

    def stamp(self, record: Record) -> RecordStamp:
        row = get_dict(record, "row")
        at = next(filter(None, map(parse_iso, self.times(row))), None)
        cwd = self.place(row) or record.get("folder")
        return RecordStamp(
            at=at,
            since=at,
            cwd=cwd if isinstance(cwd, str) and cwd else None,
            session_id=get_str(row, "session_id") or None,
            retells=record.get("type") == self.store.sessions,
            name=get_str(row, "id"),
        )

    def rows(self, path: Path, positions: Mapping[str, Record]) -> Iterator[Rows]:
        """One batch at a time."""
        from whyfor.agents.databases.tables import changed_rows

        return changed_rows(path, self.store, positions, self.about(path))

    def about(self, path: Path) -> Record:
        """Return what the place of a database says of all its sessions."""
        return {}
