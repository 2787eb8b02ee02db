"""Full text search: turns and commits by their words; never writes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import apsw

from whyfor.model.events import SEQ_BITS
from whyfor.model.events import SEQ_MASK as _MASK
from whyfor.model.query import (
    FIELDS,
    CardMatch,
    Filters,
    Match,
    PassageQuery,
    Query,
    TurnMatch,
)
from whyfor.store.sql.database import fetch, first_row
from whyfor.store.sql.filters import doc_filter, session_filter
from whyfor.store.sql.search import SqlSearch
from whyfor.store.sql.search_index import PART_BITS
from whyfor.store.sqlite.connection import StoreConnection
from whyfor.store.sqlite.words import columns, compile_query, quote_atom

_PASSAGE_COLUMNS = {"prompts": "title prompts", "answers": "answers", "tools": "calls"}


class _Table(NamedTuple):
    """One of the two indexes: how a row is ranked, and which document it belongs to."""

    name: str
    score: str
    doc: str


class _Asked(NamedTuple):
    """What is asked of an index: its expression, and what documents `d` of sessions `s` must
    be."""

    expression: str
    where: list[str]
    values: list[Any]


# How much a word counts by where it stands: in `words` title, prompts, answers, thinking, tools,
# results, files, names; in `passages` title, prompts, answers, calls.
_WORDS = _Table("words", "bm25(words, 4.0, 4.0, 2.0, 1.0, 2.0, 0.2, 2.0, 0.0)", "p.id")
_PASSAGES = _Table(
    "passages",
    "bm25(passages, 2.0, 1.5, 1.0, 1.0)",
    f"(SELECT max(id) FROM docs WHERE id <= p.id >> {PART_BITS})",
)


# title, prompts, closing, files, commits, learned
_CARD_SCORE = "bm25(cards, 3.0, 3.0, 2.0, 1.0, 3.0, 2.0)"


class SqliteSearch(SqlSearch):
    db: StoreConnection

    def match(
        self, query: Query, filters: Filters, limit: int, *, newest: bool = False
    ) -> list[Match]:
        where, values = doc_filter(filters)
        asked = _Asked(compile_query(query, filters.fields), where, values)
        return self._matches(_WORDS, asked, limit, newest=newest)

    def passages(
        self, wanted: PassageQuery, filters: Filters, limit: int, *, newest: bool = False
    ) -> list[Match]:
        expression = passage_expression(wanted, filters.fields)
        if not expression:
            return []
        where, values = doc_filter(filters)
        _within(wanted.within, filters.fields, where, values)
        asked = _Asked(expression, where, values)
        return self._matches(_PASSAGES, asked, limit, newest=newest)

    def _matches(self, table: _Table, asked: _Asked, limit: int, *, newest: bool) -> list[Match]:
        ranked = f"SELECT rowid AS id, {table.score} AS score FROM {table.name}"
        if asked.where or newest:
            chosen = f"""
                SELECT p.id, p.score, d.id AS doc
                FROM ({ranked} WHERE {table.name} MATCH ?) p
                JOIN docs d ON d.id = {table.doc}
                JOIN sessions s ON s.id = (d.id >> {SEQ_BITS})
                WHERE {" AND ".join(asked.where) or "1"}
                ORDER BY {"d.created_at DESC" if newest else "p.score"} LIMIT ?
            """
        else:  # far cheaper: the documents of the best only
            chosen = f"""
                SELECT p.id, p.score, {table.doc} AS doc
                FROM ({ranked} WHERE {table.name} MATCH ? ORDER BY score LIMIT ?) p
            """
        rows = fetch(
            self.db,
            f"""
            SELECT d.id, d.last_seq, d.turn, d.created_at, c.score
            FROM ({chosen}) c
            JOIN docs d ON d.id = c.doc
            ORDER BY {"d.created_at DESC" if newest else "c.score"}, c.id
            """,
            (asked.expression, *asked.values, limit),
        )
        return [
            Match(ident >> SEQ_BITS, ident & _MASK, last, turn, created, -score)
            for ident, last, turn, created, score in rows
        ]

    def cards(
        self, words: Iterable[str], filters: Filters, limit: int, *, every: bool = False
    ) -> list[CardMatch]:
        by_stem = {self.stem(word): word for word in words}
        quoted = [f'"{word}"' for stem, word in by_stem.items() if stem]
        if not quoted or filters.fields:
            return []
        where, values = session_filter(filters)
        if filters.committed:
            where.append("s.id IN (SELECT session_id FROM parts)")
        rows = fetch(
            self.db,
            f"""
            SELECT c.id, c.score, s.started_at
            FROM (SELECT rowid AS id, {_CARD_SCORE} AS score FROM cards WHERE cards MATCH ?) c
            JOIN sessions s ON s.id = c.id
            WHERE {" AND ".join(where) or "1"}
            ORDER BY c.score, c.id LIMIT ?
            """,
            ((" AND " if every else " OR ").join(quoted), *values, limit),
        )
        return [CardMatch(session, -score, at) for session, score, at in rows]

    def stem(self, word: str) -> str:
        found = self._tokenizer(
            word.encode(),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return " ".join(map(str, found))

    @cached_property
    def _tokenizer(self) -> apsw.FTS5Tokenizer:
        """What cuts the passages into words, see schema.py; not of this database, which may be
        damaged."""
        own = apsw.Connection(":memory:")
        return own.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])

    def places(
        self, query: Query, wanted: PassageQuery, filters: Filters, limit: int
    ) -> list[TurnMatch]:
        where, values = doc_filter(filters)
        asked = _Asked(compile_query(query, filters.fields), where, values)
        found = self._places(_WORDS, asked, limit)
        expression = passage_expression(wanted, filters.fields)
        if expression:
            _within(wanted.within, filters.fields, where, values)
            found += self._places(_PASSAGES, _Asked(expression, where, values), limit)
        return found

    def _places(self, table: _Table, asked: _Asked, limit: int) -> list[TurnMatch]:
        rows = fetch(
            self.db,
            f"""
            SELECT d.id, d.turn, d.created_at, s.agent, s.project_id
            FROM (SELECT rowid AS id FROM {table.name} WHERE {table.name} MATCH ?) p
            JOIN docs d ON d.id = {table.doc}
            JOIN sessions s ON s.id = (d.id >> {SEQ_BITS})
            WHERE {" AND ".join(asked.where) or "1"}
            LIMIT ?
            """,
            (asked.expression, *asked.values, limit),
        )
        return [TurnMatch(ident >> SEQ_BITS, *rest) for ident, *rest in rows]

    def rarity(self, words: Iterable[str]) -> dict[str, float]:
        self._name_vocabulary("passage_vocabulary", "passages")
        [(total,)] = fetch(self.db, "SELECT count(*) FROM passages_docsize")
        found: dict[str, float] = {}
        for word in words:
            row = first_row(
                self.db,
                "SELECT doc FROM temp.passage_vocabulary WHERE term = ?",
                (self.stem(word),),
            )
            seen = row[0] if row else 0
            found[word] = math.log(1 + (total - seen + 0.5) / (seen + 0.5))
        return found

    def words_like(self, beginning: str, limit: int) -> list[str]:
        self._name_vocabulary("vocabulary", "words")
        sql = (
            "SELECT term FROM temp.vocabulary WHERE term >= ? AND term < ? ORDER BY doc DESC LIMIT "
            "?"
        )
        return [row[0] for row in fetch(self.db, sql, (beginning, beginning + "\U0010ffff", limit))]

    def _name_vocabulary(self, name: str, index: str) -> None:
        """Give an index's own list of words a name, in memory: the file may be open for reading
        only."""
        guarded = self.db.pragma("query_only")
        self.db.pragma("query_only", False)
        self.db.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name} USING fts5vocab(main, {index}, row)"
        )
        self.db.pragma("query_only", guarded)


def passage_expression(wanted: PassageQuery, fields: tuple[str, ...]) -> str:
    """What is looked for in passages in FTS5's words; empty if they cannot have it."""
    names = " ".join(_PASSAGE_COLUMNS.get(field, "") for field in fields or FIELDS)
    if not names.strip() or not wanted.clauses:
        return ""
    clauses = ["(" + " OR ".join(map(quote_atom, clause)) + ")" for clause in wanted.clauses]
    joint = " AND " if wanted.every else " OR "
    return f"{{{names}}} : ({joint.join(clauses)})"


def _within(query: Query, fields: tuple[str, ...], where: list[str], values: list[Any]) -> None:
    """Add what the document `d` must have, and what it must not."""
    if query.clauses or query.files or query.tools:
        where.append("d.id IN (SELECT rowid FROM words WHERE words MATCH ?)")
        values.append(compile_query(query, fields))
    elif query.without:
        where.append("d.id NOT IN (SELECT rowid FROM words WHERE words MATCH ?)")
        values.append(columns(fields) + "(" + " OR ".join(map(quote_atom, query.without)) + ")")
