"""Full text search on PostgreSQL: candidates by the index, ranked as SQLite ranks.

A function with rights of its own finds at most 2,000 candidates by the index, those with the rarest
words first; everything after it is asked as the person who asks, under row-level security. Of the
candidates, PostgreSQL's own rank chooses those that BM25 is computed for, with the constants of
SQLite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from whyfor.model.events import SEQ_BITS
from whyfor.model.events import SEQ_MASK as _MASK
from whyfor.model.query import (
    FIELDS,
    Atom,
    CardMatch,
    Filters,
    Match,
    PassageQuery,
    Query,
    TurnMatch,
)
from whyfor.store.postgres.connection import ScopedConnection
from whyfor.store.postgres.dialect import bind_values, translated
from whyfor.store.postgres.words import (
    CARDS,
    FIELD_LETTERS,
    MANY,
    PASSAGES,
    WORDS,
    RankedTerm,
    WordTable,
    atom_expression,
    passage_letters,
    passage_query_expression,
    query_expression,
    ranked_terms,
    tokens,
)
from whyfor.store.sql.filters import doc_filter, session_filter
from whyfor.store.sql.search import SqlSearch
from whyfor.store.sql.search_index import PART_BITS

CANDIDATES = 2_000
NARROWED = 20_000  # of which only some are what else is asked for
_SCORED = 200  # of the candidates, those that BM25 is computed for
_COMMON = 20_000  # a word in more texts than that is as common as one in so many
_K1, _B = 1.2, 0.75  # SQLite's
_RAREST = 1e-6  # the least that a word counts
_VOCABULARY = 2_000  # texts whose words are looked at


class _Table(NamedTuple):
    """An index: its words, and which document or session a row `p` belongs to."""

    name: str
    words: WordTable
    doc: str


class _Asked(NamedTuple):
    """What is asked of an index."""

    expression: str  # a tsquery
    atoms: list[Atom]  # that the rank is made of
    letters: str  # of the columns they may stand in
    where: list[str]  # on documents `d` of sessions `s`
    values: list[Any]


_WORDS = _Table("words", WORDS, "p.id")
_PASSAGES = _Table(
    "passages", PASSAGES, f"(SELECT max(id) FROM docs WHERE id <= p.id >> {PART_BITS})"
)
_CARDS = _Table("cards", CARDS, "p.id")

_OF_DOCS = f"""
    JOIN docs d ON d.id = {{doc}}
    JOIN sessions s ON s.id = (d.id >> {SEQ_BITS})
"""
_OF_SESSIONS = "JOIN sessions s ON s.id = p.id"
# The best of what may be found: all of it where nothing else is asked, else what also is that.
_ANY = "SELECT id, v, len, rank FROM top_{table}(CAST(? AS tsquery[]), CAST(? AS tsquery), ?, ?)"
_SUCH = """
    SELECT p.id, p.v, p.len, ts_rank(p.v, CAST(? AS tsquery)) AS rank
    FROM unnest(likely_{table}(CAST(? AS tsquery[]), ?)) hits(id)
    JOIN {table} p ON p.id = hits.id
    {joins}
    WHERE {where}
    ORDER BY rank DESC, p.id
    LIMIT ?
