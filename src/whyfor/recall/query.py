"""Parse search queries: words, "a phrase", prefix*, OR, -not, file:path, tool:Bash."""

from __future__ import annotations

import re
from itertools import chain

import msgspec

from whyfor.model.errors import BadInput
from whyfor.model.query import Atom, PassageQuery, Query

_TOKEN = re.compile(r'(-?)(file:|tool:)?("[^"]*"|[^\s"]+)')
_ALL = 2  # words of which none may be missing
_HINT = (
    'Try: whyfor search login timeout, "exact phrase", retr*, cache OR redis, -test, '
    "file:src/app.py, tool:Bash"
)

# Words of English that say nothing about a subject. Those of other languages are common in texts
# of that language, and count little for it.
_FUNCTION_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being between both
    but by can cannot could did do does doing done during each few for from further had has have
    having he her here hers him his how i if in into is it its just let may me might more most must
    my no nor not now of on once only or other our ours own same shall she should so some such than
    that the their theirs them then there these they this those through to too until us very was we
    were what when where whether which while who whom whose why will with would you your yours
    """.split()
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
    """Parse one term; None for punctuation alone. Punctuation inside a word makes it a literal,
    except for a hyphen between words."""
    if not any(char.isalnum() for char in value):
        return None
    if value.startswith('"'):
        return Atom(value.strip('"'), quoted=True)
    prefix = value.endswith("*") and value[-2:-1].isalnum()
    return Atom(value.rstrip("*"), prefix)


def content(query: Query) -> Query:
    """Return a query without its function words, unless it has no others."""
    kept = tuple(clause for clause in query.clauses if not _is_function_word(clause))
    return msgspec.structs.replace(query, clauses=kept) if kept else query


def _is_function_word(clause: tuple[Atom, ...]) -> bool:
    [first, *others] = clause
    if others or not first.plain:
        return False
    return all(word.lower() in _FUNCTION_WORDS for word in first.words)


def passage_query(query: Query, *, every: bool = False) -> PassageQuery:
    """Return what to look for in passages: all the words, or if there are more than two any. What
    is quoted or a prefix must be there as typed."""
    wanted = content(query)
    strict = every or len(wanted.clauses) <= _ALL
    exact = tuple(clause for clause in wanted.clauses if _is_exact(clause, strict))
    within = msgspec.structs.replace(wanted, clauses=exact)
    if strict:
        return PassageQuery(wanted.clauses, every=True, within=within)
    atoms = list(chain.from_iterable(wanted.clauses))
    words = dict.fromkeys(word.lower() for atom in atoms for word in atom.words)
    phrases = [atom for atom in (*atoms, phrase(query)) if atom and len(atom.words) > 1]
    found = [*map(Atom, words), *(Atom(atom.text, quoted=True) for atom in phrases)]
    return PassageQuery(tuple((atom,) for atom in found), every=False, within=within)


def _is_exact(clause: tuple[Atom, ...], strict: bool) -> bool:
    if strict:
        return not all(atom.plain for atom in clause)
    return all(atom.quoted or atom.prefix for atom in clause)


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
    return Atom(" ".join(words), quoted=True)
