"""Strings of one message that follow each other, where a secret may begin in one and end in the
next."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whyfor.privacy.findings import Finding

LISTED = 64  # strings of a list
SPLIT = 400  # bytes on either side of a string's end that are looked at together with the next
# between the texts of two blocks: the one ends, its braces, and the next begins
_BLOCKS = re.compile(
    rb"\"(?:\s?,\s?\"type\"\s?:\s?\"\w{0,12}text\")?\s?\}\s?,\s?\{\s?"
    rb"(?:\"type\"\s?:\s?\"\w{0,12}text\"\s?,\s?)?\"text\"\s?:\s?\""
)
_LIST = re.compile(rb"\[\s?\"(?:[^\"\\]++|\\.)*+\"\s?,\s?\"", re.DOTALL)
_ITEM = re.compile(rb"(?:[^\"\\]++|\\.)*+\"\s?,\s?\"", re.DOTALL)
_REST = re.compile(rb"(?:[^\"\\\n]++|\\[^\n])*+")
_COMMA = re.compile(rb"\"\s?,\s?\"\Z")


def joined_strings(data: bytes) -> Iterator[list[tuple[int, int]]]:
    """Yield the spans of strings that follow each other, two or more, and hold nothing else."""
    joints = {match.span() for match in _BLOCKS.finditer(data)}
    joints.update(_commas(data))
    pieces: list[tuple[int, int]] = []
    high = 0
    for start, end in sorted(joints):
        if start < high:
            continue  # inside what was taken for a string
        if pieces and start == high:
            low = pieces.pop()[0]
        else:
            if pieces:
                yield pieces
                pieces = []
            low = _string_start(data, start)
        rest = _REST.match(data, end, end + SPLIT)
        high = rest.end() if rest else end
        pieces += [(low, start), (end, high)]
    if pieces:
        yield pieces


def _string_start(data: bytes, stop: int) -> int:
    """Where the string begins that ends here, or SPLIT bytes before."""
    floor = max(0, stop - SPLIT)
    quote = data.rfind(b'"', floor, stop)
    while quote >= 0:
        back = quote
        while back > floor and data[back - 1] == 92:
            back -= 1
        if (quote - back) % 2 == 0:
            return quote + 1
        quote = data.rfind(b'"', floor, back)
    return floor


def _commas(data: bytes) -> Iterator[tuple[int, int]]:
    """Between the strings of a list of strings."""
    for first in _LIST.finditer(data):
        item: re.Match[bytes] | None = first
        for _ in range(LISTED):
            if item is None:
                break
            comma = _COMMA.search(data, max(item.start(), item.end() - 8), item.end())
            if comma is not None:
                yield comma.span()
            item = _ITEM.match(data, item.end())


def finding_parts(pieces: list[tuple[int, int]], item: Finding) -> Iterator[Finding]:
    """Where a finding in the joined pieces stands in the text they are of."""
    at = 0
    for start, stop in pieces:
        low, high = max(item.start, at), min(item.end, at + stop - start)
        if low < high:
            yield Finding(start + low - at, start + high - at, item.rule)
        at += stop - start
