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


def parse_query(text: str) -> Query:
    """Return what a person typed as a query; raise BadInput if it asks for nothing."""
    if text.count('"') % 2:
        raise BadInput('a quote (") is not closed', _HINT)
    parser = _Parser()
    for minus, field, value in _TOKEN.findall(text):
        parser.add(minus, field, value)
    return parser.query()


class _Parser:
    """Collects the parts of a query."""

    def __init__(self) -> None:
        self.clauses: list[list[Atom]] = []
        self.without: list[Atom] = []
        self.fields: dict[str, list[str]] = {"file:": [], "tool:": []}
        self.joined = False  # after an OR: the next atom joins the last clause

    def add(self, minus: str, field: str, value: str) -> None:
        if field:
            self.fields[field].append(value.strip('"'))
        elif value == "OR" and not minus:
            if self.joined or not self.clauses:
                raise BadInput("OR needs a word on both sides", _HINT)
            self.joined = True
        elif atom := _atom(value):
            self._add_atom(atom, without=bool(minus) and not value.startswith("-"))

    def _add_atom(self, atom: Atom, *, without: bool) -> None:
        if without:
            self.without.append(atom)
        elif self.joined:
            self.clauses[-1].append(atom)
        else:
            self.clauses.append([atom])
        self.joined = False

    def query(self) -> Query:
        if self.joined:
            raise BadInput("OR needs a word on both sides", _HINT)
        files, tools = self.fields.values()
        if not (self.clauses or files or tools):
            what = "only words to leave out" if self.without else "nothing to search for"
            raise BadInput(what, _HINT)
        clauses = tuple(map(tuple, self.clauses))
        return Query(clauses, tuple(self.without), tuple(files), tuple(tools))


def _atom(value: str) -> Atom | None:
    """Parse one term; None for punctuation alone. Punctuation inside a word makes it a literal."""
    if not any(char.isalnum() for char in value):
        return None
    if value.startswith('"'):
        return Atom(value.strip('"'))
    prefix = value.endswith("*") and value[-2:-1].isalnum()
    return Atom(value.rstrip("*"), prefix)


def phrase(query: Query) -> Atom | None:
    """Return all plain words of a query as one phrase, so that who typed a whole title finds it
    first; None if there are fewer than three."""
    if len(query.clauses) < 3:
        return None
    words = []
    for first, *others in query.clauses:
        if others or first.prefix:
            return None
        words.append(first.text)
    return Atom(" ".join(words))
