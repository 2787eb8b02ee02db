"""Sources and their segments, records that could not be parsed, pauses, the journal's end."""

from __future__ import annotations

import msgspec

from whyfor.model.sources import SourceHealth
from whyfor.store.journal import Entry, PauseEntry, SegmentEntry
from whyfor.store.sql.database import fetch
from whyfor.store.sql.records import SqlRecords
from whyfor.store.sqlite.entries import all_entries, pause_entries, segment_entries


class SqliteCapture(SqlRecords):
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
