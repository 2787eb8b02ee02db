"""Prose cut into sentences, each with its place in the text. Code, tables, quoted blocks and
pasted logs are not prose."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

PROSE_MAX = 20_000  # characters of one text that are looked at, half from each end
SENTENCE_MAX = 400
_FENCES = ("```", "~~~")
_SIGNS = "|>-=*_$%#a"  # that what is not prose begins with
_NOT_PROSE = re.compile(r"^\s*(?:\||>|[-=*_]{3,}\s*$|\d+[→|:]|[$%#]\s\S+$|\s*at \S+\()")
_MARKER = re.compile(r"^\s*(?:#{1,6}\s+|[-*+•]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)")
_MARKERS = "#-*+•"
_EMPHASIS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__")
_STOP = re.compile(r"[.!?…]+[\"')\]*`]*(?=\s+[\"'(*`]*[^\W\d_a-z])|[。！？]")
_ABBREVIATION = 8  # characters of the longest, with its full stop and what is before it
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|Mr|Dr|No)|\b[A-Z])\.$")


class Sentence(msgspec.Struct, frozen=True):
    """One sentence or heading, and where it stands in its text."""

    text: str
    start: int
    end: int
    heading: bool = False
    item: bool = False  # of a list


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text, in order; of a very long one those of both ends."""
    if len(text) <= PROSE_MAX:
        yield from _of_lines(text, 0, len(text))
        return
    half = PROSE_MAX // 2
    yield from _of_lines(text, 0, half)
    yield from _of_lines(text, len(text) - half, len(text))


def without_emphasis(text: str) -> str:
    """Return a sentence without Markdown's emphasis, on one line."""
    if "**" in text or "__" in text:
        text = _EMPHASIS.sub("", text)
    return " ".join(text.split())


def _of_lines(text: str, low: int, high: int) -> Iterator[Sentence]:
    fenced = False
    start = low
    while start < high:
        stop = text.find("\n", start, high)
        stop = high if stop < 0 else stop
        line = text[start:stop]
        words = line.lstrip()
        if words.startswith(_FENCES):
            fenced = not fenced
        elif words and not fenced and not (_is_sign(words, _SIGNS) and _NOT_PROSE.match(line)):
            yield from _of_line(text, start, stop, len(line) - len(words))
        start = stop + 1


def _is_sign(words: str, signs: str) -> bool:
    """Whether a line begins with a number or one of these signs: most lines do not, and need not
    be looked at more closely."""
    return words[0] in signs or words[0].isdecimal()


def _of_line(text: str, start: int, stop: int, indent: int) -> Iterator[Sentence]:
    heading = item = False
    if _is_sign(text[start + indent], _MARKERS):
        marker = _MARKER.match(text[start:stop])
        if marker:
            heading = "#" in marker[0]
            item = not heading
            start += marker.end()
    begin = start
    for match in _STOP.finditer(text, start, stop):
        end = match.end()
        if _ABBREVIATED.search(text, max(begin, end - _ABBREVIATION), end):
            continue
        found = _sentence(text, begin, end, heading, item)
        if found:
            yield found
        begin = end
    found = _sentence(text, begin, stop, heading, item)
    if found:
        yield found


def _sentence(text: str, start: int, end: int, heading: bool, item: bool) -> Sentence | None:
    whole = text[start:end]
    start += len(whole) - len(whole.lstrip())
    end -= len(whole) - len(whole.rstrip())
    if start < end and end - start <= SENTENCE_MAX:
        return Sentence(without_emphasis(text[start:end]), start, end, heading, item)
    return None
