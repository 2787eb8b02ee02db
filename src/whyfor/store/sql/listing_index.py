"""Keeps the list of sessions: which sessions make one row, and what a row is sorted by.

`listed` has a line for each session. `head` is the session in whose row it stands: its caller if it
is a subagent, the session it continues if it is a copy, else itself. The columns after `files` hold
for the whole row, and are only kept on the line of the head.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whyfor.model.events import SEQ_BITS, SEQ_MASK
from whyfor.store.sql.database import StoreDatabase

PAUSE = 3_600_000  # ms: longer silences are not work
_DEPTH = 32  # callers of callers, copies of copies

_ASKED = """
    SELECT max(id) FROM events INDEXED BY events_questions
    WHERE session_id=? AND kind='question.asked'
"""
_ERROR = """
    SELECT max(id) FROM events INDEXED BY events_wrong WHERE session_id=? AND kind='error'
"""
_AFTER = """
    SELECT 1 FROM events
    WHERE id > ? AND id <= ? AND kind IN ('user.prompt', 'tool.result', 'assistant.message')
    LIMIT 1
"""
# From one moment to the next, unless that is a prompt: before it, the agent waited.
_WORKED = """
    SELECT coalesce(sum(at - before), 0)
    FROM (
      SELECT at, prompt, lag(at) OVER (ORDER BY at) AS before
      FROM (
        SELECT created_at AS at, TRUE AS prompt FROM events INDEXED BY events_asked
        WHERE session_id=?1 AND kind='user.prompt' AND actor='user' AND id >= ?2
        UNION ALL
        SELECT created_at, FALSE FROM events INDEXED BY events_returned
        WHERE session_id=?1 AND kind='tool.result' AND id >= ?2
        UNION ALL
        SELECT created_at, FALSE FROM usage WHERE session_id=?1 AND counts
        UNION ALL
        SELECT ended_at, FALSE FROM sessions WHERE id=?1) moments
      WHERE at IS NOT NULL) steps
    WHERE NOT prompt AND at - before <= ?3
"""
_OWN = """
    SELECT
      (SELECT count(*) FROM events INDEXED BY events_asked
       WHERE session_id=?1 AND kind='user.prompt' AND actor='user' AND id >= ?2),
      (SELECT count(DISTINCT path) FROM touches
       WHERE session_id=?1 AND action='write' AND seq >= ?3)
"""
_PUT = """
    INSERT INTO listed(session_id, head, turns, worked, asked, failed, files, shown)
    VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?1)
    ON CONFLICT(session_id) DO UPDATE SET
      head=?2, turns=?3, worked=?4, asked=?5, failed=?6, files=?7
"""
_ROW = """
    UPDATE listed SET (last_at, began_at, worked_all, tokens, cost, unpriced) = (
        SELECT max(CASE WHEN s.own_from > 1 AND s.messages=0 THEN 0
                        ELSE coalesce(s.ended_at, s.started_at, 0) END),
               coalesce(min(CASE WHEN s.parent IS NULL OR s.id=?1 THEN s.started_at END), 0),
               sum(CASE WHEN s.parent IS NULL OR s.id=?1 THEN m.worked ELSE 0 END),
               coalesce(sum(
                 CASE WHEN coalesce(s.input, s.cache_read, s.cache_write, s.output) IS NOT NULL
                 THEN coalesce(s.input, 0) + coalesce(s.cache_read, 0)
                      + coalesce(s.cache_write, 0) + coalesce(s.output, 0) END), -1),
               coalesce(sum(s.cost), -1), coalesce(sum(s.unpriced), 0)
        FROM listed m JOIN sessions s ON s.id=m.session_id
        WHERE m.head=?1),
      shown = (
        SELECT s.id FROM listed m JOIN sessions s ON s.id=m.session_id
        WHERE m.head=?1 AND (s.parent IS NULL OR s.id=?1)
        ORDER BY s.own_from > 1 AND s.messages=0, coalesce(s.ended_at, s.started_at, 0) DESC,
                 s.id DESC
        LIMIT 1)
    WHERE session_id=?1 AND head=?1
"""

# The session a subagent was called by, else the first one of a copy's thread.
_ABOVE = """
    SELECT coalesce(
      (SELECT o.id FROM sessions o WHERE o.agent=s.agent AND o.session_id=s.parent),
      (SELECT o.id FROM sessions o
       WHERE s.parent IS NULL AND o.agent=substr(s.original, 1, instr(s.original, ':') - 1)
         AND o.session_id=substr(s.original, instr(s.original, ':') + 1)))
    FROM sessions s WHERE s.id=?
