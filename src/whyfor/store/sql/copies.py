"""Sessions that begin with another session's records: restored, forked or resumed in a new file.

Which session that is, and the first event of their own, is found from what is stored of both, so
that it does not matter which of them was read first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from whyfor.model.events import SEQ_BITS, SEQ_MASK
from whyfor.store.sql.database import StoreDatabase, fetch, value

_KNOWN = "copies"  # mark: sessions that were stored before this was known are looked at once
_SPOKEN = "('user.prompt', 'assistant.message', 'tool.call', 'tool.result')"
_COLUMNS = (
    "id, agent, session_id, parent, forked_from, restored_from, last_seq, copied_to, copy_of, "
    "copy_kind, own_from"
)
# The first event of one session that another has not: by what identifies it, which most agents keep
# in a copy; else by its words and its time.
_SAME = (
    f"""
    SELECT min(a.id) - ?1
    FROM events a
    WHERE a.id BETWEEN ?1 AND ?2 AND a.kind IN {_SPOKEN}
      AND NOT EXISTS (SELECT 1 FROM events b WHERE b.session_id=?3 AND b.key=a.key)
    """,
    f"""
    WITH b AS MATERIALIZED (
      SELECT created_at, kind, text
      FROM event_texts
      WHERE id BETWEEN ?3 << {SEQ_BITS} AND (?3 << {SEQ_BITS}) + {SEQ_MASK})
    SELECT min(a.id) - ?1
    FROM event_texts a
    LEFT JOIN b ON b.created_at=a.created_at AND b.kind=a.kind AND b.text=a.text
    WHERE a.id BETWEEN ?1 AND ?2 AND a.kind IN {_SPOKEN} AND b.kind IS NULL
    """,
)
_SHARING = """
    SELECT DISTINCT b.session_id
    FROM usage a
    JOIN usage b ON b.key=a.key
    WHERE a.session_id=? AND b.session_id<>a.session_id
