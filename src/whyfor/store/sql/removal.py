"""Sessions that go, with all that hangs on them; in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable

from whyfor.model.events import SEQ_BITS
from whyfor.store.sql.copies import mark_copies
from whyfor.store.sql.database import StoreDatabase, fetch
from whyfor.store.sql.filters import as_json
from whyfor.store.sql.listing_index import remove_listing, renew_listing
from whyfor.store.sql.memory import SqlMemory
from whyfor.store.sql.search_index import remove_documents
from whyfor.store.sql.tasks import SqlTasks


class SqlRemoval:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def shared_usage(self, sessions: Iterable[int]) -> tuple[list[int], list[int]]:
        rows = fetch(
            self.db,
            """
            SELECT DISTINCT b.key, b.session_id
            FROM usage a JOIN usage b ON b.key=a.key
            WHERE a.session_id IN (SELECT value FROM json_each(?1))
            AND b.session_id NOT IN (SELECT value FROM json_each(?1))
            """,
            (as_json(sorted(sessions)),),
        )
        return sorted({row[0] for row in rows}), sorted({row[1] for row in rows})

    def delete_session(self, session: int) -> None:
        self.empty_session(session)
        for table in ("linked", "parts"):
            self.db.execute(f"DELETE FROM {table} WHERE session_id=?", (session,))
        copies = fetch(
            self.db,
            """
            SELECT c.id
            FROM sessions s JOIN sessions c ON c.copy_of=s.agent || ':' || s.session_id
            WHERE s.id=?
            """,
            (session,),
        )
        self.db.execute("DELETE FROM sessions WHERE id=?", (session,))
        marked = mark_copies(self.db, {copy: set() for (copy,) in copies})
        remove_listing(self.db, session)
        renew_listing(self.db, marked)

    def empty_session(self, session: int) -> None:
        span = (session << SEQ_BITS, last_event(session))
        remove_documents(self.db, *span)
        for table in ("events", "long_texts"):
            self.db.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", span)
        SqlMemory(self.db).delete(session)
        SqlTasks(self.db).delete(session)
        for table in ("usage", "touches", "acts"):
            self.db.execute(f"DELETE FROM {table} WHERE session_id=?", (session,))
        self.db.execute(
            """
            UPDATE sessions SET
              branch=NULL, title=NULL, title_rank=-1, version=NULL, forked_from=NULL,
              started_at=NULL, ended_at=NULL, last_seq=0, turn=0, prompts=0, messages=0,
              tool_calls=0, unparsed=0, models='[]', input=NULL, cache_read=NULL,
              cache_write=NULL, output=NULL, reasoning=NULL, subagent=NULL, copied_to=0,
              restored_from=NULL, copy_of=NULL, copy_kind=NULL, own_from=1, original=NULL
            WHERE id=?
            """,
            (session,),
        )
        renew_listing(self.db, [session])

    def drop_segments(self, source: int) -> list[str]:
        rows = fetch(self.db, "SELECT digest FROM segments WHERE source_id=?", (source,))
        self.db.execute("DELETE FROM segments WHERE source_id=?", (source,))
        return [digest for (digest,) in rows]

    def unused_digests(self, digests: Iterable[str]) -> list[str]:
        wanted = list(dict.fromkeys(digests))
        used = self._used(wanted) if wanted else set()
        return [digest for digest in wanted if digest not in used]

    def _used(self, digests: list[str]) -> set[str]:
        sql = "SELECT digest FROM segments WHERE digest IN (SELECT value FROM json_each(?))"
        return {digest for (digest,) in fetch(self.db, sql, (as_json(digests),))}


def last_event(session: int) -> int:
    """Return the highest id an event of a session can have."""
    return (session << SEQ_BITS) + (1 << SEQ_BITS) - 1
