"""What waits to be sent to a team. Writes in the caller's transaction.

Stories are put into the outbox by triggers of the schema: a story that is saved and not in the
outbox cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from whyfor.model.sync import OutboxItem, SentSource, SyncTry
from whyfor.store.sql.database import StoreDatabase, fetch, first_row
from whyfor.store.sql.filters import as_json

TRIES_KEPT = 200
_ITEM = (
    "id, project_id, kind, name, state, added_at, attempts, next_at, error, sent_at, size, "
    "redacted, digest"
)


class SqliteOutbox:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    # -- reading ---------------------------------------------------------------------------------

    def shares(self) -> dict[int, str]:
        return dict(fetch(self.db, "SELECT project_id, share FROM remotes"))

    def items(
        self, project: int | None = None, states: Iterable[str] = (), limit: int = -1
    ) -> list[OutboxItem]:
        rows = fetch(
            self.db,
            f"""
            SELECT {_ITEM}
            FROM outbox
            WHERE (?1 IS NULL OR project_id=?1)
              AND (?2='[]' OR state IN (SELECT value FROM json_each(?2)))
            ORDER BY added_at, id
            LIMIT ?3
            """,
            (project, as_json(list(states)), limit),
        )
        return [OutboxItem(*row) for row in rows]

    def find(self, project: int, kind: str, name: str) -> OutboxItem | None:
        row = first_row(
            self.db,
            f"SELECT {_ITEM} FROM outbox WHERE project_id=? AND kind=? AND name=?",
            (project, kind, name),
        )
        return OutboxItem(*row) if row else None

    def counts(self) -> dict[tuple[int, str], int]:
        sql = "SELECT project_id, state, count(*) FROM outbox GROUP BY 1, 2"
        return {(project, state): number for project, state, number in fetch(self.db, sql)}

    def sent(self, project: int) -> dict[tuple[str, str], SentSource]:
        sql = "SELECT agent, path, generation, rules, segments FROM sent WHERE project_id=?"
        found = {}
        for agent, path, generation, rules, segments in fetch(self.db, sql, (project,)):
            pieces = msgspec.json.decode(segments, type=list[tuple[int, int, str]])
            found[agent, path] = SentSource(agent, path, generation, rules, pieces)
        return found

    def tries(self, limit: int) -> list[SyncTry]:
        sql = (
            "SELECT at, why, project, sent, refused, error, took "
            "FROM sync_tries ORDER BY id DESC LIMIT ?"
        )
        return [SyncTry(*row) for row in fetch(self.db, sql, (limit,))]

    # -- writing ---------------------------------------------------------------------------------

    def share_projects(self, shares: Mapping[int, str], now: int) -> None:
        known = self.shares()
        for project in known.keys() - shares.keys():
            self.db.execute("DELETE FROM remotes WHERE project_id=?", (project,))
            self.db.execute("DELETE FROM outbox WHERE project_id=?", (project,))
            self.db.execute("DELETE FROM sent WHERE project_id=?", (project,))
        for project, share in shares.items():
            self.db.execute("INSERT OR REPLACE INTO remotes VALUES(?,?)", (project, share))
            if project not in known:
                self._add_stories(project, now)

    def _add_stories(self, project: int, now: int) -> None:
        self.db.execute(
            """
            INSERT OR IGNORE INTO outbox(project_id, kind, name, state, added_at)
            SELECT project_id, 'commit', sha, 'local', min(max(committed_at, 0), ?)
            FROM checkpoints
            WHERE project_id=? AND evidence IS NOT NULL
            """,
            (now, project),
        )

    def put(self, project: int, kind: str, name: str, state: str, now: int) -> None:
        self.db.execute(
            """
            INSERT INTO outbox(project_id, kind, name, state, added_at) VALUES(?,?,?,?,?)
            ON CONFLICT(project_id, kind, name) DO UPDATE SET
              state=excluded.state, next_at=0, error=NULL, attempts=0
            """,
            (project, kind, name, state, now),
        )

    def save(self, item: OutboxItem) -> None:
        self.db.execute(
            """
            UPDATE outbox SET
              state=?, attempts=?, next_at=?, error=?, sent_at=?, size=?, redacted=?, digest=?
            WHERE id=?
            """,
            (
                *(item.state, item.attempts, item.next_at, item.error, item.sent_at, item.size),
                *(item.redacted, item.digest, item.id),
            ),
        )

    def remove(self, item: int) -> None:
        self.db.execute("DELETE FROM outbox WHERE id=?", (item,))

    def set_states(self, items: Iterable[int], state: str) -> None:
        self.db.executemany(
            "UPDATE outbox SET state=?, next_at=0 WHERE id=?", [(state, item) for item in items]
        )

    def try_now(self, project: int | None = None) -> None:
        self.db.execute("UPDATE outbox SET next_at=0 WHERE ?1 IS NULL OR project_id=?1", (project,))

    def save_sent(self, project: int, source: SentSource) -> None:
        self.db.execute(
            "INSERT OR REPLACE INTO sent VALUES(?,?,?,?,?,?)",
            (
                *(project, source.agent, source.path, source.generation, source.rules),
                as_json(source.segments),
            ),
        )

    def forget_sent(self, project: int, agent: str, paths: Iterable[str]) -> None:
        self.db.executemany(
            "DELETE FROM sent WHERE project_id=? AND agent=? AND path=?",
            [(project, agent, path) for path in paths],
        )

    def forget_digests(self, project: int) -> None:
        self.db.execute("UPDATE outbox SET digest=NULL WHERE project_id=?", (project,))

    def add_try(self, tried: SyncTry) -> None:
        self.db.execute(
            "INSERT INTO sync_tries(at, why, project, sent, refused, error, took) "
            "VALUES(?,?,?,?,?,?,?)",
            (
                *(tried.at, tried.why, tried.project, tried.sent, tried.refused, tried.error),
                tried.took,
            ),
        )
        self.db.execute(
            "DELETE FROM sync_tries WHERE id <= (SELECT max(id) FROM sync_tries) - ?",
            (TRIES_KEPT,),
        )

    def carry(self, old: SqliteOutbox | None) -> None:
        """Take over what an older database of the same home knows; a project may have another
        number here."""
        if old is None:
            return
        identities = dict(fetch(old.db, "SELECT id, identity FROM projects"))
        numbers = dict(fetch(self.db, "SELECT identity, id FROM projects"))
        here = {number: numbers.get(identity) for number, identity in identities.items()}
        for table in ("remotes", "outbox", "sent"):
            rows = fetch(old.db, f"SELECT * FROM {table}")
            at = 1 if table == "outbox" else 0
            kept = []
            for row in rows:
                number = here.get(row[at])
                if number is not None:
                    kept.append((*row[:at], number, *row[at + 1 :]))
            marks = ",".join("?" * len(rows[0])) if rows else ""
            if kept:
                self.db.executemany(f"INSERT OR REPLACE INTO {table} VALUES({marks})", kept)
        for tried in reversed(old.tries(TRIES_KEPT)):
            self.add_try(tried)