"""


_MEMBERS = "SELECT session_id FROM listed WHERE head=?"


def renew_listing(db: StoreDatabase, sessions: Iterable[int]) -> None:
    """Bring the rows of these sessions up to date, inside the caller's transaction."""
    heads: set[int] = set()
    for number in sorted(sessions):
        heads |= _renew(db, number)
    db.executemany(_ROW, [(head,) for head in sorted(heads)])


def remove_listing(db: StoreDatabase, session: int) -> None:
    """A session was deleted: those that stood in its row get rows of their own."""
    left = _rows(db, "SELECT session_id FROM listed WHERE head=?1 AND session_id<>?1", (session,))
    head = _rows(db, "SELECT head FROM listed WHERE session_id=?", (session,))
    db.execute("DELETE FROM listed WHERE session_id=?", (session,))
    renew_listing(db, [number for (number,) in left])
    db.executemany(_ROW, head)


def renew_rows(db: StoreDatabase, sessions: Iterable[int]) -> None:
    """Sum up the rows of these sessions again, of which nothing else changed."""
    heads = set()
    for number in sessions:
        found = _first(db, "SELECT head FROM listed WHERE session_id=?", (number,))
        heads |= {found[0]} if found else set()
    db.executemany(_ROW, [(head,) for head in sorted(heads)])


def fill_listing(db: StoreDatabase) -> None:
    """List everything that is kept, for a database that had no list."""
    renew_listing(db, [number for (number,) in _rows(db, "SELECT id FROM sessions")])


def _renew(db: StoreDatabase, number: int) -> set[int]:
    """Renew a session's line; return the heads of the rows that are otherwise now."""
    found = _first(db, "SELECT own_from FROM sessions WHERE id=?", (number,))
    if found is None:
        return set()
    known = _first(db, "SELECT head FROM listed WHERE session_id=?", (number,))
    own = (number << SEQ_BITS) + found[0]
    turns, files = _rows(db, _OWN, (number, own, found[0]))[0]
    worked = _rows(db, _WORKED, (number, own, PAUSE))[0][0]
    head = _head(db, number)
    facts = (turns, worked, _open_end(db, _ASKED, number), _open_end(db, _ERROR, number), files)
    db.execute(_PUT, (number, head, *facts))
    heads = {head}
    if known is None:
        heads |= _adopt(db, number, head)
    elif known[0] != head:
        heads |= _move(db, number) | _move(db, known[0])
    return heads


def _open_end(db: StoreDatabase, sql: str, number: int) -> int | None:
    """The last event of a sort, if nothing was asked, done or said after it."""
    found = _rows(db, sql, (number,))[0][0]
    top = (number << SEQ_BITS) | SEQ_MASK
    if found is None or _rows(db, _AFTER, (found, top)):
        return None
    return int(found)


def _head(db: StoreDatabase, number: int) -> int:
    """The first session of the row a session stands in."""
    for _ in range(_DEPTH):
        found = _first(db, _ABOVE, (number,))
        if found is None or found[0] in (None, number):
            return number
        number = int(found[0])
    return number


def _move(db: StoreDatabase, before: int) -> set[int]:
    """Put the sessions of a row where they belong now; return the heads of all rows concerned."""
    members = [number for (number,) in _rows(db, _MEMBERS, (before,))]
    heads = [_head(db, number) for number in members]
    db.executemany(
        "UPDATE listed SET head=? WHERE session_id=?", list(zip(heads, members, strict=True))
    )
    return {before, *heads}


def _adopt(db: StoreDatabase, number: int, head: int) -> set[int]:
    """A session is new: subagents of it that came before it stand in its row now."""
    rows = _rows(
        db,
        """
        SELECT c.id FROM sessions s
        JOIN sessions c INDEXED BY sessions_by_parent ON c.parent=s.session_id AND c.agent=s.agent
        JOIN listed l ON l.session_id=c.id AND l.head=c.id
        WHERE s.id=? AND c.id<>s.id
        """,
        (number,),
    )
    db.executemany("UPDATE listed SET head=? WHERE head=?", [(head, child) for (child,) in rows])
    return {head}


def _first(db: StoreDatabase, sql: str, values: tuple[Any, ...]) -> Any:
    return next(iter(_rows(db, sql, values)), None)


def _rows(db: StoreDatabase, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
    return db.execute(sql, values).fetchall()
