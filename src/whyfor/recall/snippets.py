"""Where the words of a query stand in a text, and the part of it that is worth showing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from itertools import chain

from whyfor.model.query import Atom, Query

Stem = Callable[[str], str]

_SNIPPET = 160
_LEAD = 40
_LINES = 3
_WIDTH = 240  # of one of these
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")


class WordFinder:
    """Finds a term as the index would: whole words, any punctuation between them, no accents; of
    a plain word every form."""

    __slots__ = ("_form", "_lead", "_pattern", "_stem", "literal")

    def __init__(self, atom: Atom, stem: Stem) -> None:
        words = [_fold(word) for word in atom.words] or [_fold(atom.text)]
        self._form = stem(words[0]) if atom.plain else ""
        self._stem = stem
        if self._form:
            # A stem has the letters that a word begins with, except perhaps its last: try, tries.
            self.literal = _beginning(words[0], self._form)
            body = re.escape(self.literal) + r"[^\W_]*"
        else:
            self.literal = max(words, key=len)
            body = r"[\W_]+".join(map(re.escape, words))
        self._pattern = re.compile(rf"(?<![^\W_]){body}" + ("" if atom.prefix else r"(?![^\W_])"))
        # how far before its longest word a phrase may begin
        self._lead = len(atom.text) + _LEAD if len(words) > 1 else 0

    def spans(self, text: str, most: int) -> list[tuple[int, int]]:
        """Return where the atom stands in a folded text, so many places at most.

        The longest word is looked for first: far cheaper than the pattern, which is tried only
        where that stands.
        """
        found: list[tuple[int, int]] = []
        at = text.find(self.literal)
        while at >= 0 and len(found) < most:
            if self._lead:
                hit = self._pattern.search(text, max(0, at - self._lead))
                if hit is None:
                    break
            else:
                hit = self._pattern.match(text, at)
            at += 1
            if hit is not None and self._fits(hit[0]):
                found.append(hit.span())
                at = max(hit.end(), at)
            at = text.find(self.literal, at)
        return found

    def _fits(self, word: str) -> bool:
        return not self._form or self._stem(word) == self._form


def _beginning(word: str, form: str) -> str:
    shared = 0
    for own, other in zip(word, form, strict=False):
        if own != other:
            break
        shared += 1
    return word[: max(1, min(shared, len(form) - 1))]


def word_finders(query: Query, stem: Stem) -> list[WordFinder]:
    """Return a finder for each term of a query; words with hyphens between them are several."""
    atoms: list[Atom] = []
    for atom in chain.from_iterable(query.clauses):
        atoms += [Atom(word) for word in atom.words] if atom.apart else [atom]
    return [WordFinder(atom, stem) for atom in atoms]


def _spans(text: str, finders: list[WordFinder]) -> list[tuple[int, int]]:
    """Return where the words stand in a text, in order."""
    folded = _fold(text)
    spans: set[tuple[int, int]] = set()
    for finder in finders:
        spans.update(finder.spans(folded, 50))
    return sorted(spans)


def _marks(spans: list[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """Return those that lie within, counted from `begin`."""
    return [(a - begin, b - begin) for a, b in spans if a >= begin and b <= end]


def _fold(text: str) -> str:
    """Fold text as the index does: lower case, no accents; each character stays one character."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(char.lower()[:1] for char in text)
    return lowered if lowered.isascii() else _ACCENTED.sub(_plain, lowered)


def _plain(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFD", found[0])[0]


def snippet(text: str, finders: list[WordFinder]) -> tuple[str, list[tuple[int, int]]]:
    """Return the stretch of text with the most words in it, on one line, and where they stand."""
    spans = _spans(text, finders)
    begin = max(0, _densest(spans) - _SNIPPET // 4)
    piece = text[begin : begin + _SNIPPET]
    line = re.sub(r"\s", " ", piece)  # one for one, so that the marks still fit
    lead = "…" if begin else ""
    trail = "…" if begin + _SNIPPET < len(text) else ""
    marks = _marks(spans, begin, begin + len(piece))
    return lead + line + trail, [(a + len(lead), b + len(lead)) for a, b in marks]


def _densest(spans: list[tuple[int, int]]) -> int:
    best, start = 0, spans[0][0] if spans else 0
    for index, (at, _) in enumerate(spans):
        inside = sum(1 for other, _ in spans[index:] if other < at + _SNIPPET * 3 // 4)
        if inside > best:
            best, start = inside, at
    return start


def excerpt(text: str, finders: list[WordFinder]) -> tuple[str, list[tuple[int, int]]]:
    """Return the line with the most words from there on and its neighbours, and where the words
    stand."""
    spans = _spans(text, finders)
    begin = _first_line(text, _densest(spans))
    end = begin
    for _ in range(_LINES):
        stop = text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        if stop - end > _WIDTH:
            end += _WIDTH
            break
        end = min(stop + 1, len(text))
    piece = text[begin:end].rstrip("\n")
    return piece, _marks(spans, begin, begin + len(piece))


def _first_line(text: str, at: int) -> int:
    """Return where an excerpt around a place begins: at the line before, if that is short."""
    begin = text.rfind("\n", 0, at) + 1
    if at - begin > _WIDTH // 2:
        return at - _WIDTH // 4  # one long line: as much of it as fits
    if begin <= 1:
        return begin
    before = text.rfind("\n", 0, begin - 1) + 1
    return before if begin - before <= _WIDTH else begin


def has_words(text: str, finders: list[WordFinder]) -> int:
    """Return how many of the terms stand in a text."""
    return sum(which_words(text, finders))


def which_words(text: str, finders: list[WordFinder]) -> list[bool]:
    """Return for each of the terms whether it stands in a text."""
    folded = _fold(text)
    # most are not there, and the first question is far cheaper
    return [finder.literal in folded and bool(finder.spans(folded, 1)) for finder in finders]


def has_all_words(text: str, query: Query, stem: Stem) -> bool:
    """Return whether a text has all the words, and none that it must not have."""
    folded = _fold(text)

    def has(atom: Atom) -> bool:
        parts = [Atom(word) for word in atom.words] if atom.apart else [atom]
        return all(WordFinder(part, stem).spans(folded, 1) for part in parts)

    for clause in query.clauses:
        if not any(map(has, clause)):
            return False
    return not any(map(has, query.without))
