"""Sessions as rows: found by name, filter or place; never writes."""

from __future__ import annotations

from collections.abc import Iterable
from os.path import commonprefix
from typing import Any

import msgspec

from whyfor.model.errors import Ambiguous, NotFound
from whyfor.model.ids import short_id
from whyfor.model.query import Filters
from whyfor.model.sessions import (
    NamedSession,
    Session,
    SessionBrief,
    SessionCopy,
    SessionFile,
    SessionPlace,
    Tokens,
)
from whyfor.model.titles import title_source
from whyfor.store.sql.database import StoreDatabase, fetch, value
from whyfor.store.sql.filters import UNCOUNTED, WORKED, as_json, session_filter

_SESSION = (
    "s.id, s.agent, s.session_id, p.identity, s.cwd, s.branch, s.title, s.started_at, s.ended_at, "
    "s.prompts, "
    "s.messages, s.tool_calls, s.input, s.cache_read, s.cache_write, s.output, s.reasoning, "
    "s.cost, s.unpriced, s.models, s.parent, "
    "s.subagent, s.unparsed, s.copy_of, s.copy_kind, s.own_from, s.original, s.title_rank"
)
_FROM = "FROM sessions s LEFT JOIN projects p ON p.id = s.project_id"
# Whose sessions there are: a step through the index each, however many sessions they have.
_AGENTS = (
    "WITH RECURSIVE agents(name) AS (SELECT min(agent) FROM sessions UNION ALL "
    "SELECT (SELECT min(agent) FROM sessions WHERE agent > name) FROM agents WHERE name IS NOT "
    "NULL)"
)
_OLDEST = -(1 << 62)  # used for an unknown beginning: such sessions come last
_BRIEF = """
    SELECT id, agent, session_id, parent, ended_at, last_seq, project_id, branch, title, own_from
    FROM sessions
"""


