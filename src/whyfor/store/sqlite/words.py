"""The tables of words on SQLite: FTS5, and queries in its words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from whyfor.model.query import FIELDS, Atom, Query

_COLUMNS = {
    "prompts": "title prompts",
    "answers": "answers",
    "thinking": "thinking",
    "tools": "tools results files",
}


class FtsIndex:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def add(self, table: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * (len(columns) + 1))
        sql = f"INSERT INTO {table}(rowid, {', '.join(columns)}) VALUES({marks})"
        self.db.executemany(sql, rows)

    def remove(self, table: str, numbers: Iterable[int]) -> None:
        sql = f"DELETE FROM {table} WHERE rowid=?"
        self.db.executemany(sql, [(number,) for number in numbers])

    def numbers(self, table: str, first: int, last: int) -> list[int]:
        sql = f"SELECT rowid FROM {table} WHERE rowid BETWEEN ? AND ?"
        return [number for (number,) in self.db.execute(sql, (first, last))]

    def clear(self) -> None:
        for table in ("words", "passages"):
            self.db.execute(f"INSERT INTO {table}({table}) VALUES('delete-all')")

    def matching(self) -> str:
        return "SELECT rowid AS id FROM words WHERE words MATCH ?"

    def expression(self, query: Query, fields: tuple[str, ...]) -> str:
        return compile_query(query, fields)


def columns(fields: tuple[str, ...]) -> str:
    """FTS5's column filter for the fields people name; none is all of them."""
    return "{" + " ".join(_COLUMNS[field] for field in fields or FIELDS) + "} : "


def compile_query(query: Query, fields: tuple[str, ...]) -> str:
    """A query in FTS5's words. Every atom is quoted, so no text of a person's is ever syntax."""
    where = columns(fields)
    parts = [where + "(" + " OR ".join(map(quote_atom, clause)) + ")" for clause in query.clauses]
    parts += [f"{{files}} : {quote_atom(Atom(path, prefix=True))}" for path in query.files]
    parts += [f"{{names}} : {quote_atom(Atom(name))}" for name in query.tools]
    text = " AND ".join(parts)
    for atom in query.without:
        text = f"({text}) NOT {where}{quote_atom(atom)}"
    return text


def quote_atom(atom: Atom) -> str:
    if atom.apart:
        first = " AND ".join(f'"{word}"' for word in atom.words)
        return f"({first})"
    text = atom.text.replace('"', '""').replace("\x00", " ")
    return f'"{text}"' + ("*" if atom.prefix else "")
