"""The read side: sessions, events, raw bytes, search and figures. Never writes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import apsw
import msgspec

from whyfor.model.errors import Ambiguous, NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.gaps import Gap
from whyfor.model.query import FIELDS, Atom, Filters, Match, Query
from whyfor.model.sessions import Project, Session, Tokens
from whyfor.model.sources import Source
from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.schema import SEQ_BITS

_MASK = (1 << SEQ_BITS) - 1
_SESSION = (
    "s.id, s.agent, s.session_id, p.identity, s.cwd, s.branch, s.title, s.started_at, s.ended_at, "
    "s.prompts, "
    "s.messages, s.tool_calls, s.input, s.cache_read, s.cache_write, s.output, s.reasoning, "
    "s.models, s.parent, "
    "s.subagent, s.unparsed"
)
_FROM = "FROM sessions s LEFT JOIN projects p ON p.id = s.project_id"
# Whose sessions there are: a step through the index each, however many sessions they have.
_AGENTS = (
    "WITH agents(name) AS (SELECT min(agent) FROM sessions UNION ALL "
    "SELECT (SELECT min(agent) FROM sessions WHERE agent > name) FROM agents WHERE name IS NOT "
    "NULL)"
)
# How much a word counts by where it stands: title, prompts, answers, thinking, tools, results,
# files, names.
_WEIGHTS = "4.0, 4.0, 2.0, 1.0, 2.0, 0.2, 2.0, 0.0"
_COLUMNS = {
    "prompts": "title prompts",
    "answers": "answers",
    "thinking": "thinking",
    "tools": "tools results files",
}


class StoreRows:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def _all(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return fetch(self.db, sql, values)

    # -- sessions --------------------------------------------------------------------------------

    def sessions(self, filters: Filters, *, limit: int | None, subagents: bool) -> list[Session]:
        """Newest first."""
        where, values = session_filter(filters)
        if not subagents:
            where.append("s.parent IS NULL")
        sql = (
            f"SELECT {_SESSION} {_FROM} WHERE {' AND '.join(where) or '1'} ORDER BY s.started_at "
            "DESC, s.id DESC"
        )
        if limit is not None:
            sql += f" LIMIT {int(limit)}"
        return [self._session(row) for row in self._all(sql, values)]

    def children(self, session_ids: list[str]) -> list[Session]:
        """Subagents of these sessions, oldest first."""
        sql = (
            f"SELECT {_SESSION} {_FROM} WHERE s.parent IN (SELECT value FROM json_each(?)) ORDER "
            "BY s.started_at, s.id"
        )
        return [self._session(row) for row in self._all(sql, (_json(session_ids),))]

    def session(self, reference: str, agent: str | None = None) -> Session:
        """By id, or by any beginning of it that fits one session; a whole id wins, then main
        sessions."""
        sql = (
            f"{_AGENTS} SELECT {_SESSION} {_FROM} WHERE s.agent IN "
            f"({'?4' if agent else 'SELECT name FROM agents'}) "
            "AND s.session_id >= ?1 AND s.session_id < ?2 "
            "ORDER BY s.session_id<>?3, s.parent IS NOT NULL, s.session_id LIMIT 200"
        )
        values = (reference, reference + "\U0010ffff", reference, *([agent] if agent else []))
        rows = self._all(sql, values) if reference else []
        exact = [row for row in rows if row[2] == reference]
        main = [row for row in rows if row[18] is None]
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
        return self._session(found[0])

    def by_number(self, ids: list[int]) -> dict[int, Session]:
        sql = f"SELECT {_SESSION} {_FROM} WHERE s.id IN (SELECT value FROM json_each(?))"
        return {row[0]: self._session(row) for row in self._all(sql, (_json(ids),))}

    def _session(self, row: tuple[Any, ...]) -> Session:
        files = self._all(
            "SELECT path FROM touches WHERE session_id=? AND action='write' GROUP BY path ORDER "
            "BY min(seq)",
            (row[0],),
        )
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
            tokens=Tokens(*row[12:17]),
            models=msgspec.json.decode(row[17]),
            files_modified=[path for (path,) in files],
            parent_session_id=row[18],
            subagent=row[19],
            unparsed=row[20],
        )

    # -- what is in one --------------------------------------------------------------------------

    def events(self, session: int, first: int = 0, last: int = _MASK) -> Iterator[StoredEvent]:
        base = session << SEQ_BITS
        found: Any = self.db.execute(
            "SELECT id, turn, kind, source, confidence, created_at, observed_at, actor, text, "
            "name, data FROM events "
            "WHERE id BETWEEN ? AND ?",
            (base + first, base + last),
        )
        for row in found:
            data = msgspec.json.decode(row[10]) if row[10] else None
            yield StoredEvent(row[0] - base, *row[1:10], data)  # type: ignore[call-arg]  # ten columns, ten fields

    def prompt_before(self, session: int, seq: int) -> int:
        """Where a person last asked for something before an event; 0 if nowhere."""
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ? FROM events WHERE id >= ? AND id < ? AND kind='user.prompt' AND "
            "actor='user' "
            "ORDER BY id DESC LIMIT 1"
        )
        found = self._all(sql, (base, base, base + seq))
        return int(found[0][0]) if found else 0

    def segments(self, session: Session) -> list[tuple[str, int, int, str, list[Gap]]]:
        """Of the newest generation of the session's main transcripts, in order: path, start,
        stop, digest, gaps."""
        rows = self._all(
            "SELECT o.path, g.start, g.stop, g.digest, g.gaps FROM sources o JOIN segments g ON "
            "g.source_id=o.id "
            "AND g.generation=o.generation WHERE o.agent=? AND o.session_id=? AND o.sidecar IS "
            "NULL "
            "ORDER BY o.id, g.start",
            (session.agent, session.session_id),
        )
        return [
            (path, start, stop, digest, _gaps(gaps)) for path, start, stop, digest, gaps in rows
        ]

    def keys(self, session: int, last: int = _MASK) -> dict[int, int]:
        """The events of a session up to one of them: key → seq."""
        base = session << SEQ_BITS
        sql = "SELECT key, id - ? FROM events WHERE id BETWEEN ? AND ?"
        return dict(self._all(sql, (base, base, base + last)))

    def files(self, session: Session) -> list[Source]:
        """What a session is made of: its transcripts, its subagents', what lies beside them;
        without their states."""
        rows = self._all(
            "SELECT id, agent, path, session_id, framing, parent, sidecar, cwd, generation FROM "
            "sources "
            "WHERE agent=? AND (session_id=? OR parent=?) ORDER BY id",
            (session.agent, session.session_id, session.session_id),
        )
        return [Source(*row) for row in rows]

    def pieces(self, source: Source) -> list[tuple[int, str, list[Gap]]]:
        """Start, digest and gaps of each segment of a source's newest generation, in order."""
        sql = (
            "SELECT start, digest, gaps FROM segments WHERE source_id=? AND generation=? ORDER BY "
            "start"
        )
        rows = self._all(sql, (source.id, source.generation))
        return [(start, digest, _gaps(gaps)) for start, digest, gaps in rows]

    def begun_in(self, cwd: str) -> list[tuple[str, str, str | None, int | None, str, int | None]]:
        """Main sessions that began in a folder: agent, id, title, last event, transcript and its
        size when read."""
        return self._all(
            "SELECT s.agent, s.session_id, s.title, s.ended_at, o.path, o.size FROM sessions s "
            "JOIN sources o "
            "ON o.agent=s.agent AND o.session_id=s.session_id AND o.sidecar IS NULL "
            "WHERE s.cwd=? AND s.parent IS NULL ORDER BY s.ended_at DESC",
            (cwd,),
        )

    # -- projects --------------------------------------------------------------------------------

    def projects(self) -> list[tuple[int, Project]]:
        sql = "SELECT id, identity, evidence, name, remote, root_commit, path FROM projects"
        return [(row[0], Project(*row[1:])) for row in self._all(sql)]

    def places(self) -> dict[str, int]:
        return dict(self._all("SELECT cwd, project_id FROM places"))

    # -- search ----------------------------------------------------------------------------------

    def match(
        self,
        query: Query,
        filters: Filters,
        limit: int,
        *,
        any_clause: bool = False,
        newest: bool = False,
    ) -> list[Match]:
        """Pieces of turns that match, best first (or newest first)."""
        expression = compile_query(query, filters.fields, any_clause=any_clause)
        where, values = doc_filter(filters)
        order = "d.created_at DESC" if newest else "score"
        if where or newest:
            sql = (
                f"SELECT d.id, d.last_seq, d.turn, d.created_at, bm25(words, {_WEIGHTS}) AS score "
                "FROM words JOIN docs d ON d.id = words.rowid JOIN sessions s ON s.id = (d.id >> "
                "24) "
                f"WHERE words MATCH ? {''.join(' AND ' + w for w in where)} ORDER BY {order} LIMIT "
                "?"
            )
        else:
            sql = (
                "SELECT d.id, d.last_seq, d.turn, d.created_at, w.score FROM (SELECT rowid AS id, "
                f"bm25(words, {_WEIGHTS}) AS score FROM words WHERE words MATCH ? ORDER BY score "
                "LIMIT ?) w "
                "JOIN docs d ON d.id = w.id ORDER BY w.score"
            )
        rows = self._all(sql, (expression, *values, limit))
        return [
            Match(ident >> SEQ_BITS, ident & _MASK, last, turn, created, -score)
            for ident, last, turn, created, score in rows
        ]

    def coverage(
        self, query: Query, fields: tuple[str, ...], matches: list[Match]
    ) -> dict[tuple[int, int], float]:
        """Which share of a query's words each match holds, rare words counting for more."""
        idents = [(m.session << SEQ_BITS) + m.first_seq for m in matches]
        held = dict.fromkeys(idents, 0.0)
        total = 0.0
        for clause in query.clauses:
            expression = compile_query(Query(clauses=(clause,)), fields)
            # All words that begin so are looked up once (+), not again for every row.
            row = "+rowid" if any(atom.prefix for atom in clause) else "rowid"
            found = self._all(
                f"SELECT rowid FROM words WHERE words MATCH ? AND {row} IN (SELECT value FROM "
                "json_each(?))",
                (expression, _json(idents)),
            )
            if not found:
                continue  # a word nobody used tells nothing apart
            weight = math.log(1 + len(idents) / len(found))
            total += weight
            for (ident,) in found:
                held[ident] += weight
        return (
            {(i >> SEQ_BITS, i & _MASK): value / total for i, value in held.items()}
            if total
            else {}
        )

    # -- figures ---------------------------------------------------------------------------------

    def totals(self) -> dict[str, int]:
        row = self._all(
            "SELECT (SELECT count(*) FROM sessions WHERE parent IS NULL), "
            "(SELECT count(*) FROM sessions WHERE parent IS NOT NULL), "
            "(SELECT coalesce(sum(records), 0) FROM sources), (SELECT coalesce(sum(last_seq), 0) "
            "FROM sessions), "
            "(SELECT coalesce(sum(g.stop - g.start), 0) FROM segments g JOIN sources o ON "
            "o.id=g.source_id "
            "WHERE o.agent<>'hook'), (SELECT count(*) FROM unparsed), "
            "(SELECT coalesce(sum(records), 0) FROM unknown_types)"
        )[0]
        names = ("sessions", "subagents", "records", "events", "bytes", "unparsed", "unknown_types")
        return dict(zip(names, row, strict=True))

    def grouped(self, by: str, filters: Filters) -> list[tuple[Any, ...]]:
        """Sessions, turns and tokens by agent, project, day or model: name, sessions, turns,
        then the tokens."""
        group = {
            "agent": "s.agent",
            "project": "coalesce(p.identity, '(unknown)')",
            "model": "coalesce(u.model, '(unknown)')",
            "day": "strftime('%Y-%m-%d', u.created_at / 1000, 'unixepoch', 'localtime')",
        }[by]
        where, values = session_filter(filters)
        sums = ", ".join(
            f"sum(u.{f})" for f in ("input", "cache_read", "cache_write", "output", "reasoning")
        )
        condition = " AND ".join(["u.counts", *where])
        tokens = self._all(
            f"SELECT {group}, count(DISTINCT CASE WHEN s.parent IS NULL THEN s.id END), {sums} "
            "FROM usage u "
            "JOIN sessions s ON s.id=u.session_id LEFT JOIN projects p ON p.id=s.project_id "
            f"WHERE {condition} GROUP BY 1",
            values,
        )
        if by == "model":
            return [(name, sessions, None, *rest) for name, sessions, *rest in tokens]
        return _with_turns(tokens, self._turns(by, group, where, values))

    def _turns(
        self, by: str, group: str, where: list[str], values: list[Any]
    ) -> dict[str, tuple[int, int]]:
        """Sessions and prompts by the same groups, also where no tokens are known."""
        condition = " AND ".join(["s.parent IS NULL", *where])
        if by == "day":
            day = group.replace("u.created_at", "e.created_at")
            sql = (
                f"SELECT {day}, count(DISTINCT s.id), count(*) FROM events e JOIN sessions s ON "
                "s.id=e.session_id "
                "LEFT JOIN projects p ON p.id=s.project_id "
                f"WHERE e.kind='user.prompt' AND e.actor='user' AND {condition} GROUP BY 1"
            )
        else:
            sql = f"SELECT {group}, count(*), sum(s.prompts) {_FROM} WHERE {condition} GROUP BY 1"
        return {
            name: (sessions, turns)
            for name, sessions, turns in self._all(sql, values)
            if name is not None
        }

    # -- health ----------------------------------------------------------------------------------

    def sources(self, agent: str) -> list[tuple[Any, ...]]:
        return self._all(
            "SELECT path, size, records, unparsed, tail, error, sidecar, framing FROM sources "
            "WHERE agent=?",
            (agent,),
        )

    def unparsed(self, agent: str) -> list[tuple[str, str, int]]:
        return self._all(
            "SELECT o.path, u.reason, count(*) FROM unparsed u JOIN sources o ON o.id=u.source_id "
            "WHERE o.agent=? "
            "GROUP BY 1, 2 ORDER BY 3 DESC",
            (agent,),
        )

    def unknown_types(self, agent: str) -> dict[str, int]:
        sql = (
            "SELECT name, sum(records) FROM unknown_types WHERE agent=? GROUP BY 1 ORDER BY 2 DESC"
        )
        return dict(self._all(sql, (agent,)))

    def last_record(self, agent: str) -> int | None:
        found = self._all("SELECT max(ended_at) FROM sessions WHERE agent=?", (agent,))[0][0]
        return int(found) if found is not None else None

    def last_started(self, agent: str) -> int | None:
        """When the newest session of an agent began, subagents aside."""
        found = self._all(
            "SELECT max(started_at) FROM sessions WHERE agent=? AND parent IS NULL", (agent,)
        )[0][0]
        return int(found) if found is not None else None

    def last_signal(self, agent: str) -> int | None:
        """When a hook of an agent was last heard, doctor's own probes aside."""
        sql = "SELECT at FROM signals WHERE agent=? AND event<>'probe' ORDER BY at DESC LIMIT 1"
        found = self._all(sql, (agent,))
        return int(found[0][0]) if found else None

    def digests(self) -> Iterator[tuple[str, str]]:
        found: Any = self.db.execute(
            "SELECT DISTINCT digest, o.path FROM segments g JOIN sources o ON o.id=g.source_id"
        )
        return iter(found)

    def integrity(self) -> list[str]:
        """What SQLite itself finds wrong, index included; empty is fine."""
        found = [row[0] for row in self._all("PRAGMA quick_check(20)")]
        return [] if found == ["ok"] else found


