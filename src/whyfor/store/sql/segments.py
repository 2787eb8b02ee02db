"""Which bytes of a source are stored where, which are not stored, and what the private filter must
remember."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from whyfor.model.gaps import Gap
from whyfor.model.sources import HiddenState, Source, StoredSegment
from whyfor.store.journal import SegmentEntry
from whyfor.store.sql.database import StoreDatabase, fetch, first_row

_encode = msgspec.json.Encoder().encode


def decode_gaps(body: str | None) -> list[Gap]:
    """Return the gaps of a segment from its row."""
    return msgspec.json.decode(body, type=list[Gap]) if body else []


def stored_segment(row: tuple[Any, ...]) -> StoredSegment:
    """Return a segment from the generation, start, stop, digest and gaps of its row."""
    generation, start, end, address, gaps = row
    return StoredSegment(generation, start, end, address, decode_gaps(gaps))


class Segments:
    """The part of the writer that handles bytes only."""

    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def add_segment(self, source: Source, entry: SegmentEntry) -> None:
        """Replaces a partial segment that began at the same byte."""
        self.db.execute(
            """
            INSERT INTO segments VALUES(?,?,?,?,?,?,?,?)
            ON CONFLICT(source_id, generation, start) DO UPDATE SET
              stop=excluded.stop, digest=excluded.digest, observed_at=excluded.observed_at,
              partial=excluded.partial, gaps=excluded.gaps
            """,
            (
                source.id,
                entry.generation,
                entry.start,
                entry.end,
                entry.digest,
                entry.observed_at,
                entry.partial,
                _encode(entry.gaps).decode() if entry.gaps else None,
            ),
        )

    def newest_segments(self, source: Source, limit: int) -> list[StoredSegment]:
        """Newest first, of any generation, unfinished lines aside."""
        rows = fetch(
            self.db,
            """
            SELECT generation, start, stop, digest, gaps
            FROM segments
            WHERE source_id=? AND NOT partial
            ORDER BY generation DESC, start DESC
            LIMIT ?
            """,
            (source.id, limit),
        )
        return [stored_segment(row) for row in rows]

    def stored_segments(self, source: Source) -> list[StoredSegment]:
        """Of its current generation, in order, unfinished lines aside."""
        rows = fetch(
            self.db,
            """
            SELECT generation, start, stop, digest, gaps
            FROM segments
            WHERE source_id=? AND generation=? AND NOT partial
            ORDER BY start
            """,
            (source.id, source.generation),
        )
        return [stored_segment(row) for row in rows]

    def unfinished_segment(self, source: Source) -> str | None:
        """The address of a last line that had no end yet."""
        sql = (
            "SELECT digest FROM segments WHERE source_id=? AND generation=? AND start=? AND partial"
        )
        row = first_row(self.db, sql, (source.id, source.generation, source.position))
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
        self.db.execute(
            """
            INSERT INTO hiding VALUES(?,?) ON CONFLICT(source_id) DO UPDATE SET body=excluded.body
            """,
            (source.id, body),
        )

    def hiding(self) -> list[HiddenState]:
        """What is remembered so of all sources."""
        sql = (
            "SELECT o.id, o.generation, o.agent, o.session_id, h.body FROM hiding h JOIN sources o "
            "ON o.id=h.source_id"
        )
        return [
            HiddenState(source, generation, agent, session_id, msgspec.json.decode(body))
            for source, generation, agent, session_id, body in fetch(self.db, sql)
        ]
