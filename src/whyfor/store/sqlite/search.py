"""Full text search: turns and commits by their words; never writes."""

from __future__ import annotations

import math
from typing import Any

import apsw
import msgspec

from whyfor.model.checkpoints import Annotation, LinkedCommit
from whyfor.model.events import SEQ_BITS
from whyfor.model.events import SEQ_MASK as _MASK
from whyfor.model.query import FIELDS, Atom, Filters, Match, Query, TurnMatch
from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.filters import as_json, doc_filter

# How much a word counts by where it stands: title, prompts, answers, thinking, tools, results,
# files, names.
_WEIGHTS = "4.0, 4.0, 2.0, 1.0, 2.0, 0.2, 2.0, 0.0"
_COLUMNS = {
    "prompts": "title prompts",
    "answers": "answers",
    "thinking": "thinking",
    "tools": "tools results files",
}


class SqliteSearch:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def match(
        self,
        query: Query,
        filters: Filters,
        limit: int,
        *,
        any_clause: bool = False,
        newest: bool = False,
    ) -> list[Match]:
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
        rows = fetch(self.db, sql, (expression, *values, limit))
        return [
            Match(ident >> SEQ_BITS, ident & _MASK, last, turn, created, -score)
            for ident, last, turn, created, score in rows
        ]

    def coverage(
        self, query: Query, fields: tuple[str, ...], matches: list[Match]
    ) -> dict[tuple[int, int], float]:
        idents = [(m.session << SEQ_BITS) + m.first_seq for m in matches]
        held = dict.fromkeys(idents, 0.0)
        total = 0.0
        for clause in query.clauses:
            expression = compile_query(Query(clauses=(clause,)), fields)
            # All words that begin so are looked up once (+), not again for every row.
            row = "+rowid" if any(atom.prefix for atom in clause) else "rowid"
            found = fetch(
                self.db,
                f"SELECT rowid FROM words WHERE words MATCH ? AND {row} IN (SELECT value FROM "
                "json_each(?))",
                (expression, as_json(idents)),
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

    def places(self, query: Query, filters: Filters, limit: int) -> list[TurnMatch]:
        where, values = doc_filter(filters)
        rows = fetch(
            self.db,
            "SELECT d.id, d.turn, d.created_at, s.agent, s.project_id FROM words JOIN docs d ON "
            "d.id = words.rowid "
            f"JOIN sessions s ON s.id = (d.id >> {SEQ_BITS}) WHERE words MATCH ? "
            f"{''.join(' AND ' + each for each in where)} LIMIT ?",
            (compile_query(query, filters.fields), *values, limit),
        )
        return [TurnMatch(ident >> SEQ_BITS, *rest) for ident, *rest in rows]

    def commits(self, words: list[str], filters: Filters, limit: int) -> list[LinkedCommit]:
        where = ["c.evidence IS NOT NULL", "c.superseded_by IS NULL"]
        values: list[Any] = []
        for word in words:
            where.append("(c.subject LIKE ? ESCAPE '\\' OR c.annotation LIKE ? ESCAPE '\\')")
            values += [_like(word)] * 2
        if filters.projects is not None:
            where.append("c.project_id IN (SELECT value FROM json_each(?))")
            values.append(as_json(filters.projects))
        for sign, limit_at in ((">=", filters.since), ("<=", filters.until)):
            if limit_at is not None:
                where.append(f"c.committed_at {sign} ?")
                values.append(limit_at)
        if filters.agents or filters.branch:
            of = ["s.agent IN (SELECT value FROM json_each(?))"] if filters.agents else []
            of += ["s.branch = ?"] if filters.branch else []
            where.append(
                "EXISTS (SELECT 1 FROM parts q JOIN sessions s ON s.id=q.session_id WHERE "
                "q.sha=c.sha "
                f"AND {' AND '.join(of)})"
            )
            values += [as_json(filters.agents)] if filters.agents else []
            values += [filters.branch] if filters.branch else []
        rows = fetch(
            self.db,
            "SELECT c.sha, c.subject, c.committed_at, c.evidence, c.confidence, p.identity, "
            "c.annotation "
            f"FROM checkpoints c JOIN projects p ON p.id=c.project_id WHERE {' AND '.join(where)} "
            "ORDER BY c.committed_at DESC, c.sha LIMIT ?",
            (*values, limit),
        )
        return [
            LinkedCommit(sha, subject, at, evidence, confidence, project, _note(note))
            for sha, subject, at, evidence, confidence, project, note in rows
        ]

    def agents_of(self, shas: list[str]) -> dict[str, list[str]]:
        sql = (
            "SELECT DISTINCT q.sha, s.agent FROM parts q JOIN sessions s ON s.id=q.session_id "
            "WHERE q.sha IN (SELECT value FROM json_each(?)) ORDER BY 1, 2"
        )
        found: dict[str, list[str]] = {}
        for sha, agent in fetch(self.db, sql, (as_json(shas),)):
            found.setdefault(sha, []).append(agent)
        return found

    def words_like(self, beginning: str, limit: int) -> list[str]:
        # a name for the index's own list, in memory; the file is open for reading
        self.db.pragma("query_only", False)
        self.db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, row)"
        )
        self.db.pragma("query_only", True)
        sql = (
            "SELECT term FROM temp.vocabulary WHERE term >= ? AND term < ? ORDER BY doc DESC LIMIT "
            "?"
        )
        return [row[0] for row in fetch(self.db, sql, (beginning, beginning + "\U0010ffff", limit))]


def columns(fields: tuple[str, ...]) -> str:
    """FTS5's column filter for the fields people name; none is all of them."""
    return "{" + " ".join(_COLUMNS[field] for field in fields or FIELDS) + "} : "


def compile_query(query: Query, fields: tuple[str, ...], *, any_clause: bool = False) -> str:
    """A query in FTS5's words. Every atom is quoted, so no text of a person's is ever syntax."""
    where = columns(fields)
    clauses = [where + "(" + " OR ".join(map(quote_atom, clause)) + ")" for clause in query.clauses]
    parts = ["(" + " OR ".join(clauses) + ")"] if any_clause and clauses else clauses
    parts += [f"{{files}} : {quote_atom(Atom(path, prefix=True))}" for path in query.files]
    parts += [f"{{names}} : {quote_atom(Atom(name))}" for name in query.tools]
    text = " AND ".join(parts)
    for atom in query.without:
        text = f"({text}) NOT {where}{quote_atom(atom)}"
    return text


def quote_atom(atom: Atom) -> str:
    text = atom.text.replace('"', '""').replace("\x00", " ")
    return f'"{text}"' + ("*" if atom.prefix else "")


def _like(word: str) -> str:
    for char in "\\%_":
        word = word.replace(char, "\\" + char)
    return f"%{word}%"


def _note(body: str | None) -> Annotation | None:
    return msgspec.json.decode(body, type=Annotation) if body else None
