"""Where strings stand in JSON text, by byte: also in text that is broken, or no JSON at all.

Whether a text is JSON, and to which message of it a string belongs, is for `hook/private.py` to
say: hooks can import nothing of ours, so that its scanner stands there, and ingest uses the same.
A test holds both scanners together.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

Span = tuple[int, int]  # first and behind the last

# A string with its quotes, or without an end; then, for a key, the colon. It never goes back: a
# string may be 100 MB long, or never end.
_LITERAL = re.compile(rb'"((?:[^"\\]++|\\.)*+)("|\Z)(\s*+:)?', re.DOTALL)
# an escape, or what needs none
_PIECE = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]+", re.DOTALL)
_NESTED = 3  # how deep JSON is looked for inside the strings of JSON
_decode_string = msgspec.json.Decoder(str).decode


# -- any text ------------------------------------------------------------------------------------


class StringLiteral(NamedTuple):
    """A string as it is written: the bytes between its quotes."""

    start: int
    stop: int
    key: bytes  # the last key before it, also of the list it stands in; of a key the key itself
    is_key: bool
    closed: bool  # false: the text ends before the string does


def literals(data: bytes, low: int = 0, high: int = sys.maxsize) -> Iterator[StringLiteral]:
    """Yield the strings between two places of a text, in order."""
    key = b""
    for match in _LITERAL.finditer(data, low, high):
        start, stop = match.span(1)
        is_key = match[3] is not None
        if is_key:
            key = match[1]
        yield StringLiteral(start, stop, key, is_key, match[2] == b'"')


def word_spans(data: bytes, span: Span, kept: frozenset[bytes]) -> Iterator[Span]:
    """Yield the strings of a JSON value less its keys and the values of the kept keys: what is
    left is its shape."""
    for found in literals(data, *span):
        if found.start < found.stop and not found.is_key and found.key not in kept:
            yield found.start, found.stop


def members(data: bytes) -> Iterator[tuple[bytes, Span]]:
    """Yield the keys of the outermost object, each with the stretch that its value stands in: up
    to the next of these keys, or to the end."""
    depth = at = 0
    found: StringLiteral | None = None
    for literal in literals(data):
        between = data[at : literal.start]
        depth += _opened(between)
        at = literal.stop
        if depth == 1 and literal.is_key:
            if found is not None:
                yield found.key, (found.stop + 1, literal.start - 1)
            found = literal
    if found is not None:
        yield found.key, (found.stop + 1, len(data))


def _opened(between: bytes) -> int:
    """How many more brackets are opened than closed between two strings."""
    opened = between.count(b"{") + between.count(b"[")
    return opened - between.count(b"}") - between.count(b"]")


def strings(data: bytes, depth: int = 1) -> Iterator[tuple[Span, str]]:
    """Yield every string of lines of JSON, keys too, that is not empty: its place and its text.

    Of one that is JSON itself the strings in it: agents keep whole records so, and those change.
    A string without an end on its line is left out.
    """
    for low, high in line_spans(data):
        for match in _LITERAL.finditer(data, low, high):
            escaped = match[1]
            if not escaped or not match[2]:
                continue
            text = unescape(escaped)
            if depth < _NESTED and text[:1] in ("{", "[") and _is_json(text):
                yield from _nested_strings(escaped, match.start(1), depth + 1)
            else:
                yield match.span(1), text


def line_spans(data: bytes) -> Iterator[Span]:
    """Yield where the lines of a text stand, without their ends."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        if end < 0:
            end = len(data)
        yield at, end
        at = end + 1


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(encode_text(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _nested_strings(escaped: bytes, start: int, depth: int) -> Iterator[tuple[Span, str]]:
    """The strings of JSON that stands in a string, by their places there."""
    plain: list[bytes] = []
    places: list[Span] = []  # of each piece: where it is in the plain text, and in the data
    at = 0
    for piece in _PIECE.finditer(escaped):
        said = encode_text(unescape(piece[0]))
        places.append((at, start + piece.start()))
        plain.append(said)
        at += len(said)
    places.append((at, start + len(escaped)))
    for (first, last), text in strings(b"".join(plain), depth):
        yield (_place_in_data(places, first), _place_in_data(places, last)), text


def _place_in_data(places: list[Span], at: int) -> int:
    said, written = places[bisect_right(places, (at, sys.maxsize)) - 1]
    return written + at - said  # past the beginning only of pieces that are written as they are


def unescape(escaped: bytes) -> str:
    """Return what the inside of a JSON string says."""
    if b"\\" in escaped:
        try:
            return _decode_string(b'"%s"' % escaped)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # half a character, or no JSON at all: what it looks like is what it says
    return escaped.decode("utf-8", "surrogateescape")


def encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
