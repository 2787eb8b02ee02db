"""Find what is new in each session since it was last read: rows are added and change in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import apsw

from whyfor.agents.base import Rows, as_int, as_list, get_dict, get_int
from whyfor.agents.databases.connection import Database
from whyfor.agents.databases.lines import line_sum
from whyfor.agents.databases.tables import read_batches
from whyfor.agents.opencode.tables import NEEDED, DatabaseRow, Table
from whyfor.model.findings import Record

BATCH = 4 << 20  # bytes of lines handed over at a time
WINDOW = 10_000  # milliseconds a row may be committed late, its time already set


def new_rows(path: Path, positions: Mapping[str, Record]) -> Iterator[Rows]:
    """Yield the new rows in batches; start again from the last position if the database changed
    while it was read."""
    return read_batches(path, positions, _batches)


def _batches(db: Database, positions: Mapping[str, Record]) -> Iterator[Rows]:
    tables = {name: Table(db, name) for name in NEEDED}
    timed = all(table.timed for table in tables.values())
    for ident, parent, count, total in _sessions(db, tables):
        position = positions.get(ident) or {}
        if timed and position.get("rows") == count and position.get("sum") == total:
            continue
        done = False
        while not done:
            batch = Batch(tables, ident, position)
            db.query("BEGIN")
            try:
                done = batch.fill()
            except (apsw.Error, OSError):
                raise
            except Exception as error:  # noqa: BLE001 - reported with its session; the others are read
                yield Rows(ident, parent, b"", position, error)
                break
            finally:
                db.query("ROLLBACK")
            if batch.lines:
                position = batch.position
                yield Rows(ident, parent, b"".join(batch.lines), position)
            elif timed and position.get("rows") == count:
                # a row changed, but not to a later time: the clock was set back
                position, done = {}, False


def _sessions(db: Database, tables: dict[str, Table]) -> list[tuple[str, str | None, int, int]]:
    """Return each session with its parent, its number of messages and parts, and the sum of all
    their times."""
    count: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for name in ("message", "part"):
        # In the table's own order: through the index on the session every row would be a jump.
        for session, stamp in db.query(
            f"SELECT session_id, {tables[name].stamp} FROM {name} NOT INDEXED"
        ):
            count[session] += 1
            total[session] += stamp
    table = tables["session"]
    parent_id = "parent_id" if "parent_id" in table.columns else "NULL"
    found = db.query(f"SELECT id, {parent_id}, {table.stamp} FROM session ORDER BY {table.order}")
    return [(ident, parent, count[ident], total[ident] + stamp) for ident, parent, stamp in found]


class Batch:
    """The new rows of one session, up to a size.

    A position records how many rows there were, the sum of their times, the last inserted rows and
    their time, and which rows around that time were seen, each with its time and checksum. So a row
    that is committed late, or changes twice within a millisecond, is still noticed. Between two
    batches the position keeps the old values, has no row count, and lists every row handed over
    since.
    """

    def __init__(self, tables: dict[str, Table], session: str, position: Record) -> None:
        self.tables = tables
        self.session = session
        self.before = position
        self.time = get_int(position, "time")
        self.last = get_dict(position, "last")
        self.seen: Record = dict(get_dict(position, "seen"))
        self.lines: list[bytes] = []
        self.position: Record = {}

    def fill(self) -> bool:
        """Read the new rows; return whether nothing is left for another batch."""
        found = self.tables["session"].items("id", self.session)
        messages, parts = (
            self.tables[name].items("session_id", self.session) for name in ("message", "part")
        )
        plan = [[row] for row in found if self._is_new(row)] + list(
            self._conversation(messages, parts)
        )
        size = 0
        for index, group in enumerate(plan, 1):
            for item in group:
                line = item.table.line(item.ident)
                self.lines.append(line)
                self.seen[item.ident] = [item.stamp, line_sum(line)]
                size += len(line)
            if size >= BATCH and index < len(plan):
                self.position = {**self.before, "rows": None, "seen": self.seen}
                return False
        if found:
            self._settle(found, messages, parts)
        return True

    def _settle(self, *tables: list[DatabaseRow]) -> None:
        items = [item for rows in tables for item in rows]
        last = [max(rows, key=lambda item: item.rowid) for rows in tables if rows]
        time = max(item.stamp for item in last[1:] or last)
        recent = (item for item in items if item.stamp > time - WINDOW)
        self.position = {
            "rows": len(items) - 1,
            "sum": sum(item.stamp for item in items),
            "time": time,
            "last": {item.table.name: item.rowid for item in last},
            "seen": {item.ident: self.seen.get(item.ident, [item.stamp, None]) for item in recent},
        }

    def _conversation(
        self, messages: list[DatabaseRow], parts: list[DatabaseRow]
    ) -> Iterator[list[DatabaseRow]]:
        """Yield new and changed rows in order, each part after its message; a group is never
        split."""
        owned: dict[str | None, list[DatabaseRow]] = {}
        for part in parts:
            owned.setdefault(part.owner, []).append(part)
        for message in messages:
            own = owned.pop(message.ident, [])
            fresh = [part for part in own if self._is_new(part)]
            if fresh and self._is_prompt(message):
                yield [message, *own]  # a prompt is all its parts together
            elif fresh:
                yield [message, fresh[0]]
                yield from ([part] for part in fresh[1:])
            elif self._is_new(message):
                yield [message]
        yield from ([part] for rest in owned.values() for part in rest if self._is_new(part))

    def _is_prompt(self, message: DatabaseRow) -> bool:
        sql = "SELECT CASE WHEN json_valid(data) THEN data ->> '$.role' END FROM message WHERE id=?"
        try:
            return bool(next(message.table.db.query(sql, message.ident))[0] == "user")
        except apsw.TooBigError:
            return False

    def _is_new(self, item: DatabaseRow) -> bool:
        inserted = item.rowid > (as_int(self.last.get(item.table.name)) or 0)
        if self.time is not None and item.stamp <= self.time - WINDOW and not inserted:
            return False
        known = as_list(self.seen.get(item.ident))
        if len(known) != 2 or known[0] != item.stamp:
            return True
        settled = self.before.get("rows") is not None and known[1] is not None
        return settled and bool(known[1] != line_sum(item.table.line(item.ident)))
