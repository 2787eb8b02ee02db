"""The tables of words on PostgreSQL: the same words as on SQLite, written as tsvectors.

A word is kept with the letter of its column before it, so one vector answers for every column that
is asked: `p` and `gate` is a gate in a prompt. PostgreSQL's own parser is not used, because it cuts
paths and names otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import apsw

from whyfor.model.query import FIELDS, Atom, PassageQuery, Query


class WordConnection(Protocol):
    """What the index asks of a connection."""

    def run(self, sql: str, values: Any = ()) -> Iterable[Any]:
        """Run a statement that is written for PostgreSQL."""

    def executemany(self, sql: str, rows: Iterable[Any], /) -> None: ...


class WordTable(NamedTuple):
    """The columns of a table of words: their letters, and what a word in them counts."""

    letters: dict[str, str]
    weights: dict[str, float]
    stemmed: bool


WORDS = WordTable(
    {
        "title": "t",
        "prompts": "p",
        "answers": "a",
        "thinking": "h",
        "tools": "c",
        "results": "r",
        "files": "f",
        "names": "n",
    },
    {"t": 4.0, "p": 4.0, "a": 2.0, "h": 1.0, "c": 2.0, "r": 0.2, "f": 2.0, "n": 0.0},
    stemmed=False,
)
PASSAGES = WordTable(
    {"title": "t", "prompts": "p", "answers": "a", "calls": "c"},
    {"t": 2.0, "p": 1.5, "a": 1.0, "c": 1.0},
    stemmed=True,
)
CARDS = WordTable(
    {
        "title": "t",
        "prompts": "p",
        "closing": "a",
        "files": "f",
        "commits": "m",
        "learned": "l",
    },
    {"t": 3.0, "p": 3.0, "a": 2.0, "f": 1.0, "m": 3.0, "l": 2.0},
    stemmed=True,
)
TABLES = {"words": WORDS, "passages": PASSAGES, "cards": CARDS}
# In which columns the fields are that people name.
FIELD_LETTERS = {"prompts": "tp", "answers": "a", "thinking": "h", "tools": "crf"}
PASSAGE_LETTERS = {"prompts": "tp", "answers": "a", "tools": "c"}
_FILES, _NAMES = "f", "n"
_LONGEST = 500  # characters of a word; PostgreSQL takes 2,046 bytes
_POSITIONS = 255  # of one word in one vector
_LAST = 16_383  # the highest position there is
_LETTERS = 800_000  # bytes of all words of a vector; PostgreSQL takes a megabyte


class TsIndex:
    def __init__(self, db: WordConnection) -> None:
        self.db = db

    def add(self, table: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        kind = TABLES[table]
        letters = [kind.letters[column] for column in columns]
        made = [(number, *vector(kind, letters, texts)) for number, *texts in rows]
        self.db.executemany(f"INSERT INTO {table}(id, v, len) VALUES(?,?,?)", made)

    def remove(self, table: str, numbers: Iterable[int]) -> None:
        self.db.run(f"DELETE FROM {table} WHERE id = ANY(%s)", (list(numbers),))

    def numbers(self, table: str, first: int, last: int) -> list[int]:
        sql = f"SELECT id FROM {table} WHERE id BETWEEN %s AND %s"
        return [number for (number,) in self.db.run(sql, (first, last))]

    def clear(self) -> None:
        for table in ("words", "passages"):
            self.db.run(f"DELETE FROM {table}")

    def matching(self) -> str:
        return f"SELECT id FROM found_words(CAST(? AS tsquery), {MANY})"

    def expression(self, query: Query, fields: tuple[str, ...]) -> str:
        return query_expression(query, fields)


MANY = 20_000  # rows that are looked at where they are filtered, not ranked


@lru_cache(maxsize=2)
def _tokenizer(stemmed: bool) -> apsw.FTS5Tokenizer:
    """What cuts texts into words on SQLite."""
    own = apsw.Connection(":memory:")
    how = ["remove_diacritics", "2"]
    if stemmed:
        return own.fts5_tokenizer("porter", ["unicode61", *how])
    return own.fts5_tokenizer("unicode61", how)


def tokens(text: str, *, stemmed: bool) -> list[str]:
    """Return the words of a text in order."""
    found = _tokenizer(stemmed)(
        text.encode("utf-8", "replace"),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return [str(word)[:_LONGEST] for word in found]


def vector(kind: WordTable, letters: list[str], texts: Iterable[str]) -> tuple[str, int]:
    """Return the words of a row as a tsvector, and how many there are."""
    places: dict[str, list[int]] = {}
    size = at = count = 0
    for letter, text in zip(letters, texts, strict=True):
        for word in tokens(text, stemmed=kind.stemmed):
            at += 1
            count += 1
            lexeme = letter + word
            known = places.get(lexeme)
            if known is None:
                size += len(lexeme.encode()) + 8
                if size > _LETTERS:
                    continue
                known = places[lexeme] = []
            if len(known) < _POSITIONS:
                known.append(min(at, _LAST))
        at += 1  # a phrase does not go on in the next column
    return " ".join(_placed(lexeme, where) for lexeme, where in places.items()), count


def _placed(lexeme: str, places: list[int]) -> str:
    return f"{_quoted(lexeme)}:{','.join(map(str, places))}"


def _quoted(lexeme: str) -> str:
    text = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{text}'"


# -- queries ---------------------------------------------------------------------------------------


def query_expression(query: Query, fields: tuple[str, ...]) -> str:
    """A query as a tsquery; empty if it has no words."""
    letters = "".join(FIELD_LETTERS[field] for field in fields or FIELDS)
    parts = [any_expression(clause, letters, WORDS) for clause in query.clauses]
    parts += [atom_expression(Atom(path, prefix=True), _FILES, WORDS) for path in query.files]
    parts += [atom_expression(Atom(name), _NAMES, WORDS) for name in query.tools]
    if not all(parts):
        return ""
    text = " & ".join(parts)
    for atom in query.without:
        if not_this := atom_expression(atom, letters, WORDS):
            text = f"({text}) & !{not_this}" if text else f"!{not_this}"
    return text


def passage_query_expression(wanted: PassageQuery, fields: tuple[str, ...]) -> str:
    """What is looked for in passages as a tsquery; empty if they cannot have it."""
    letters = passage_letters(fields)
    parts = [any_expression(clause, letters, PASSAGES) for clause in wanted.clauses]
    if not letters or not any(parts) or (wanted.every and not all(parts)):
        return ""
    return (" & " if wanted.every else " | ").join(part for part in parts if part)


def passage_letters(fields: tuple[str, ...]) -> str:
    return "".join(PASSAGE_LETTERS.get(field, "") for field in fields or FIELDS)


def any_expression(clause: Iterable[Atom], letters: str, kind: WordTable) -> str:
    parts = [atom_expression(atom, letters, kind) for atom in clause]
    text = " | ".join(part for part in parts if part)
    return f"({text})" if text else ""


def atom_expression(atom: Atom, letters: str, kind: WordTable) -> str:
    """An atom in any of the columns; empty if it has no words."""
    if atom.apart:
        words = [atom_expression(Atom(word), letters, kind) for word in atom.words]
        return f"({' & '.join(word for word in words if word)})"
    words = tokens(atom.text, stemmed=kind.stemmed)
    if not words:
        return ""
    columns = [_phrase(letter, words, prefix=atom.prefix) for letter in letters]
    return f"({' | '.join(columns)})"


def _phrase(letter: str, words: list[str], *, prefix: bool) -> str:
    text = " <-> ".join(_quoted(letter + word) for word in words)
    return f"({text}{':*' if prefix else ''})"


class RankedTerm(NamedTuple):
    """A word of an atom in one column, and what it counts there."""

    atom: int
    word: int  # of the atom
    lexeme: str
    prefix: bool
    weight: float


def ranked_terms(atoms: list[Atom], letters: str, kind: WordTable) -> Iterator[RankedTerm]:
    """Yield what each atom counts in which column."""
    for number, atom in enumerate(atoms):
        words = tokens(atom.text, stemmed=kind.stemmed)
        for at, word in enumerate(words):
            is_last = at == len(words) - 1
            for letter in letters:
                prefix = atom.prefix and is_last
                yield RankedTerm(number, at, letter + word, prefix, kind.weights[letter])
