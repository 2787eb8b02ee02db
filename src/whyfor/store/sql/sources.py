"""The rows of sources: which files were read how far, and how their readers stood."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.sources import Source
from whyfor.store.sql.database import fetch, first_row
from whyfor.store.sql.segments import Segments

_NAMES = tuple(name for name in Source.__struct_fields__ if name not in ("id", "state"))
_encode = msgspec.json.Encoder().encode


class SourceWriter(Segments):
    """The part of the write side that knows sources and their bytes."""

    def sources(self) -> dict[tuple[str, str], Source]:
        """All of them without their states, which are read only for those that changed."""
        rows = fetch(self.db, f"SELECT id, {', '.join(_NAMES)} FROM sources")
        found = (_source(row) for row in rows)
        return {(source.agent, source.path): source for source in found}

    def source(self, agent: str, path: str) -> Source | None:
        """Return one of them, without its state."""
        sql = f"SELECT id, {', '.join(_NAMES)} FROM sources WHERE agent=? AND path=?"
        row = first_row(self.db, sql, (agent, path))
        return _source(row) if row else None

    def load_state(self, source: Source) -> None:
        """Give a stored source its state; a new one has its own."""
        if source.id == 0:
            return
        row = first_row(self.db, "SELECT state FROM sources WHERE id=?", (source.id,))
        source.state = msgspec.json.decode(row[0]) if row else {}

    def save_source(self, source: Source) -> None:
        values = [getattr(source, name) for name in _NAMES]
        state = _encode(source.state).decode()
        if source.id == 0:
            marks = ", ".join("?" * (len(_NAMES) + 1))
            sql = f"INSERT INTO sources({', '.join(_NAMES)}, state) VALUES({marks})"
            self.db.execute(sql, (*values, state))
            source.id = self.db.last_insert_rowid()
        else:
            marks = ", ".join(f"{name}=?" for name in (*_NAMES, "state"))
            self.db.execute(f"UPDATE sources SET {marks} WHERE id=?", (*values, state, source.id))


def _source(row: tuple[Any, ...]) -> Source:
    return Source(id=row[0], **dict(zip(_NAMES, row[1:], strict=True)))
