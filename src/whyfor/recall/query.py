"""Parse search queries: words, "a phrase", prefix*, OR, -not, file:path, tool:Bash."""

from __future__ import annotations

import re

from whyfor.model.errors import BadInput
from whyfor.model.query import Atom, Query

_TOKEN = re.compile(r'(-?)(file:|tool:)?("[^"]*"|[^\s"]+)')
_HINT = (
    'Try: whyfor search login timeout, "exact phrase", retr*, cache OR redis, -test, '
    "file:src/app.py, tool:Bash"
)


def parse(text: str) -> Query:
    if text.count('"') % 2:
        raise BadInput('a quote (") is not closed', _HINT)
    clauses: list[list[Atom]] = []
    without: list[Atom] = []
    files: list[str] = []
    tools: list[str] = []
    joined = False  # after an OR: the next atom joins the last clause
    for minus, field, value in _TOKEN.findall(text):
        if value == "OR" and not minus and not field:
            if joined or not clauses:
                raise BadInput("OR needs a word on both sides", _HINT)
            joined = True
            continue
        if field:
            (files if field == "file:" else tools).append(value.strip('"'))
            continue
        atom = _atom(value)
        if atom is None:
            continue
        if minus and not value.startswith("-"):
            without.append(atom)
        elif joined:
            clauses[-1].append(atom)
        else:
            clauses.append([atom])
        joined = False
    if joined:
        raise BadInput("OR needs a word on both sides", _HINT)
    if not (clauses or files or tools):
        raise BadInput("only words to leave out" if without else "nothing to search for", _HINT)
    return Query(tuple(map(tuple, clauses)), tuple(without), tuple(files), tuple(tools))


def _atom(value: str) -> Atom | None:
    """Parse one term; None for punctuation alone. Punctuation inside a word makes it a literal."""
    if not any(char.isalnum() for char in value):
        return None
    if value.startswith('"'):
        return Atom(value.strip('"'))
    prefix = value.endswith("*") and value[-2:-1].isalnum()
    return Atom(value.rstrip("*"), prefix)


def phrase(query: Query) -> Atom | None:
    """Return all plain words of a query as one phrase, so that a whole title is found first; None
    for fewer than three words, or with OR or a prefix."""
    if len(query.clauses) < 3 or any(
        len(clause) > 1 or clause[0].prefix for clause in query.clauses
    ):
        return None
    return Atom(" ".join(clause[0].text for clause in query.clauses))