class SqlSessions:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def matching(self, filters: Filters, *, limit: int | None, subagents: bool) -> list[Session]:
        where, values = session_filter(filters)
        if not subagents:
            where.append("s.parent IS NULL")
        sql = (
            f"SELECT {_SESSION} {_FROM} WHERE {' AND '.join(where) or 'TRUE'} ORDER BY "
            "s.started_at DESC, s.id DESC"
        )
        if limit is not None:
            sql += f" LIMIT {int(limit)}"
        return self._sessions(fetch(self.db, sql, values))

    def children(self, session_ids: list[str]) -> list[Session]:
        sql = (
            f"SELECT {_SESSION} {_FROM} WHERE s.parent IN (SELECT value FROM json_each(?)) ORDER "
            "BY s.started_at NULLS FIRST, s.id"
        )
        return self._sessions(fetch(self.db, sql, (as_json(session_ids),)))

    def find(self, reference: str, agent: str | None = None) -> Session:
        sql = (
            f"{_AGENTS} SELECT {_SESSION} {_FROM} WHERE s.agent IN "
            f"({'?4' if agent else 'SELECT name FROM agents'}) "
            "AND s.session_id >= ?1 AND s.session_id < ?2 "
            "ORDER BY s.session_id<>?3, s.parent IS NOT NULL, s.session_id LIMIT 200"
        )
        values = (reference, reference + "\U0010ffff", reference, *([agent] if agent else []))
        rows = fetch(self.db, sql, values) if reference else []
        exact = [row for row in rows if row[2] == reference]
        main = [row for row in rows if row[20] is None]
        found = exact or main or rows
        if not found:
            raise NotFound(
                f"no session begins with {reference!r}", "List them: whyfor sessions --all"
            )
        if len(found) > 1:
            shown = ", ".join(f"{row[1]}:{row[2]}" for row in found[:5])
            raise Ambiguous(
                f"{reference!r} fits {len(found)} sessions: {shown}", "Give more of the id."
            )
        return self._sessions(found[:1])[0]

    def short_ids(self, names: Iterable[tuple[str, str]], least: int) -> dict[str, str]:
        wanted = sorted(set(names))
        sql = f"""
            {_AGENTS}
            SELECT
                (SELECT max(session_id) FROM sessions WHERE agent=name AND session_id<?1),
                (SELECT min(session_id) FROM sessions WHERE agent=name AND session_id>?1),
                (SELECT max(agent) FROM sessions WHERE agent=name AND session_id=?1)
            FROM agents
            WHERE name IS NOT NULL
        """
        found = {f"{agent}:{ident}": short_id(ident, least) for agent, ident in wanted}
        for agent, ident in wanted:
            name = f"{agent}:{ident}"
            for *near, twin in fetch(self.db, sql, (ident,)):
                common = [commonprefix([ident, other or ""]) for other in near]  # noqa: RUF071
                longest = max(map(len, common))
                found[name] = max(found[name], ident[: longest + 1], key=len)
                if twin not in (None, agent):
                    found[name] = name
                    break
        return found

    def by_number(self, ids: list[int]) -> dict[int, Session]:
        sql = f"SELECT {_SESSION} {_FROM} WHERE s.id IN (SELECT value FROM json_each(?))"
        found = self._sessions(fetch(self.db, sql, (as_json(ids),)))
        return {session.id: session for session in found}

    def _sessions(self, rows: list[tuple[Any, ...]]) -> list[Session]:
        files = self._files([row[0] for row in rows]) if rows else {}
        return [self._session(row, files.get(row[0], [])) for row in rows]

    def _files(self, ids: list[int]) -> dict[int, list[str]]:
        """Return the files that sessions wrote themselves, in the order of their first writes."""
        rows = fetch(
            self.db,
            """
            SELECT t.session_id, t.path
            FROM touches t JOIN sessions s ON s.id=t.session_id
            WHERE t.session_id IN (SELECT value FROM json_each(?)) AND t.action='write'
              AND t.seq >= s.own_from
            GROUP BY t.session_id, t.path ORDER BY t.session_id, min(t.seq)
            """,
            (as_json(ids),),
        )
        found: dict[int, list[str]] = {}
        for session, path in rows:
            found.setdefault(session, []).append(path)
        return found

    def _session(self, row: tuple[Any, ...], files: list[str]) -> Session:
        names = (
            "id",
            "agent",
            "session_id",
            "project",
            "cwd",
            "branch",
            "title",
            "started_at",
            "ended_at",
        )
        plain = dict(zip((*names, "prompts", "messages", "tool_calls"), row[:12], strict=True))
        return Session(
            **plain,
            tokens=Tokens(*row[12:19]),
            models=msgspec.json.decode(row[19]),
            files_modified=files,
            parent_session_id=row[20],
            subagent=row[21],
            unparsed=row[22],
            copy_of=row[23],
            copy_kind=row[24],
            own_from=row[25],
            original=row[26],
            title_source=title_source(row[27]),
        )

    def page(
        self, filters: Filters, before: tuple[int, int] | None, limit: int, *, subagents: bool
    ) -> list[tuple[tuple[int, int], Session]]:
        where, values = session_filter(filters)
        if not subagents:
            where.append("s.parent IS NULL")
        if before is not None:
            where.append(f"(coalesce(s.started_at, {_OLDEST}), s.id) < (?, ?)")
            values += before
        rows = fetch(
            self.db,
            f"SELECT s.id, coalesce(s.started_at, {_OLDEST}) FROM sessions s WHERE "
            f"{' AND '.join(where) or 'TRUE'} "
            "ORDER BY s.started_at DESC, s.id DESC LIMIT ?",
            (*values, limit),
        )
        found = self.by_number([number for number, _ in rows])
        return [((began, number), found[number]) for number, began in rows]

    def copies(self) -> list[SessionCopy]:
        rows = fetch(
            self.db,
            """
            SELECT id, agent || ':' || session_id, original, copy_of, copy_kind, own_from,
                   own_from > last_seq
            FROM sessions INDEXED BY sessions_copies
            WHERE (original IS NOT NULL OR own_from > 1) AND original IS NOT NULL
            ORDER BY started_at NULLS FIRST, id
            """,
        )
        return [
            SessionCopy(number, name, original, origin, kind, own_from, bool(unopened))
            for number, name, original, origin, kind, own_from, unopened in rows
        ]

    def begun_in(self, cwd: str) -> list[SessionFile]:
        rows = fetch(
            self.db,
            f"""
            SELECT s.agent, s.session_id, s.title, s.ended_at, o.path, o.size
            FROM sessions s
            JOIN sources o
              ON o.agent=s.agent AND o.session_id=s.session_id AND o.sidecar IS NULL
            WHERE s.cwd=? AND s.parent IS NULL AND {WORKED}
            ORDER BY s.ended_at DESC
            """,
            (cwd,),
        )
        return [SessionFile(*row) for row in rows]

    def last_ended(self, agent: str) -> int | None:
        found = fetch(self.db, "SELECT max(ended_at) FROM sessions WHERE agent=?", (agent,))[0][0]
        return int(found) if found is not None else None

    def last_started(self, agent: str) -> int | None:
        found = fetch(
            self.db,
            "SELECT max(started_at) FROM sessions WHERE agent=? AND parent IS NULL",
            (agent,),
        )[0][0]
        return int(found) if found is not None else None

    def last_seqs(self, sessions: list[int]) -> dict[int, int]:
        sql = "SELECT id, last_seq FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
        return dict(fetch(self.db, sql, (str(sessions),)))

    def names(self, sessions: list[int]) -> dict[int, NamedSession]:
        sql = (
            "SELECT s.id, s.agent, s.session_id, s.parent, p.identity FROM sessions s "
            "LEFT JOIN projects p ON p.id=s.project_id WHERE s.id IN (SELECT value FROM "
            "json_each(?))"
        )
        return {row[0]: NamedSession(*row[1:]) for row in fetch(self.db, sql, (str(sessions),))}

    def numbers(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        wanted = set(names)
        agents, idents = ({name[at] for name in wanted} for at in (0, 1))
        rows = fetch(
            self.db,
            """
            SELECT agent, session_id, id FROM sessions
            WHERE agent IN (SELECT value FROM json_each(?))
              AND session_id IN (SELECT value FROM json_each(?))
            ORDER BY id
            """,
            (as_json(sorted(agents)), as_json(sorted(idents))),
        )
        found = {(agent, session): number for agent, session, number in rows}
        return {name: number for name, number in found.items() if name in wanted}

    def others_active(self, sessions: list[int], since: int, until: int) -> bool:
        rows = fetch(
            self.db,
            "SELECT 1 FROM sessions WHERE started_at <= ?3 AND ended_at >= ?2 AND id NOT IN "
            "(SELECT value FROM "
            "json_each(?1)) AND project_id IN (SELECT project_id FROM sessions WHERE id IN (SELECT "
            "value FROM "
            "json_each(?1))) LIMIT 1",
            (as_json(sessions), since, until),
        )
        return bool(rows)

    def recent(self, project: int, since: int, limit: int) -> list[tuple[int, int]]:
        return fetch(
            self.db,
            "SELECT s.id, max(s.own_from - 1, "
            "coalesce((SELECT max(last) FROM parts q WHERE q.session_id=s.id), 0)) "
            "FROM sessions s "
            f"WHERE s.project_id=? AND s.parent IS NULL AND {WORKED} AND s.ended_at > ? ORDER BY "
            "s.ended_at DESC LIMIT ?",
            (project, since, limit),
        )

    def count_since(self, project: int, since: int) -> int:
        later = (" AND s.ended_at >= ?", (since,)) if since else ("", ())
        both = []
        for which in ("sessions s WHERE s.parent IS NULL", UNCOUNTED):
            sql = f"SELECT count(*) FROM {which} AND s.project_id=?{later[0]}"
            both.append(int(value(self.db, sql, (project, *later[1]))))
        return both[0] - both[1]

    def first_started(self, project: int | None) -> int | None:
        if project is None:
            rows = fetch(self.db, "SELECT min(started_at) FROM sessions")
        else:
            sql = "SELECT min(started_at) FROM sessions WHERE project_id=?"
            rows = fetch(self.db, sql, (project,))
        return int(rows[0][0]) if rows[0][0] is not None else None

    def files_after(self, session: int, after: int) -> set[str]:
        sql = "SELECT DISTINCT path FROM touches WHERE session_id=? AND action='write' AND seq > ?"
        return {row[0] for row in fetch(self.db, sql, (session, after))}

    def agent_version(self, session: int) -> str | None:
        found = value(self.db, "SELECT version FROM sessions WHERE id=?", (session,))
        return str(found) if found is not None else None

    def places(self) -> list[SessionPlace]:
        rows = fetch(
            self.db,
            """
            SELECT agent, session_id, cwd
            FROM sessions
            WHERE parent IS NULL
            ORDER BY id
            """,
        )
        return [SessionPlace(*row) for row in rows]

    def written_paths(self, sessions: list[int]) -> set[str]:
        rows = fetch(
            self.db,
            """
            SELECT DISTINCT path
            FROM touches
            WHERE action='write' AND session_id IN (SELECT value FROM json_each(?))
            """,
            (as_json(sessions),),
        )
        return {path for (path,) in rows}

    def writing_below(self, folders: Iterable[str]) -> set[int]:
        sql = """
            SELECT DISTINCT session_id
            FROM touches
            WHERE action='write' AND path >= ? AND path < ?
        """
        found: set[int] = set()
        for folder in folders:
            stem = folder.rstrip("/")
            found.update(session for (session,) in fetch(self.db, sql, (stem + "/", stem + "0")))
        return found

    def files_since(self, session: Session, seq: int, since: int) -> set[str]:
        rows = fetch(
            self.db,
            """
            SELECT DISTINCT t.path
            FROM sessions s
            JOIN touches t ON t.session_id=s.id AND t.seq >= s.own_from
            WHERE t.action='write' AND (
                s.id=? AND t.seq > ? OR s.parent=? AND s.agent=? AND s.ended_at > ?)
            """,
            (session.id, seq, session.session_id, session.agent, since),
        )
        return {path for (path,) in rows}

    def active_since(self, since: int) -> list[tuple[str, str]]:
        rows = fetch(
            self.db,
            f"""
            SELECT s.agent, s.session_id
            FROM sessions s
            WHERE s.parent IS NULL AND s.ended_at > ?1 AND {WORKED}
            UNION
            SELECT session_agent, session_id
            FROM signals
            WHERE session_id IS NOT NULL AND at > ?1
            """,
            (since,),
        )
        return [(agent, session_id) for agent, session_id in rows]

    def briefs(self, sessions: Iterable[int]) -> list[SessionBrief]:
        sql = f"{_BRIEF} WHERE id IN (SELECT value FROM json_each(?))"
        return [SessionBrief(*row) for row in fetch(self.db, sql, (as_json(list(sessions)),))]

    def family(self, agent: str, session_id: str, since: int) -> list[SessionBrief]:
        sql = f"{_BRIEF} WHERE agent=?1 AND (session_id=?2 OR (parent=?2 AND ended_at>?3))"
        return [SessionBrief(*row) for row in fetch(self.db, sql, (agent, session_id, since))]
