"""The list of sessions, as people browse it: rows, pages, counts; see listing_index.py."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from whyfor.model.cost import nano_cost
from whyfor.model.events import SEQ_BITS
from whyfor.model.listing import (
    FolderCount,
    ListedSession,
    ListFilter,
    ListTotals,
    PeriodCount,
    RowKey,
    RowPart,
)
from whyfor.model.query import Atom, Query
from whyfor.model.titles import title_source
from whyfor.store.sql.database import StoreDatabase, WordIndex, fetch, first_row
from whyfor.store.sql.filters import ENDS_OF_PATH, WRONG, as_json, escape_like, file_terms

_SORTED_BY = {
    "last": "l.last_at",
    "started": "l.began_at",
    "longest": "l.worked_all",
    "tokens": "l.tokens",
    "cost": "l.cost",
}
# What is said of the part that a row shows.
_JOINS = {
    "s": "JOIN sessions s ON s.id=l.shown",
    "o": "JOIN listed o ON o.session_id=l.shown",
}
_COMMITTED = """
    SELECT m.head FROM parts p
    JOIN checkpoints c ON c.sha=p.sha
    JOIN listed m ON m.session_id=p.session_id
    WHERE c.superseded_by IS NULL
"""
_WROTE = "SELECT m.head FROM listed m WHERE m.files > 0"
# Of a row, in the order in which they are read.
_COLUMNS = """
    head id agent session_id project cwd branch title began_at last_at worked tokens models asked
    failed lone cost unpriced title_source
