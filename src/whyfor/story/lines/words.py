"""The words of a line, without what formatters put in and take away."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"\w+|[^\w\s]")
# Quotes, commas, brackets, line ends: a formatter sets them as it likes.
_SOFT = frozenset("\"'`,;()[]{}\\")


@lru_cache(maxsize=1 << 14)
def line_words(line: str) -> tuple[str, ...]:
    """Return the words and operators of a line."""
    return tuple(word for word in _TOKEN.findall(line) if word not in _SOFT)


def word_places(line: str) -> list[tuple[int, int]]:
    """Return where each of these words begins and ends."""
    found = _TOKEN.finditer(line)
    return [match.span() for match in found if match[0] not in _SOFT]


@lru_cache(maxsize=1 << 14)
def squeeze(line: str) -> str:
    """Return the characters of a line that a formatter leaves alone; equal for lines that differ
    in spacing only."""
    return "".join(line_words(line))
