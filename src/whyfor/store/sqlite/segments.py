"""Which bytes of a source are where, which are not kept, and what must be remembered to know
what else is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw
import msgspec

from whyfor.model.gaps import Gap
from whyfor.model.sources import Source
from whyfor.store.journal import SegmentEntry
from whyfor.store.sqlite.connection import fetch, first

_encode = msgspec.json.Encoder().encode


def has_segments(db: apsw.Connection) -> bool:
    """Whether anything was ever stored."""
    return first(db, "SELECT 1 FROM segments LIMIT 1") is not None


def decode_gaps(body: str | None) -> list[Gap]:
    """What is not kept of a segment, as its row holds it."""
    return msgspec.json.decode(body, type=list[Gap]) if body else []


class Segments:
    """The part of the write side that knows bytes only."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def add_segment(self, source: Source, entry: SegmentEntry) -> None:
        """Replaces a partial segment that began at the same byte."""
        self.db.execute(
            "INSERT OR REPLACE INTO segments VALUES(?,?,?,?,?,?,?,?)",
            (
                source.id,
                entry.generation,
                entry.start,
                entry.end,
                entry.digest,
                entry.observed_at,
                int(entry.partial),
                _encode(entry.gaps).decode() if entry.gaps else None,
            ),
        )

    def newest_segments(self, source: Source, limit: int) -> list[tuple[int, int, str, int]]:
        """Newest first, of any generation, unfinished lines aside: generation, start, address,
        bytes kept."""
        sql = (
            "SELECT generation, start, digest, stop - start, gaps FROM segments WHERE source_id=? "
            "AND partial=0 "
            "ORDER BY generation DESC, start DESC LIMIT ?"
        )
        return [
            (generation, start, address, size - sum(left_out for _, left_out in decode_gaps(gaps)))
            for generation, start, address, size, gaps in fetch(self.db, sql, (source.id, limit))
        ]

    def stored_segments(self, source: Source) -> list[tuple[int, int, str, list[Gap]]]:
        """Of its current generation, in order, unfinished lines aside: start, end, address, what
        is not kept."""
        sql = (
            "SELECT start, stop, digest, gaps FROM segments WHERE source_id=? AND generation=? AND "
            "partial=0 "
            "ORDER BY start"
        )
        return [
            (start, stop, address, decode_gaps(gaps))
            for start, stop, address, gaps in fetch(self.db, sql, (source.id, source.generation))
        ]

    def unfinished_segment(self, source: Source) -> str | None:
        """The address of a last line that had no end yet."""
        sql = (
            "SELECT digest FROM segments WHERE source_id=? AND generation=? AND start=? AND "
            "partial=1"
        )
        row = first(self.db, sql, (source.id, source.generation, source.position))
        return row[0] if row else None

    def move_segment(self, source: Source, generation: int, start: int, address: str) -> None:
        """The same bytes, elsewhere."""
        self.db.execute(
            "UPDATE segments SET digest=? WHERE source_id=? AND generation=? AND start=?",
            (address, source.id, generation, start),
        )

    def gaps(self, source: Source) -> list[Gap]:
        """What is not kept of this generation, in order."""
        sql = (
            "SELECT gaps FROM segments WHERE source_id=? AND generation=? AND gaps IS NOT NULL "
            "ORDER BY start"
        )
        found = fetch(self.db, sql, (source.id, source.generation)) if source.id else []
        return [gap for (body,) in found for gap in decode_gaps(body)]

    def hide(self, source: Source, hiding: Mapping[str, Any]) -> None:
        """Remember what else of a source, and of what hangs on it, must not be kept."""
        body = _encode(hiding).decode()
        self.db.execute("INSERT OR REPLACE INTO hiding VALUES(?,?)", (source.id, body))

    def hiding(self) -> list[tuple[int, int, str, str, dict[str, Any]]]:
        """The same of all sources: id, generation, agent, session."""
        sql = (
            "SELECT o.id, o.generation, o.agent, o.session_id, h.body FROM hiding h JOIN sources o "
            "ON o.id=h.source_id"
        )
        return [(*row[:4], msgspec.json.decode(row[4])) for row in fetch(self.db, sql)]
