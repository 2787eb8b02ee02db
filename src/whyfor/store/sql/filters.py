"""Filters as SQL: which sessions, which documents."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.events import SEQ_MASK
from whyfor.model.query import Filters

# Of a session `s`, the thread it belongs to: copies have their original's.
THREAD = "coalesce(s.original, s.agent || ':' || s.session_id)"
# Whether something happened in it: a restored copy that nobody opened did nothing.
WORKED = "(s.own_from = 1 OR s.own_from <= s.last_seq)"
# Whether it counts as a session: of a thread only the first does, of each agent.
COUNTS = (
    "(s.parent IS NULL AND (s.original IS NULL OR instr(s.original, s.agent || ':') <> 1) AND "
    f"{WORKED})"
)
# Those that do not, and are no subagents: few, with an index of their own.
_COPIES = "(s.original IS NOT NULL OR s.own_from > 1)"
UNCOUNTED = (
    f"sessions s INDEXED BY sessions_copies WHERE {_COPIES} AND s.parent IS NULL AND NOT {COUNTS}"
)
# As in the index events_wrong, word for word: SQLite uses it for nothing else.
WRONG = (
    "kind='error' OR interrupted OR kind='approval.resolved' AND denied OR failed AND NOT denied"
)
# Whether the path of a touch `t` is meant by what people type; slashes of any system.
ENDS_OF_PATH = r"instr(? || replace(t.path, '\', '/') || '/', ?) BETWEEN 1 AND ?"


def as_json(value: Any) -> str:
    """Return a list as `json_each` takes it."""
    return msgspec.json.encode(value).decode()


def doc_filter(filters: Filters) -> tuple[list[str], list[Any]]:
    """Return the conditions on documents `d` of sessions `s`: their own time counts, and whether a
    commit came of them."""
    where, values = session_filter(filters, "d.created_at")
    if filters.committed:
        where.append(
            f"EXISTS (SELECT 1 FROM parts q WHERE q.session_id = s.id AND (d.id & {SEQ_MASK}) <= "
            "q.last "
            "AND d.last_seq >= q.first)"
        )
    return where, values


def session_filter(filters: Filters, when: str | None = None) -> tuple[list[str], list[Any]]:
    where: list[str] = []
    values: list[Any] = []
    if filters.agent:
        where.append("s.agent = ?")
        values.append(filters.agent)
    if filters.agents:
        where.append("s.agent IN (SELECT value FROM json_each(?))")
        values.append(as_json(list(filters.agents)))
    if filters.person is not None:
        where.append("s.person = ?")
        values.append(filters.person)
    if filters.projects is not None:
        where.append("s.project_id IN (SELECT value FROM json_each(?))")
        values.append(as_json(list(filters.projects)))
    if filters.branch:
        where.append("s.branch = ?")
        values.append(filters.branch)
    if filters.file:
        # Its own writes, or those of its subagents; of another system's path the same.
        where.append(
            "s.id IN (SELECT coalesce(p.id, w.id) FROM touches t JOIN sessions w ON "
            "w.id = t.session_id LEFT JOIN sessions p ON p.agent = w.agent AND "
            f"p.session_id = w.parent WHERE t.action = 'write' AND {ENDS_OF_PATH})"
        )
        values += file_terms(filters.file)
    if filters.task:
        # Its own run, or that of one of its subagents.
        where.append(
            "s.id IN (SELECT coalesce(p.id, w.id) FROM task_runs r JOIN sessions w ON "
            "w.id = r.session_id LEFT JOIN sessions p ON p.agent = w.agent AND "
            "p.session_id = w.parent WHERE r.key = ?)"
        )
        values.append(filters.task)
    if filters.since is not None:
        where.append(f"{when or 's.ended_at'} >= ?")
        values.append(filters.since)
    if filters.until is not None:
        where.append(f"{when or 's.started_at'} <= ?")
        values.append(filters.until)
    return where, values


def file_terms(file: str) -> tuple[str, str, int]:
    """Return the values of ENDS_OF_PATH: what stands before a path, what is looked for in it, and
    up to where that may begin: a whole path begins at its beginning, the end of one after any
    slash."""
    path = file.replace("\\", "/").rstrip("/") + "/"
    return ("", path, 1) if path.startswith("/") else ("/", f"/{path}", 1 << 30)


def escape_like(text: str) -> str:
    """Return text that means itself in a LIKE whose escape character is the backslash."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
