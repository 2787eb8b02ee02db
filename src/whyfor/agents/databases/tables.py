"""Databases with a table of sessions and tables of what belongs to them: what is new in each
session since it was last read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import apsw
import msgspec

from whyfor.agents.base import Rows, get_dict
from whyfor.agents.databases.connection import Database, unreadable
from whyfor.agents.databases.lines import line_sum, row_line
from whyfor.agents.databases.shape import SessionTables
from whyfor.model.findings import Record

BATCH = 4 << 20  # bytes of lines handed over at a time
_TRIES = 3


Batches = Callable[[Database, Mapping[str, Record]], Iterator[Rows]]


def read_batches(path: Path, positions: Mapping[str, Record], batches: Batches) -> Iterator[Rows]:
    """Yield what `batches` finds; start again from the last position if the database changed while
    it was read. Raises OSError if it cannot be read."""
    known, failure = dict(positions), None
    for _ in range(_TRIES):
        try:
            with Database(path) as db:
                for rows in batches(db, known):
                    if db.moved():
                        break
                    if rows.error is None:
                        known[rows.session_id] = rows.position
                    yield rows
                else:
                    return
        except apsw.Error as error:
            failure = error
    raise unreadable(path, failure) from failure


def changed_rows(
    path: Path, store: SessionTables, positions: Mapping[str, Record], about: Record
) -> Iterator[Rows]:
    """Yield the new and changed rows of each session, its own row first, with what is known of all
    of them (`about`) beside it."""
    return read_batches(path, positions, lambda db, known: _batches(db, store, known, about))


def _batches(
    db: Database, store: SessionTables, positions: Mapping[str, Record], about: Record
) -> Iterator[Rows]:
    columns = db.columns(store.sessions)
    marks = _marks(db, store)
    parent_id = f'"{store.parent}"' if store.parent in columns else "NULL"
    found = list(db.query(f"SELECT id, {parent_id} FROM {store.sessions} ORDER BY rowid"))
    for ident, parent in found:
        if not isinstance(ident, str):
            continue
        line = row_line(db, store.sessions, columns, "id", ident, **about)
        mark = [line_sum(line), *marks.get(ident, [])]
        position = positions.get(ident) or {}
        if position.get("mark") == mark:
            continue
        yield from _session(db, store, _Session(ident, parent, line, mark), position)


class _Session(msgspec.Struct, frozen=True):
    ident: str
    parent: str | None
    line: bytes
    mark: list[int]  # what its rows add up to


def _session(
    db: Database, store: SessionTables, session: _Session, position: Record
) -> Iterator[Rows]:
    """Yield the session's row and those that are new. A position has a checksum of every row: rows
    are deleted and inserted anew, and flags of old ones change."""
    seen: Record = dict(get_dict(position, "seen"))
    lines: list[bytes] = []
    size = 0
    if session.line and get_dict(position, "own") != {"sum": session.mark[0]}:
        lines.append(session.line)
    own = {"sum": session.mark[0]}
    for name, line in _rows(db, store, session.ident):
        total = line_sum(line)
        if seen.get(name) == total:
            continue
        seen[name] = total
        lines.append(line)
        size += len(line)
        if size >= BATCH:
            now: Record = {"own": own, "seen": dict(seen)}
            yield Rows(session.ident, session.parent, b"".join(lines), now)
            lines, size = [], 0
    done: Record = {"own": own, "seen": seen, "mark": session.mark}
    yield Rows(session.ident, session.parent, b"".join(lines), done)


def _rows(db: Database, store: SessionTables, session: str) -> Iterator[tuple[str, bytes]]:
    """Yield the rows of a session, each with a name of its own."""
    for table in store.tables:
        columns = db.columns(table.name)
        sql = f"SELECT {table.ident} FROM {table.name} WHERE {table.session}=? ORDER BY rowid"
        for (ident,) in list(db.query(sql, session)):
            line = row_line(db, table.name, columns, table.ident, ident)
            yield f"{table.name} {ident}", line


def _marks(db: Database, store: SessionTables) -> dict[str, list[int]]:
    """Return what the rows of each session add up to: how many, the last one, and their weight."""
    found: dict[str, list[int]] = {}
    for table in store.tables:
        sql = (
            f"SELECT {table.session}, count(*), max(rowid), total({table.weight}) "
            f"FROM {table.name} GROUP BY {table.session}"
        )
        for session, count, last, weight in db.query(sql):
            found.setdefault(_text(session), []).extend((count, last, int(weight)))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
