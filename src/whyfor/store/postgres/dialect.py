"""The SQL of the facets, as PostgreSQL takes it.

What can be a function, an operator or an aggregate there is one, see schema.py. The rest is changed
here, by rules that each change one form: parameters, lists, hints for SQLite's planner. What a
statement is changed to is kept, so each is looked at once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

# What identifies a row of these is a name, which two people can use alike.
_NAMED = frozenset(
    (
        "aliases changes commits leaf_titles marks notes observations overrides places task_issues"
    ).split()
)
_OWNED = "team_project, person"
_INTO = re.compile(r"INSERT INTO (\w+)")
_CONFLICT = re.compile(r"ON CONFLICT\(")
_INDEXED = re.compile(r"\s+INDEXED BY \w+")
_CROSS = re.compile(r"CROSS JOIN (\w+ \w+) ON\b")
_DESCENDING = re.compile(r"\bDESC\b(?! NULLS)")  # what is unknown comes last
_TEXT = re.compile(r"CAST\(([\w.]+) AS TEXT\)")  # of bytes
_CHAR = re.compile(r"\bchar\((\d+)\)")
_LIMIT = re.compile(r"\bLIMIT (\?\d*)")
_LIST = re.compile(r"(NOT )?\bIN\s*\(\s*SELECT\s+value\s+FROM\s+json_each\((\?\d*)\)\s*\)")
_PARAMETER = re.compile(r"\?(\d*)")
_NUL = re.compile(r"((?:^|[^\\])(?:\\\\)*)\\u0000")


class Statement(NamedTuple):
    """A statement as psycopg takes it."""

    sql: str
    order: tuple[int, ...]  # which of the given values each parameter is
    lists: frozenset[int]  # which of the given values are lists, written as JSON


@lru_cache(maxsize=2048)
def translated(sql: str) -> Statement:
    """Return a statement of the facets for PostgreSQL."""
    sql = _INDEXED.sub("", sql)
    sql = _CROSS.sub(r"JOIN \1 ON", sql)
    sql = _CHAR.sub(r"chr(\1)", sql)
    sql = sql.replace(" LIKE ", " ILIKE ")
    sql = _TEXT.sub(r"convert_from(\1, 'UTF8')", sql)
    sql = _DESCENDING.sub("DESC NULLS LAST", sql)
    sql = _LIMIT.sub(r"LIMIT nullif(\1, -1)", sql)
    into = _INTO.search(sql)
    if into and into[1] in _NAMED:
        sql = _CONFLICT.sub(f"ON CONFLICT({_OWNED}, ", sql)
    sql = sql.replace("%", "%%")
    sql = _LIST.sub(_any_of, sql)
    order: list[int] = []
    lists: set[int] = set()

    def numbered(found: re.Match[str]) -> str:
        at = int(found[1]) - 1 if found[1] else len(order)
        if sql.startswith(_MARK, found.end()):
            lists.add(at)
        order.append(at)
        return "%s"

    return Statement(
        _PARAMETER.sub(numbered, sql).replace(_MARK, ""), tuple(order), frozenset(lists)
    )


_MARK = "\x00"  # after a parameter that is a list


def _any_of(found: re.Match[str]) -> str:
    return f"{'<> ALL' if found[1] else '= ANY'}({found[2]}{_MARK})"


def bind_values(statement: Statement, values: Any) -> list[Any]:
    """Return the values in the order of the statement's parameters."""
    given = list(values)
    for at in statement.lists:
        given[at] = msgspec.json.decode(given[at])
    return [without_nul(given[at]) for at in statement.order]


def without_nul(value: Any) -> Any:
    """PostgreSQL has no NUL in a text, nor in a string of JSON: show it instead."""
    if not isinstance(value, str):
        return value
    if "\x00" in value:
        value = value.replace("\x00", "\u2400")
    while "\\u0000" in value and (shown := _NUL.sub(r"\1\\u2400", value)) != value:
        value = shown
    return value
