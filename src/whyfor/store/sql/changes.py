"""A log of what changed after it was stored: events an agent completed later, and stories that
commits got, changed or lost.

Subscribers that have read everything else follow this log. Its numbers rise with time, also from
one database to the next, so a number tells whether all later changes are still known. Each thing is
listed once, under its latest number.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from whyfor.model.checkpoints import ChangeRecord
from whyfor.model.errors import StoreError
from whyfor.model.events import SEQ_BITS, EventRef
from whyfor.store.sql.database import StoreDatabase, fetch

KEPT = 5000
_SPARE = 1000  # more than that before the oldest are dropped: not with every write
_MARK = "changes"  # up to this number nothing is known any more
_FLOOR = f"coalesce((SELECT max(value) FROM marks WHERE name='{_MARK}'), 0)"
_LAST = f"max({_FLOOR}, coalesce((SELECT max(id) FROM changes), 0))"
_decode = msgspec.json.Decoder(set[int]).decode


class ChangeLog:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def ends(self) -> tuple[int, int]:
        """Return two numbers: all changes after the first are known; the second is the latest."""
        [(floor, last)] = fetch(self.db, f"SELECT {_FLOOR}, {_LAST}")
        return floor, last

    def after(self, number: int, limit: int) -> list[ChangeRecord]:
        rows = fetch(
            self.db,
            """
            SELECT c.id, c.event, c.sha, p.identity, c.sessions
            FROM changes c LEFT JOIN projects p ON p.id=c.project_id
            WHERE c.id > ?
            ORDER BY c.id
            LIMIT ?
            """,
            (number, limit),
        )
        return [
            ChangeRecord(ident, _ref(event), sha, project, _decode(sessions) if sessions else set())
            for ident, event, sha, project, sessions in rows
        ]

    def of_sessions(self) -> dict[int, int]:
        """Return, by session, the number of the latest change to one of its events."""
        sql = f"SELECT event >> {SEQ_BITS}, max(id) FROM changes WHERE event IS NOT NULL GROUP BY 1"
        return dict(fetch(self.db, sql))

    # -- writing, in the caller's transaction ----------------------------------------------------

    def add_event(self, ident: int) -> None:
        self.db.execute(
            f"""
            INSERT INTO changes(id, event) VALUES(max(?, 1 + {_LAST}), ?)
            ON CONFLICT(event) DO UPDATE SET id=excluded.id
            """,
            (_now(), ident),
        )

    def add_story(self, commit: str, project: int | None, sessions: Iterable[int]) -> None:
        """Note that a commit's story changed, for its sessions now and those that had a part in it
        before."""
        known = fetch(self.db, "SELECT project_id, sessions FROM changes WHERE sha=?", (commit,))
        for before, listed in known:
            project = before if project is None else project
            sessions = {*sessions, *_decode(listed)}
        self.db.execute(
            f"""
            INSERT INTO changes(id, sha, project_id, sessions)
            VALUES(max(?, 1 + {_LAST}), ?, ?, ?)
            ON CONFLICT(sha) DO UPDATE SET
              id=excluded.id, project_id=excluded.project_id, sessions=excluded.sessions
            """,
            (_now(), commit, project, msgspec.json.encode(sorted(sessions)).decode()),
        )

    def prune(self) -> None:
        [(number,)] = fetch(self.db, "SELECT count(*) FROM changes")
        if number > KEPT + _SPARE:
            [(last,)] = fetch(
                self.db, "SELECT id FROM changes ORDER BY id DESC LIMIT 1 OFFSET ?", (KEPT,)
            )
            self._drop(last)

    def begin_anew(self, last: int = 0) -> None:
        """Drop the log: every subscriber, also one that has read up to `last`, must read everything
        again."""
        self._drop(1 + max(_now(), last, self.ends()[1]))

    def carry(self, old: ChangeLog | None) -> None:
        """Continue the log of an old database in this one; start anew if sessions have other
        numbers here."""
        self.db.execute("DELETE FROM changes")
        floor = last = 0
        rows = None
        if old is not None:
            try:
                floor, last = old.ends()
                rows = fetch(old.db, "SELECT * FROM changes") if _alike(old.db, self.db) else None
            except StoreError:
                rows = None  # it is made again because it is damaged
        if rows is None:
            self.begin_anew(last)
        else:
            self.db.executemany("INSERT INTO changes VALUES(?,?,?,?,?)", rows)
            self._mark(floor)

    def _drop(self, last: int) -> None:
        self.db.execute("DELETE FROM changes WHERE id <= ?", (last,))
        self._mark(last)

    def _mark(self, number: int) -> None:
        put_mark(self.db, _MARK, number)


def put_mark(db: StoreDatabase, name: str, number: int) -> None:
    """Store a number under a name, in the caller's transaction."""
    db.execute(
        "INSERT INTO marks VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value=excluded.value",
        (name, number),
    )


def _alike(old: StoreDatabase, fresh: StoreDatabase) -> bool:
    numbers = (
        "SELECT id, agent, session_id, last_seq FROM sessions ORDER BY id",
        "SELECT id, identity FROM projects ORDER BY id",
        "SELECT value FROM marks WHERE name='forgotten'",
    )
    return all(fetch(old, sql) == fetch(fresh, sql) for sql in numbers)


def _ref(ident: int | None) -> EventRef | None:
    return EventRef.of(ident) if ident is not None else None


def _now() -> int:
    return time.time_ns() // 1_000_000