def columns(fields: tuple[str, ...]) -> str:
    """FTS5's column filter for the fields people name; none is all of them."""
    return "{" + " ".join(_COLUMNS[field] for field in fields or FIELDS) + "} : "


def compile_query(query: Query, fields: tuple[str, ...], *, any_clause: bool = False) -> str:
    """A query in FTS5's words. Every atom is quoted, so no text of a person's is ever syntax."""
    where = columns(fields)
    clauses = [where + "(" + " OR ".join(map(quoted, clause)) + ")" for clause in query.clauses]
    parts = ["(" + " OR ".join(clauses) + ")"] if any_clause and clauses else clauses
    parts += [f"{{files}} : {quoted(Atom(path, prefix=True))}" for path in query.files]
    parts += [f"{{names}} : {quoted(Atom(name))}" for name in query.tools]
    text = " AND ".join(parts)
    for atom in query.without:
        text = f"({text}) NOT {where}{quoted(atom)}"
    return text


def quoted(atom: Atom) -> str:
    text = atom.text.replace('"', '""').replace("\x00", " ")
    return f'"{text}"' + ("*" if atom.prefix else "")


def doc_filter(filters: Filters) -> tuple[list[str], list[Any]]:
    """Of documents `d` of sessions `s`: their own time counts, and whether a commit came of
    them."""
    where, values = session_filter(filters, "d.created_at")
    if filters.committed:
        where.append(
            f"EXISTS (SELECT 1 FROM parts q WHERE q.session_id = s.id AND (d.id & {_MASK}) <= "
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
        values.append(_json(list(filters.agents)))
    if filters.projects is not None:
        where.append("s.project_id IN (SELECT value FROM json_each(?))")
        values.append(_json(list(filters.projects)))
    if filters.branch:
        where.append("s.branch = ?")
        values.append(filters.branch)
    if filters.since is not None:
        where.append(f"{when or 's.ended_at'} >= ?")
        values.append(filters.since)
    if filters.until is not None:
        where.append(f"{when or 's.started_at'} <= ?")
        values.append(filters.until)
    return where, values


def _with_turns(
    tokens: list[tuple[Any, ...]], turns: dict[str, tuple[int, int]]
) -> list[tuple[Any, ...]]:
    merged: dict[Any, tuple[Any, ...]] = {}
    for name, sessions, *rest in tokens:
        known = turns.pop(name, None)
        merged[name] = (name, known[0] if known else sessions, known[1] if known else 0, *rest)
    for name, (sessions, count) in turns.items():
        merged[name] = (name, sessions, count, None, None, None, None, None)
    return list(merged.values())


def _gaps(body: str | None) -> list[Gap]:
    return [(place, size) for place, size in msgspec.json.decode(body)] if body else []


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
