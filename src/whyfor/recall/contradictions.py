"""Whether a later note says the opposite of an earlier one: the same words about the same thing,
and one of the two denies what the other says.

Precision comes first: a note is only taken for contradicted if both are short enough to be about
one thing, most of their words are the same, and the sense differs by a plain word of the language.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from whyfor.hook.prompt_words import stem_word
from whyfor.model.memory import StoredObservation

_ALIKE = 0.6  # share of the words of both
_SHARED = 3  # words at least
_TYPES = frozenset({"discovery", "gotcha", "decision", "rule", "correction"})
_WORD = re.compile(r"[a-z_][\w']*", re.I)
_NOT = frozenset(
    "not no never none nothing neither nor cannot without isn't aren't wasn't weren't doesn't don't"
    " didn't can't couldn't won't wouldn't hasn't haven't hadn't shouldn't mustn't needn't".split()
)
# Each of these denies its neighbour.
_PAIRS = (
    "work:fail pass:fail enabled:disabled allowed:forbidden accepts:rejects"
    " true:false valid:invalid required:optional supported:unsupported safe:unsafe"
    " present:missing before:after slower:faster slow:fast synchronous:asynchronous"
)
_OPPOSITES = [tuple(pair.split(":")) for pair in _PAIRS.split()]
_STOP = frozenset(
    "the and are was were been being this that these those with for from into onto its it is be of"
    " to in on at as by or an a if when then than so do does did has have had will would should can"
    " could must may might now also just only because since due which who what there here we you"
    " they i still any all always use uses used using".split()
)
_SWAP = re.compile(
    r"\b(?:use|prefer) (?P<one>[\w./@-]+),? (?:not|instead of|rather than|over|never) "
    r"(?P<other>[\w./@-]*\w)",
    re.I,
)


class _Claim(NamedTuple):
    """A statement, without the words that deny it."""

    words: frozenset[str]
    denied: bool


def contradicts(newer: StoredObservation, older: StoredObservation) -> bool:
    """Whether the later of two notes of a project says the opposite of the earlier one. What a
    person said is contradicted by a person only, and what was recorded by nobody."""
    one, other = newer.observation, older.observation
    if one.state in ("refuted", "hypothesis") or other.state in ("refuted", "verified"):
        return False
    if other.pinned or not {one.type, other.type} <= _TYPES:
        return False
    if _is_persons(older) and not _is_persons(newer):
        return False
    said, before = one.narrative or one.title, other.narrative or other.title
    return _is_swapped(said, before) or _is_denied(_claim(said), _claim(before))


def _is_persons(note: StoredObservation) -> bool:
    return note.observation.by == "person" or note.observation.type in ("rule", "correction")


def _is_denied(one: _Claim, other: _Claim) -> bool:
    opposed = [pair for pair in _OPPOSITES if _are_opposed(pair, one.words, other.words)]
    if (one.denied == other.denied) == (len(opposed) % 2 == 0):
        return False
    paired = frozenset(stem_word(word) for pair in opposed for word in pair)
    mine, theirs = one.words - paired, other.words - paired
    shared = len(mine & theirs)
    return shared >= _SHARED and shared >= _ALIKE * len(mine | theirs)


def _are_opposed(pair: tuple[str, ...], one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether one text has the first word of a pair, and the other the second."""
    yes, no = (stem_word(word) for word in pair)
    forth = yes in one and no in other and no not in one and yes not in other
    back = no in one and yes in other and yes not in one and no not in other
    return forth or back


def _is_swapped(said: str, before: str) -> bool:
    """Whether one says `use A, not B` and the other `use B, not A`."""
    one, other = _SWAP.search(said), _SWAP.search(before)
    if one is None or other is None:
        return False
    chosen = (one["one"].lower(), one["other"].lower())
    return chosen == (other["other"].lower(), other["one"].lower())


@lru_cache(maxsize=2_000)
def _claim(text: str) -> _Claim:
    words: set[str] = set()
    denied = False
    for word in _WORD.findall(text.lower().replace("’", "'")):
        if word in _NOT:
            denied = not denied
            continue
        if word not in _STOP and len(word) > 2:
            words.add(stem_word(word))
    return _Claim(frozenset(words), denied)
