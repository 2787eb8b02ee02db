"""The words of a line, without what formatters put in and take away."""

from __future__ import annotations

import re
from functools import lru_cache

# Quotes, commas, brackets, line ends: a formatter sets them as it likes.
_SOFT = re.escape("\"'`,;()[]{}\\")
_TOKEN = re.compile(rf"\w+|[^\w\s{_SOFT}]")
_LOOSE = re.compile(rf"[\s{_SOFT}]+")


@lru_cache(maxsize=1 << 14)
def line_words(line: str) -> tuple[str, ...]:
    """Return the words and operators of a line."""
    return tuple(_TOKEN.findall(line))


def word_places(line: str) -> list[tuple[int, int]]:
    """Return where each of these words begins and ends."""
    return [match.span() for match in _TOKEN.finditer(line)]


@lru_cache(maxsize=1 << 14)
def squeeze(line: str) -> str:
    """Return the characters of a line that a formatter leaves alone; equal for lines that differ
    in spacing only."""
    return _LOOSE.sub("", line)
