"""Whether a change takes out what somebody decided: the words of code beside the words of a
decision.

A line that is rewritten keeps most of its words. A decision is undone where words go that it
names, or where most of what was written for it goes and nothing like it comes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from whyfor.hook.prompt_words import stem_word
from whyfor.story.lines.words import squeeze

_RUN = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?|_+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IDENT = re.compile(r"[^\W\d]\w*")
_DEFINES = re.compile(
    r"^\s*(?:(?:export|async|public|private|static|final)\s+)*"
    r"(?:(?:def|class|func|function|fn|const|let|var|type|struct)\s+)?([^\W\d]\w*)\s*(?=[=:(<]|$)"
)
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
} | {"once": "1", "twice": "2", "half": "0.5", "hundred": "100", "thousand": "1000"}
_KEYWORDS = frozenset(
    "return if else elif for while try except finally raise throw with do switch case import from"
    " and or not in is lambda yield await print del assert".split()
)
# Words of programming languages, and words that stand in any request: they decide nothing.
_EMPTY = frozenset(
    "def class return import from self this if else elif for while in is not and or none null true"
    " false try except finally raise throw new let var const func function fn end do then with as"
    " lambda yield await async public private static void int str string bool list dict print"
    " the a an of to on at by be it its are was were been please make should must will would can"
    " could may might do does did have has had use used using so that these those there here we"
    " you i me my our your they them but only just also very all any some each every what which"
    " when where why how no yes never always ok add added change changed remove removed fix write"
    " file files code line lines test tests value values name data get set let now still more"
    " into than too up out about after before".split()
)


class WordChange(msgspec.Struct, frozen=True):
    """What goes with some lines: their words that do not come again."""

    gone: frozenset[str]
    kept: float  # the share of their words that come again


@lru_cache(maxsize=1 << 14)
def line_terms(line: str) -> tuple[str, ...]:
    """Return the words of a line of code: parts of names, in one form for all endings, and
    numbers."""
    found = []
    for run in _RUN.findall(line):
        for part in _CAMEL.split(run):
            word = part.casefold()
            if word.strip("_") and word not in _EMPTY:
                found.append(word if word[0].isdigit() else stem_word(word))
    return tuple(found)


@lru_cache(maxsize=1 << 10)
def said_terms(text: str) -> frozenset[str]:
    """Return the words of a sentence in the same form; numbers in words too."""
    found = set()
    for run in _RUN.findall(text):
        for part in _CAMEL.split(run):
            word = part.casefold()
            if word in _NUMBERS:
                found.add(_NUMBERS[word])
            if word in _EMPTY or not (len(word) > 1 or word.isdigit()) or word.startswith("_"):
                continue
            found.add(word if word[0].isdigit() else stem_word(word))
    return frozenset(found)


def change_of_words(removed: Iterable[str], added: Iterable[str]) -> WordChange:
    """Return which words go with removed lines and do not come with added ones."""
    out = Counter(term for line in removed for term in line_terms(line))
    back = Counter(term for line in added for term in line_terms(line))
    total = sum(out.values())
    left = out - back
    kept = 1 - sum(left.values()) / total if total else 1.0
    return WordChange(frozenset(left), kept)


def renamed(removed: Sequence[str], added: Sequence[str]) -> dict[str, str]:
    """Return names that a change gives to the same things: defined in both, in lines that are
    otherwise the same."""
    found: dict[str, str] = {}
    coming = {_without_name(line): name for line in added if (name := _defined(line))}
    for line in removed:
        name = _defined(line)
        other = coming.get(_without_name(line)) if name else None
        if name and other and other != name:
            found[name] = other
    return found


def with_names(line: str, names: dict[str, str]) -> str:
    """Return a line with other names for some things."""
    if not names:
        return line
    return _IDENT.sub(lambda match: names.get(match[0], match[0]), line)


def moved_lines(removed: Iterable[str], added: Iterable[str]) -> frozenset[str]:
    """Return what is left of lines that go at one place and come at another, spacing aside."""
    return frozenset(map(squeeze, removed)) & frozenset(map(squeeze, added))


def _defined(line: str) -> str | None:
    match = _DEFINES.match(line)
    return match[1] if match and match[1] not in _KEYWORDS else None


def _without_name(line: str) -> str:
    name = _defined(line)
    if name is None:
        return squeeze(line)
    return squeeze(re.sub(rf"\b{re.escape(name)}\b", "\0", line))


# -- rules ---------------------------------------------------------------------------------------

_UNWANTED = re.compile(
    r"\b(?:never|not|don't|do not|no|without|avoid|stop|instead of|rather than|over)\s+(.{2,60})",
    re.I,
)
_CLAUSE = re.compile(
    r"[,.;:!?()]|\b(?:for|in|on|when|because|since|but|and|so|unless|to|at)\b", re.I
)


@lru_cache(maxsize=1 << 10)
def unwanted_terms(rule: str) -> tuple[frozenset[str], ...]:
    """Return what a rule forbids: for each forbidden thing the words that name it."""
    found = []
    for match in _UNWANTED.finditer(rule.replace("’", "'")):
        clause = _CLAUSE.split(match[1], maxsplit=1)[0]
        terms = said_terms(clause)
        if terms:
            found.append(terms)
    return tuple(found)
