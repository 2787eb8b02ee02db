"""The read side of a page of search: how many turns fit each filter, commits by their words,
words that are near."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw
import msgspec

from whyfor.model.checkpoints import Annotation
from whyfor.model.query import Filters, Query
from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.read import compile_query, doc_filter
from whyfor.store.sqlite.schema import SEQ_BITS


class TurnMatch(NamedTuple):
    """A piece of a turn that matches."""

    session: int
    turn: int
    created_at: int | None
    agent: str
    project: int | None


class LinkedCommit(NamedTuple):
    """A commit with a story."""

    sha: str
    subject: str
    committed_at: int
    evidence: str
    confidence: str
    project: str
    note: Annotation | None


class Facets:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def places(self, query: Query, filters: Filters, limit: int) -> list[TurnMatch]:
        """As the index has them, unranked: cheap however many there are."""
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
        """Newest first; of the words (ASCII, lower case) each stands somewhere in what is known
        of the commit."""
        where = ["c.evidence IS NOT NULL", "c.superseded_by IS NULL"]
        values: list[Any] = []
        for word in words:
            where.append("(c.subject LIKE ? ESCAPE '\\' OR c.annotation LIKE ? ESCAPE '\\')")
            values += [_like(word)] * 2
        if filters.projects is not None:
            where.append("c.project_id IN (SELECT value FROM json_each(?))")
            values.append(msgspec.json.encode(filters.projects).decode())
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
            values += [msgspec.json.encode(filters.agents).decode()] if filters.agents else []
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
        """Which agents took part in commits."""
        sql = (
            "SELECT DISTINCT q.sha, s.agent FROM parts q JOIN sessions s ON s.id=q.session_id "
            "WHERE q.sha IN (SELECT value FROM json_each(?)) ORDER BY 1, 2"
        )
        found: dict[str, list[str]] = {}
        for sha, agent in fetch(self.db, sql, (msgspec.json.encode(shas).decode(),)):
            found.setdefault(sha, []).append(agent)
        return found

    def words_like(self, beginning: str, limit: int) -> list[str]:
        """Words of the index that begin so, the common ones first."""
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


def _like(word: str) -> str:
    for char in "\\%_":
        word = word.replace(char, "\\" + char)
    return f"%{word}%"


def _note(body: str | None) -> Annotation | None:
    return msgspec.json.decode(body, type=Annotation) if body else None