"""


class _Row(msgspec.Struct, frozen=True):
    id: int
    agent: str
    session_id: str
    parent: str | None
    forked_from: str | None
    restored_from: str | None
    last_seq: int
    copied_to: int
    copy_of: str | None
    copy_kind: str | None
    own_from: int

    @property
    def name(self) -> str:
        return f"{self.agent}:{self.session_id}"

    @property
    def says_so(self) -> bool:
        """Whether its own records say that it is a copy."""
        return self.forked_from is not None or self.restored_from is not None


class _Copy(msgspec.Struct, frozen=True):
    """What a session is a copy of, and where its own work begins."""

    copy_of: str | None = None
    copy_kind: str | None = None
    own_from: int = 1


def mark_copies(db: StoreDatabase, changed: Mapping[int, set[int]]) -> dict[int, Mapping[str, Any]]:
    """Find out, in the caller's transaction, what sessions that changed are copies of, and their
    relatives; returns the columns of those that are stored otherwise now.

    Of each session that changed, those are given that hold the same responses.
    """
    found: dict[int, Mapping[str, Any]] = {}
    for row in _related(db, {**_unknown(db), **changed}):
        copy = _judged(db, row)
        if copy == _Copy(row.copy_of, row.copy_kind, row.own_from):
            continue
        columns = msgspec.structs.asdict(copy)
        if copy.own_from != row.own_from:
            columns |= _own_counts(db, row.id, copy.own_from)
        names = ", ".join(f"{name}=?" for name in columns)
        db.execute(f"UPDATE sessions SET {names} WHERE id=?", (*columns.values(), row.id))
        found[row.id] = columns
    if any("copy_of" in columns for columns in found.values()):
        for number, original in _originals(db).items():
            found[number] = {**found.get(number, {}), "original": original}
    return found


def _originals(db: StoreDatabase) -> dict[int, str | None]:
    """Write down with which session each thread began; returns those that are otherwise now."""
    rows = fetch(
        db,
        """
        SELECT id, agent || ':' || session_id, copy_of, original FROM sessions
        WHERE coalesce(copy_of, original) IS NOT NULL
        """,
    )
    above = {name: origin for _, name, origin, _ in rows if origin is not None}
    found: dict[int, str | None] = {}
    for number, name, origin, before in rows:
        now = _first_of(name, above) if origin is not None else None
        if now != before:
            db.execute("UPDATE sessions SET original=? WHERE id=?", (now, number))
            found[number] = now
    return found


def _first_of(name: str, above: Mapping[str, str]) -> str | None:
    """Of two that say they come from each other, the first by name; it is no copy of itself."""
    seen = [name]
    while (origin := above.get(seen[-1])) is not None:
        if origin in seen:
            first = min(seen[seen.index(origin) :])
            return first if first != name else None
        seen.append(origin)
    return seen[-1]


def _unknown(db: StoreDatabase) -> dict[int, set[int]]:
    """Once: those that an earlier version stored, each with those that share responses with it."""
    if fetch(db, "SELECT 1 FROM marks WHERE name=?", (_KNOWN,)):
        return {}
    db.execute("INSERT INTO marks VALUES(?, 1)", (_KNOWN,))
    rows = fetch(
        db,
        """
        SELECT id FROM sessions WHERE forked_from IS NOT NULL
        UNION
        SELECT session_id FROM usage WHERE NOT counts
        """,
    )
    return {number: _sharing(db, number) for (number,) in rows}


def _sharing(db: StoreDatabase, session: int) -> set[int]:
    return {number for (number,) in fetch(db, _SHARING, (session,))}


def _related(db: StoreDatabase, sharing: Mapping[int, set[int]]) -> list[_Row]:
    """Those of these sessions that may be a copy or an original, and what may be theirs."""
    numbers: set[int] = set()
    for row in _rows(db, sharing):
        relatives = (_named(db, row) | sharing[row.id]) - {row.id}
        if relatives or row.copied_to or row.own_from > 1:
            numbers |= {row.id, *relatives}
    return _rows(db, numbers)


def _named(db: StoreDatabase, row: _Row) -> set[int]:
    """Sessions whose records say that they are copies of this one, or it of them."""
    agent, _, ident = (row.restored_from or "").partition(":")
    rows = fetch(
        db,
        """
        SELECT id FROM sessions WHERE forked_from=?1 AND agent=?2
        UNION ALL
        SELECT id FROM sessions WHERE restored_from=?3
        UNION ALL
        SELECT id FROM sessions WHERE agent=?2 AND session_id=?4
        UNION ALL
        SELECT id FROM sessions WHERE agent=?5 AND session_id=?6
        """,
        (row.session_id, row.agent, row.name, row.forked_from, agent, ident),
    )
    return {number for (number,) in rows}


def _rows(db: StoreDatabase, numbers: Iterable[int]) -> list[_Row]:
    wanted = msgspec.json.encode(sorted(numbers)).decode()
    sql = f"SELECT {_COLUMNS} FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
    return [_Row(*each) for each in fetch(db, sql, (wanted,))]


def _judged(db: StoreDatabase, row: _Row) -> _Copy:
    relatives = _rows(db, (_named(db, row) | _sharing(db, row.id)) - {row.id})
    mains = [each for each in relatives if each.parent is None]
    named = (row.restored_from, f"{row.agent}:{row.forked_from}")
    origin = next((each for each in mains if each.name in named), None)
    marked = row.copied_to + 1 if row.restored_from or origin else 1
    if row.parent is not None or (origin is None and row.says_so):
        return _Copy(None, None, marked)  # its parent is what is folded; or its original is gone
    if origin is None:
        return _unsaid(db, row, [each for each in mains if not each.says_so])
    kind = "restored" if row.restored_from else "forked"
    return _Copy(origin.name, kind, marked if marked > 1 else _own_from(db, row, origin))


def _unsaid(db: StoreDatabase, row: _Row, relatives: list[_Row]) -> _Copy:
    """Of those that hold the same records, and say nothing of it: what it has most in common
    with, if that was there before it."""
    best, best_from, best_kind = None, 1, "resumed"
    for other in sorted(relatives, key=lambda each: each.session_id):
        own, others = _own_from(db, row, other), _own_from(db, other, row)
        if own <= best_from or not _precedes(db, other, others, row, own):
            continue
        best, best_from = other, own
        best_kind = "forked" if others <= other.last_seq else "resumed"
    return _Copy(best.name, best_kind, best_from) if best else _Copy()


def _precedes(db: StoreDatabase, one: _Row, one_from: int, other: _Row, other_from: int) -> bool:
    """Whether the first is the original: all of it is in the other, or it went its own way
    first."""
    times = []
    for row, own_from in ((one, one_from), (other, other_from)):
        own = "SELECT min(created_at) FROM events WHERE id BETWEEN ? AND ?"
        base = row.id << SEQ_BITS
        first = value(db, own, (base + own_from, base + SEQ_MASK))
        times.append((int(first or 0) if own_from <= row.last_seq else -1, row.session_id))
    return times[0] < times[1]


def _own_from(db: StoreDatabase, row: _Row, origin: _Row) -> int:
    """The first event that the other does not have too; 1 if it shares nothing with it."""
    base = row.id << SEQ_BITS
    sql = f"SELECT min(id) - ?1 FROM events WHERE id BETWEEN ?1 AND ?2 AND kind IN {_SPOKEN}"
    first = value(db, sql, (base, base + SEQ_MASK))
    for same in _SAME:
        own = value(db, same, (base, base + SEQ_MASK, origin.id))
        if own is None:
            return row.last_seq + 1
        if own != first:
            return int(own)
    return 1


def _own_counts(db: StoreDatabase, session: int, own_from: int) -> dict[str, int]:
    """What counts as the session's own work: see `EventWriter._count`."""
    base = session << SEQ_BITS
    sql = """
        SELECT coalesce(sum(kind='user.prompt' AND actor='user'), 0),
               coalesce(sum(kind IN ('user.prompt', 'assistant.message')), 0),
               coalesce(sum(kind='tool.call' AND actor<>'user'), 0)
        FROM events
        WHERE id BETWEEN ? AND ?
    """
    counts = fetch(db, sql, (base + own_from, base + SEQ_MASK))[0]
    return dict(zip(("prompts", "messages", "tool_calls"), counts, strict=True))