""".split()
_OUTCOME = {
    "asked": "o.asked IS NOT NULL",
    "failed": "o.failed IS NOT NULL",
    "committed": f"l.session_id IN ({_COMMITTED})",
    "changed": f"l.session_id IN ({_WROTE}) AND l.session_id NOT IN ({_COMMITTED})",
    "nothing": f"l.session_id NOT IN ({_WROTE}) AND l.session_id NOT IN ({_COMMITTED})",
    "open": "l.session_id IN (SELECT m.head FROM listed m "
    "WHERE m.session_id IN (SELECT value FROM json_each(?)))",
}


class SqlListing:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def page(
        self,
        which: ListFilter,
        sort: str,
        limit: int | None,
        after: RowKey | None = None,
        *,
        upwards: bool = False,
    ) -> list[tuple[RowKey, ListedSession]]:
        by = _SORTED_BY[sort]
        where, values = _where(which, self.db.index)
        sign, order = (">", "ASC") if upwards else ("<", "DESC")
        if after is not None:
            where += f" AND ({by}, l.session_id) {sign} (?, ?)"
            values += [after.value, after.head]
        sql = (
            f"SELECT {by}, l.session_id {_rows_with(where)} {where} "
            f"ORDER BY {by} {order}, l.session_id {order} LIMIT ?"
        )
        keys = [
            RowKey(*row) for row in fetch(self.db, sql, (*values, -1 if limit is None else limit))
        ]
        rows = self.rows([key.head for key in keys])
        found = [(key, rows[key.head]) for key in keys]
        return found[::-1] if upwards else found

    def count(self, which: ListFilter, sort: str = "last", before: RowKey | None = None) -> int:
        where, values = _where(which, self.db.index)
        if before is not None:
            where += f" AND ({_SORTED_BY[sort]}, l.session_id) > (?, ?)"
            values += [before.value, before.head]
        return int(fetch(self.db, f"SELECT count(*) {_rows_with(where)} {where}", values)[0][0])

    def rows(self, heads: list[int]) -> dict[int, ListedSession]:
        given = as_json(heads)
        found = fetch(
            self.db,
            """
            SELECT l.session_id, s.id, s.agent, s.session_id, p.identity, s.cwd, s.branch, s.title,
                   l.began_at, l.last_at, l.worked_all, l.tokens, s.models, o.asked, o.failed,
                   s.parent IS NOT NULL, l.cost, l.unpriced, s.title_rank
            FROM listed l
            JOIN sessions s ON s.id=l.shown
            JOIN listed o ON o.session_id=l.shown
            LEFT JOIN projects p ON p.id=s.project_id
            WHERE l.session_id IN (SELECT value FROM json_each(?))
            """,
            (given,),
        )
        commits = self._counts(
            "SELECT m.head, count(DISTINCT p.sha) FROM listed m "
            "JOIN parts p ON p.session_id=m.session_id JOIN checkpoints c ON c.sha=p.sha "
            "WHERE c.superseded_by IS NULL AND m.head IN (SELECT value FROM json_each(?)) "
            "GROUP BY 1",
            given,
        )
        files = self._counts(
            "SELECT m.head, count(DISTINCT t.path) FROM listed m "
            "JOIN touches t ON t.session_id=m.session_id AND t.action='write' "
            "WHERE m.files > 0 AND m.head IN (SELECT value FROM json_each(?)) GROUP BY 1",
            given,
        )
        members, checks = self._members(given), self._checks(given)
        made = {}
        for line in found:
            row: dict[str, Any] = dict(zip(_COLUMNS, line, strict=True))
            head = row["head"]
            subagents, turns, parts = members[head]
            row.update(
                began_at=row["began_at"] or None,
                last_at=row["last_at"] or None,
                tokens=None if row["tokens"] < 0 else row["tokens"],
                models=msgspec.json.decode(row["models"]),
                lone=bool(row["lone"]),
                title_source=title_source(row["title_source"]),
                cost=nano_cost(None if row["cost"] < 0 else row["cost"], row.pop("unpriced")),
            )
            made[head] = ListedSession(
                **row,
                turns=turns,
                subagents=subagents,
                commits=commits.get(head, 0),
                files=files.get(head, 0),
                parts=tuple(parts) if len(parts) > 1 else (),
                checks=checks.get(head, {}),
            )
        return made

    def _counts(self, sql: str, heads: str) -> dict[int, int]:
        return dict(fetch(self.db, sql, (heads,)))

    def _checks(self, heads: str) -> dict[int, dict[str, bool]]:
        """By row and check: whether it passed when it last ran. After a time when it passed, it
        did so to the end if nothing failed any more; else nobody can tell."""
        rows = fetch(
            self.db,
            f"""
            SELECT m.head, c.family, c.ok > 0
            FROM listed m JOIN session_commands c ON c.session_id=m.session_id
            WHERE m.head IN (SELECT value FROM json_each(?)) AND (
                (c.ok > 0) <> (c.failed > 0)
                OR c.ok > 0 AND NOT EXISTS (
                    SELECT 1 FROM events INDEXED BY events_wrong
                    WHERE session_id=c.session_id AND ({WRONG}) AND created_at > c.last_ok))
            ORDER BY m.session_id
            """,
            (heads,),
        )
        found: dict[int, dict[str, bool]] = {}
        for head, family, passed in rows:
            found.setdefault(head, {})[family] = bool(passed)
        return found

    def _members(self, heads: str) -> dict[int, tuple[int, int, list[RowPart]]]:
        """By row: how many subagents, how many turns, and its parts in the order they began."""
        rows = fetch(
            self.db,
            """
            SELECT m.head, s.parent IS NOT NULL AND s.id<>m.head, s.id, s.agent, s.session_id,
                   s.title, coalesce(s.copy_kind, 'first'), s.started_at, s.ended_at, m.turns
            FROM listed m JOIN sessions s ON s.id=m.session_id
            WHERE m.head IN (SELECT value FROM json_each(?))
            ORDER BY s.id<>m.head, s.started_at NULLS FIRST, s.id
            """,
            (heads,),
        )
        found: dict[int, tuple[int, int, list[RowPart]]] = {}
        for head, subagent, *part in rows:
            count, total, parts = found.get(head, (0, 0, []))
            if subagent:
                count += 1
            else:
                total += part[-1]
                parts.append(RowPart(*part))
            found[head] = (count, total, parts)
        return found

    def heads_of(self, sessions: Iterable[int]) -> dict[int, int]:
        rows = fetch(
            self.db,
            """
            SELECT session_id, head FROM listed
            WHERE session_id IN (SELECT value FROM json_each(?))
            """,
            (as_json(list(sessions)),),
        )
        return dict(rows)

    def members(self, heads: Iterable[int]) -> dict[int, list[int]]:
        rows = fetch(
            self.db,
            """
            SELECT head, session_id FROM listed
            WHERE head IN (SELECT value FROM json_each(?))
            ORDER BY session_id
            """,
            (as_json(list(heads)),),
        )
        found: dict[int, list[int]] = {}
        for head, number in rows:
            found.setdefault(head, []).append(number)
        return found

    def totals(self) -> ListTotals:
        row = first_row(
            self.db,
            """
            SELECT sum(l.head=l.session_id), count(*),
                   sum(l.head<>l.session_id AND s.parent IS NOT NULL),
                   sum(l.head<>l.session_id AND s.parent IS NULL),
                   sum(l.head=l.session_id AND s.parent IS NOT NULL)
            FROM listed l JOIN sessions s ON s.id=l.session_id
            """,
        )
        rows, recordings, subagents, parts, lone = row or (0, 0, 0, 0, 0)
        projects = fetch(
            self.db, "SELECT count(DISTINCT project_id) FROM sessions WHERE parent IS NULL"
        )
        since = fetch(
            self.db,
            "SELECT min(began_at) FROM listed WHERE head=session_id AND began_at > 0",
        )
        return ListTotals(
            rows or 0,
            projects[0][0],
            since[0][0],
            recordings,
            subagents or 0,
            parts or 0,
            lone or 0,
        )

    def folders(self) -> list[FolderCount]:
        rows = fetch(
            self.db,
            """
            SELECT s.project_id, s.cwd, s.branch, count(*), max(l.last_at)
            FROM listed l JOIN sessions s ON s.id=l.shown
            WHERE l.head=l.session_id
            GROUP BY 1, 2, 3
            """,
        )
        return [FolderCount(*row) for row in rows]

    def months(self, which: ListFilter) -> list[PeriodCount]:
        where, values = _where(which, self.db.index)
        rows = fetch(
            self.db,
            f"SELECT {_period('%Y-%m')}, count(*) {_rows_with(where)} {where} AND l.last_at > 0 "
            "GROUP BY 1 "
            "ORDER BY 1 DESC",
            values,
        )
        return [PeriodCount(*row) for row in rows]

    def days(self, which: ListFilter, since: int, until: int) -> list[PeriodCount]:
        where, values = _where(which, self.db.index)
        day = _period("%Y-%m-%d")
        span = "AND l.last_at BETWEEN ? AND ?"
        values += [since, until]
        source = _rows_with(where)
        known = "sum(CASE WHEN l.cost >= 0 THEN l.cost END)"
        unpriced = "sum(CASE WHEN l.cost >= 0 THEN l.unpriced ELSE 0 END)"
        unknown = "sum(CASE WHEN l.cost < 0 THEN 1 ELSE 0 END)"
        rows = fetch(
            self.db,
            f"SELECT {day}, count(*), {known}, {unpriced}, {unknown} {source} {where} {span} "
            "GROUP BY 1",
            values,
        )
        commits = dict(
            fetch(
                self.db,
                f"""
                SELECT day, count(DISTINCT p.sha)
                FROM (SELECT {day} AS day, l.session_id AS head {source} {where} {span}) d
                JOIN listed m ON m.head=d.head
                JOIN parts p ON p.session_id=m.session_id
                JOIN checkpoints c ON c.sha=p.sha
                WHERE c.superseded_by IS NULL
                GROUP BY 1
                """,
                values,
            )
        )
        return [
            PeriodCount(day, count, commits.get(day, 0), nano_cost(cost, partly), without)
            for day, count, cost, partly, without in rows
        ]

    def models(self) -> list[str]:
        rows = fetch(self.db, "SELECT models FROM sessions GROUP BY 1")
        names = {name for (models,) in rows for name in msgspec.json.decode(models)}
        return sorted(names)

    def branches(self, which: ListFilter, limit: int) -> list[str]:
        where, values = _where(which, self.db.index)
        rows = fetch(
            self.db,
            f"SELECT s.branch {_rows_with(where, 's.branch')} {where} AND s.branch IS NOT NULL "
            "GROUP BY 1 ORDER BY max(l.last_at) DESC LIMIT ?",
            (*values, limit),
        )
        return [branch for (branch,) in rows]


def _rows_with(*texts: str) -> str:
    """Return all rows `l`, joined only with what these parts of a query name."""
    named = " ".join(texts)
    joins = [join for name, join in _JOINS.items() if re.search(rf"\b{name}\.", named)]
    return f"FROM listed l {' '.join(joins)} WHERE l.head=l.session_id"


def _period(form: str) -> str:
    return f"strftime('{form}', l.last_at / 1000, 'unixepoch', 'localtime')"


def _where(which: ListFilter, index: WordIndex) -> tuple[str, list[Any]]:
    """The filter as conditions that each begin with AND."""
    parts: list[tuple[str, list[Any]]] = []
    if which.agent:
        parts.append(("s.agent=?", [which.agent]))
    if which.projects is not None:
        parts.append(
            ("s.project_id IN (SELECT value FROM json_each(?))", [as_json(list(which.projects))])
        )
    if which.person is not None:
        parts.append(("s.person=?", [which.person]))
    if which.homeless:
        parts.append(("s.project_id IS NULL", []))
    if which.folder:
        stem = which.folder.rstrip("/\\") or which.folder
        parts.append(("(s.cwd=? OR s.cwd >= ? AND s.cwd < ?)", [stem, stem + "/", stem + "0"]))
    parts += _compared(which)
    if which.outcome:
        given = [as_json(list(which.open_sessions))] if which.outcome == "open" else []
        parts.append((_OUTCOME[which.outcome], given))
    parts += [_word(word, index) for word in which.words]
    if which.file:
        parts.append(_file(which.file))
    if which.task:
        parts.append(_task(which.task))
    where = "".join(f" AND ({condition})" for condition, _ in parts)
    return where, [value for _, values in parts for value in values]


def _compared(which: ListFilter) -> list[tuple[str, list[Any]]]:
    """Of a row, or of the part it shows, one value each."""
    model = f'%"{escape_like(which.model)}"%' if which.model else None
    wanted: tuple[tuple[str, Any], ...] = (
        ("s.branch=?", which.branch or None),
        ("s.models LIKE ? ESCAPE '\\'", model),
        ("l.last_at >= ?", which.since),
        ("l.last_at <= ?", which.until),
    )
    return [(condition, [value]) for condition, value in wanted if value is not None]


def _word(word: str, index: WordIndex) -> tuple[str, list[Any]]:
    """In the title, or in a prompt."""
    query = Query(clauses=((Atom(word, prefix=True),),))
    condition = (
        "s.title LIKE ? ESCAPE '\\' OR l.session_id IN (SELECT m.head FROM listed m "
        f"WHERE m.session_id IN (SELECT w.id >> {SEQ_BITS} FROM ({index.matching()}) w))"
    )
    return condition, [f"%{escape_like(word)}%", index.expression(query, ("prompts",))]


def _file(text: str) -> tuple[str, list[Any]]:
    condition = (
        "l.session_id IN (SELECT m.head FROM touches t JOIN listed m ON m.session_id=t.session_id "
        f"WHERE t.action='write' AND {ENDS_OF_PATH})"
    )
    return condition, list(file_terms(text))


def _task(key: str) -> tuple[str, list[Any]]:
    runs = "SELECT m.head FROM task_runs r JOIN listed m ON m.session_id=r.session_id"
    if key == "*":
        return f"l.session_id IN ({runs})", []
    return f"l.session_id IN ({runs} WHERE r.key=?)", [key]