"""
# One row for each, with what its words count. Those that PostgreSQL's own rank puts behind are not
# counted: their score goes on from the last that is, in that order.
_BEST = f"""
    WITH chosen AS MATERIALIZED (
      SELECT f.*, row_number() OVER (ORDER BY f.rank DESC, f.id) AS place FROM ({{chosen}}) f),
    terms AS (
      SELECT * FROM unnest(
        CAST(? AS integer[]), CAST(? AS integer[]), CAST(? AS text[]), CAST(? AS boolean[]),
        CAST(? AS double precision[])) AS t(atom, word, lexeme, prefix, weight)),
    counted AS (
      SELECT id, atom, word, sum(weight * times) AS f
      FROM (
        SELECT c.id, t.atom, t.word, t.weight, cardinality(u.positions) AS times
        FROM chosen c
        CROSS JOIN LATERAL unnest(c.v) u
        JOIN terms t ON t.lexeme = u.lexeme
        WHERE c.place <= {_SCORED} AND NOT t.prefix
        UNION ALL
        SELECT c.id, t.atom, t.word, t.weight, cardinality(u.positions)
        FROM terms t
        CROSS JOIN chosen c
        CROSS JOIN LATERAL unnest(c.v) u
        WHERE c.place <= {_SCORED} AND t.prefix AND starts_with(u.lexeme, t.lexeme)) found
      GROUP BY 1, 2, 3),
    atoms AS (
      SELECT id, atom, CAST(min(f) AS double precision) AS f
      FROM counted
      GROUP BY 1, 2
      HAVING count(*) = (CAST(? AS integer[]))[atom + 1]),
    scored AS MATERIALIZED (
      SELECT c.id, c.rank,
        sum(coalesce((CAST(? AS double precision[]))[a.atom + 1] * a.f * ({_K1} + 1)
            / nullif(a.f + {_K1} * (1 - {_B} + {_B} * c.len / CAST(? AS double precision)), 0), 0))
          AS score
      FROM chosen c LEFT JOIN atoms a ON a.id = c.id
      WHERE c.place <= {_SCORED}
      GROUP BY c.id, c.rank),
    p AS MATERIALIZED (
      SELECT id, score FROM scored
      UNION ALL
      SELECT c.id, c.rank * (SELECT min(score) / nullif(min(rank), 0) FROM scored)
      FROM chosen c
      WHERE c.place > {_SCORED}
      ORDER BY score DESC, id
      LIMIT ?)
    SELECT {{columns}}, p.score
    FROM p {{joins}}
    ORDER BY p.score DESC, p.id
