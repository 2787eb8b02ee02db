"""Sources and their segments, records that could not be parsed, pauses, the journal's end."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import msgspec

from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.model.sources import Source, SourceHealth, StoredSegment
from whyfor.store.journal import Entry, PauseEntry, SegmentEntry
from whyfor.store.sqlite.connection import fetch, first_row, stepped
from whyfor.store.sqlite.entries import all_entries, pause_entries, segment_entries
from whyfor.store.sqlite.filters import session_filter
from whyfor.store.sqlite.segments import stored_segment
from whyfor.store.sqlite.write import EventWriter


class SqliteCapture:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def writer(self) -> EventWriter:
        return EventWriter(self.db)

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

    def sources_within(self, filters: Filters) -> list[Source]:
        where, values = session_filter(filters)
        rows = fetch(
            self.db,
            f"""
            SELECT o.id, o.agent, o.path, o.session_id, o.framing, o.parent, o.sidecar, o.cwd,
              o.generation
            FROM sources o
            JOIN sessions s ON s.agent=o.agent AND s.session_id=o.session_id
            WHERE {" AND ".join(where) or "1"}
            ORDER BY s.ended_at DESC, o.id DESC
            """,
            values,
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

    def health(self, agent: str) -> list[SourceHealth]:
        sql = "SELECT path, size, records, tail, error FROM sources WHERE agent=?"
        return [SourceHealth(*row) for row in fetch(self.db, sql, (agent,))]

    def unparsed(self, agent: str) -> list[tuple[str, str, int]]:
        rows = fetch(
            self.db,
            """
            SELECT o.path, u.reason, count(*)
            FROM unparsed u
            JOIN sources o ON o.id=u.source_id
            WHERE o.agent=?
            GROUP BY 1, 2
            ORDER BY 3 DESC
            """,
            (agent,),
        )
        return [(path, reason, number) for path, reason, number in rows]

    def unknown_types(self, agent: str) -> dict[str, int]:
        rows = fetch(
            self.db,
            """
            SELECT name, sum(records)
            FROM unknown_types
            WHERE agent=?
            GROUP BY 1
            ORDER BY 2 DESC
            """,
            (agent,),
        )
        return dict(rows)

    # -- pauses ----------------------------------------------------------------------------------

    def pauses(self) -> list[PauseEntry]:
        return pause_entries(self.db)

    def save_pause(self, pause: PauseEntry) -> None:
        body = msgspec.json.encode(pause).decode()
        self.db.execute("INSERT OR REPLACE INTO pauses VALUES(?,?)", (pause.id, body))

    # -- for the journal and a rebuild -----------------------------------------------------------

    def segment_entries(self) -> list[SegmentEntry]:
        return segment_entries(self.db)

    def all_entries(self) -> list[Entry]:
        return all_entries(self.db)
