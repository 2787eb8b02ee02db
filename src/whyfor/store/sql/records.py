"""Sources and their segments: what events were made of."""

from __future__ import annotations

from collections.abc import Iterator

from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.model.sources import Source, StoredSegment
from whyfor.store.sql.database import StoreDatabase, fetch, first_row, stepped
from whyfor.store.sql.filters import session_filter
from whyfor.store.sql.listing_index import renew_rows
from whyfor.store.sql.segments import stored_segment
from whyfor.store.sql.usage import total_usage, unpriced_sessions
from whyfor.store.sql.write import EventWriter


class SqlRecords:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def writer(self) -> EventWriter:
        return EventWriter(self.db)

    def price_again(self) -> int:
        sessions = unpriced_sessions(self.db, self.db.prices)
        total_usage(self.db, sessions)
        renew_rows(self.db, sessions)
        return len(sessions)

    def segments(self, session: Session) -> list[tuple[str, StoredSegment]]:
        rows = fetch(
            self.db,
            """
            SELECT o.path, g.generation, g.start, g.stop, g.digest, g.gaps
            FROM sources o
            JOIN segments g ON g.source_id=o.id AND g.generation=o.generation
            WHERE o.agent=? AND o.session_id=? AND o.sidecar IS NULL
            ORDER BY o.id, g.start
            """,
            (session.agent, session.session_id),
        )
        return [(row[0], stored_segment(row[1:])) for row in rows]

    def sources_of(self, session: Session) -> list[Source]:
        rows = fetch(
            self.db,
            """
            SELECT id, agent, path, session_id, framing, parent, sidecar, cwd, generation
            FROM sources
            WHERE agent=? AND (session_id=? OR parent=?)
            ORDER BY id
            """,
            (session.agent, session.session_id, session.session_id),
        )
        return [Source(*row) for row in rows]

    def pieces(self, source: Source) -> list[StoredSegment]:
        rows = fetch(
            self.db,
            """
            SELECT generation, start, stop, digest, gaps
            FROM segments
            WHERE source_id=? AND generation=?
            ORDER BY start
            """,
            (source.id, source.generation),
        )
        return [stored_segment(row) for row in rows]

    def segment_at(self, source: int, generation: int, at: int) -> StoredSegment | None:
        row = first_row(
            self.db,
            """
            SELECT generation, start, stop, digest, gaps
            FROM segments
            WHERE source_id=? AND generation=? AND start<=?3 AND stop>?3
            ORDER BY start DESC
            LIMIT 1
            """,
            (source, generation, at),
        )
        return stored_segment(row) if row else None

    def sources_within(self, filters: Filters) -> list[Source]:
        where, values = session_filter(filters)
        rows = fetch(
            self.db,
            f"""
            SELECT o.id, o.agent, o.path, o.session_id, o.framing, o.parent, o.sidecar, o.cwd,
              o.generation
            FROM sources o
            JOIN sessions s ON s.agent=o.agent AND s.session_id=o.session_id
            WHERE {" AND ".join(where) or "TRUE"}
            ORDER BY s.ended_at DESC, o.id DESC
            """,
            values,
        )
        return [Source(*row) for row in rows]

    def has_segments(self) -> bool:
        return first_row(self.db, "SELECT 1 FROM segments LIMIT 1") is not None

    def digests(self) -> Iterator[tuple[str, str]]:
        rows = stepped(
            self.db,
            """
            SELECT DISTINCT digest, o.path
            FROM segments g
            JOIN sources o ON o.id=g.source_id
            """,
        )
        return ((digest, path) for digest, path in rows)

    # -- health ----------------------------------------------------------------------------------