"""


class PostgresSearch(SqlSearch):
    db: ScopedConnection

    def __init__(self, db: ScopedConnection) -> None:
        super().__init__(db)
        self._counted: dict[tuple[str, str], int] = {}  # texts, by table and expression

    def match(
        self, query: Query, filters: Filters, limit: int, *, newest: bool = False
    ) -> list[Match]:
        return self._matches(_WORDS, _words_asked(query, filters), limit, newest=newest)

    def passages(
        self, wanted: PassageQuery, filters: Filters, limit: int, *, newest: bool = False
    ) -> list[Match]:
        return self._matches(_PASSAGES, _passages_asked(wanted, filters), limit, newest=newest)

    def _matches(self, table: _Table, asked: _Asked, limit: int, *, newest: bool) -> list[Match]:
        if not asked.expression:
            return []
        joins = _OF_DOCS.format(doc=table.doc)
        if newest:
            rows = self._newest(table, asked, joins, limit)
        else:
            columns = "d.id, d.last_seq, d.turn, d.created_at"
            rows = self._ranked(table, asked, (columns, joins), limit)
        return [
            Match(ident >> SEQ_BITS, ident & _MASK, last, turn, created, float(score))
            for ident, last, turn, created, score in rows
        ]

    def _newest(self, table: _Table, asked: _Asked, joins: str, limit: int) -> list[Any]:
        return self._run(
            f"""
            SELECT d.id, d.last_seq, d.turn, d.created_at, 0
            FROM found_{table.name}(CAST(? AS tsquery), {MANY}) p
            {joins}
            WHERE {" AND ".join(asked.where) or "TRUE"}
            ORDER BY d.created_at DESC NULLS LAST, p.id
            LIMIT ?
            """,
            [asked.expression, *asked.values, limit],
        )

    def _ranked(self, table: _Table, asked: _Asked, how: tuple[str, str], limit: int) -> list[Any]:
        columns, joins = how
        terms = list(ranked_terms(asked.atoms, asked.letters, table.words))
        texts, length = self._sizes(table)
        ranked = max(_SCORED, limit) if limit >= 0 else MANY
        counts = self._atom_counts(table, asked)
        if asked.where:
            most = NARROWED if limit >= 0 else MANY
            where = " AND ".join(asked.where)
            chosen = _SUCH.format(table=table.name, joins=joins, where=where)
            likely = _likely(table, asked, counts, most)
            values = [asked.expression, likely, most, *asked.values, ranked]
        else:
            most = CANDIDATES if limit >= 0 else MANY
            chosen = _ANY.format(table=table.name)
            values = [_likely(table, asked, counts, most), asked.expression, most, ranked]
        lengths = [len(tokens(atom.text, stemmed=table.words.stemmed)) for atom in asked.atoms]
        values += [list(column) for column in _columns(terms)]
        values += [lengths, _rarities(counts, texts), length, limit]
        return self._run(_BEST.format(chosen=chosen, columns=columns, joins=joins), values)

    def _sizes(self, table: _Table) -> tuple[int, float]:
        """Return how many texts an index has, and how many words they have on average."""
        sql = "SELECT coalesce(sum(texts), 0), coalesce(sum(tokens), 0) FROM search_sizes "
        [(texts, words)] = self.db.run(sql + "WHERE kind=%s", (table.name,))
        return int(texts), max(float(words) / max(float(texts), 1.0), 1.0)

    def _atom_counts(self, table: _Table, asked: _Asked) -> list[int]:
        """Return how many texts have each atom."""
        asking = [atom_expression(atom, asked.letters, table.words) for atom in asked.atoms]
        return self._counts(table, asking)

    def _counts(self, table: _Table, asking: list[str]) -> list[int]:
        """Return how many texts each expression finds, at most so many that it is common."""
        unknown = [each for each in asking if (table.name, each) not in self._counted]
        if unknown:
            sql = f"SELECT counts_{table.name}(%s::tsquery[], {_COMMON})"
            [(counts,)] = self.db.run(sql, (unknown,))
            for each, count in zip(unknown, counts, strict=True):
                self._counted[table.name, each] = count
        return [self._counted[table.name, each] for each in asking]

    def _run(self, sql: str, values: list[Any]) -> list[Any]:
        statement = translated(sql)
        return self.db.run(statement.sql, bind_values(statement, values)).fetchall()

    def cards(
        self, words: Iterable[str], filters: Filters, limit: int, *, every: bool = False
    ) -> list[CardMatch]:
        by_stem = {self.stem(word): word for word in words}
        atoms = [Atom(word, quoted=True) for stem, word in by_stem.items() if stem]
        if not atoms or filters.fields:
            return []
        where, values = session_filter(filters)
        if filters.committed:
            where.append("s.id IN (SELECT session_id FROM parts)")
        letters = "".join(CARDS.letters.values())
        parts = [atom_expression(atom, letters, CARDS) for atom in atoms]
        expression = (" & " if every else " | ").join(parts)
        asked = _Asked(expression, atoms, letters, where, values)
        columns = "s.id, s.started_at"
        rows = self._ranked(_CARDS, asked, (columns, _OF_SESSIONS), limit)
        return [CardMatch(session, float(score), at) for session, at, score in rows]

    def stem(self, word: str) -> str:
        return " ".join(tokens(word, stemmed=True))

    def rarity(self, words: Iterable[str]) -> dict[str, float]:
        texts, _ = self._sizes(_PASSAGES)
        letters = "".join(PASSAGES.letters.values())
        given = list(words)
        atoms = [Atom(word, quoted=True) for word in given]
        counts = self._counts(
            _PASSAGES, [atom_expression(atom, letters, PASSAGES) for atom in atoms]
        )
        return {
            word: math.log(1 + (texts - seen + 0.5) / (seen + 0.5))
            for word, seen in zip(given, counts, strict=True)
        }

    def places(
        self, query: Query, wanted: PassageQuery, filters: Filters, limit: int
    ) -> list[TurnMatch]:
        found = self._places(_WORDS, _words_asked(query, filters), limit)
        return found + self._places(_PASSAGES, _passages_asked(wanted, filters), limit)

    def _places(self, table: _Table, asked: _Asked, limit: int) -> list[TurnMatch]:
        if not asked.expression:
            return []
        rows = self._run(
            f"""
            SELECT d.id, d.turn, d.created_at, s.agent, s.project_id
            FROM found_{table.name}(CAST(? AS tsquery), {MANY}) p
            {_OF_DOCS.format(doc=table.doc)}
            WHERE {" AND ".join(asked.where) or "TRUE"}
            LIMIT ?
            """,
            [asked.expression, *asked.values, limit],
        )
        return [TurnMatch(ident >> SEQ_BITS, *rest) for ident, *rest in rows]

    def words_like(self, beginning: str, limit: int) -> list[str]:
        rows = self.db.run(
            "SELECT word FROM known_words(%s, %s, %s)", (beginning, limit, _VOCABULARY)
        )
        return [word for (word,) in rows]


def _rarities(counts: list[int], texts: int) -> list[float]:
    """Return how much each atom counts, by how many texts have it."""
    return [
        max(_RAREST, math.log((texts - n + 0.5) / (n + 0.5)) if n < texts else _RAREST)
        for n in counts
    ]


def _likely(table: _Table, asked: _Asked, counts: list[int], most: int) -> list[str]:
    """Return what to look for first if too many texts have what is asked: those with a rare word,
    which count most; those with all common words; then the others."""
    whole = asked.expression
    found: dict[str, int] = {}
    for atom, count in zip(asked.atoms, counts, strict=True):
        if expression := atom_expression(atom, asked.letters, table.words):
            found[expression] = count
    if sum(found.values()) <= most:
        return [whole]
    rare: list[str] = []
    room = most
    for expression in sorted(found, key=lambda each: found[each]):
        room -= found[expression]
        if room < 0:
            break
        rare.append(expression)
    common = [expression for expression in found if expression not in rare]
    queries = [f"({whole}) & ({' | '.join(rare)})"] if rare else []
    if len(common) > 1:
        queries.append(f"({whole}) & {' & '.join(common)}")
    return [*queries, whole]


def _columns(terms: list[RankedTerm]) -> list[tuple[Any, ...]]:
    return list(zip(*terms, strict=True)) if terms else [()] * len(RankedTerm._fields)


def _words_asked(query: Query, filters: Filters) -> _Asked:
    where, values = doc_filter(filters)
    letters = "".join(FIELD_LETTERS[field] for field in filters.fields or FIELDS)
    atoms = _plain_atoms(query.clauses)
    return _Asked(query_expression(query, filters.fields), atoms, letters, where, values)


def _passages_asked(wanted: PassageQuery, filters: Filters) -> _Asked:
    where, values = doc_filter(filters)
    _within(wanted.within, filters.fields, where, values)
    letters = passage_letters(filters.fields)
    expression = passage_query_expression(wanted, filters.fields)
    return _Asked(expression, _plain_atoms(wanted.clauses), letters, where, values)


def _plain_atoms(clauses: Iterable[tuple[Atom, ...]]) -> list[Atom]:
    """Return the atoms of a query; words with hyphens count each."""
    found: list[Atom] = []
    for clause in clauses:
        for atom in clause:
            found += [Atom(word, quoted=True) for word in atom.words] if atom.apart else [atom]
    return found


def _within(query: Query, fields: tuple[str, ...], where: list[str], values: list[Any]) -> None:
    """Add what the document `d` must have, and what it must not."""
    has = f"(SELECT id FROM found_words(CAST(? AS tsquery), {MANY}))"
    if query.clauses or query.files or query.tools:
        where.append(f"d.id IN {has}")
        values.append(query_expression(query, fields))
    elif query.without:
        letters = "".join(FIELD_LETTERS[field] for field in fields or FIELDS)
        parts = [atom_expression(atom, letters, WORDS) for atom in query.without]
        where.append(f"d.id NOT IN {has}")
        values.append(" | ".join(part for part in parts if part))
