"""How lines are compared: white space aside, and by a short key instead of their text, which
keeps memory small."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

try:
    from _blake2 import blake2b  # hashlib would bring OpenSSL along
except ImportError:
    from hashlib import blake2b

WIDTH = 8  # bytes of a key
BLANK = bytes(WIDTH)  # the key of a blank line
_SIX_LETTERS = re.compile(r"(?:[^\W_][\W_]*){6}")  # or digits


def norm(line: str) -> str:
    return " ".join(line.split())


def key(norm: str) -> bytes:
    return blake2b(norm.encode("utf-8", "surrogatepass"), digest_size=WIDTH).digest()


def keys(lines: Iterable[str]) -> bytes:
    """The keys of the lines that are not blank, side by side."""
    return b"".join(key(text) for line in lines if (text := norm(line)))


def each(packed: bytes) -> list[int]:
    """Keys as numbers; the same on every machine that reads its own."""
    return memoryview(packed).cast("Q").tolist()


def telling(norm: str) -> bool:
    """Long enough, and with enough letters in it, to mean something."""
    return len(norm) >= 10 and _SIX_LETTERS.search(norm) is not None


class LineKeys(NamedTuple):
    """Lines that stand together: the key of each, 0 for a blank one, and whether it tells
    something."""

    numbers: list[int]
    telling: Sequence[int]

    @classmethod
    def of(cls, lines: Iterable[str]) -> LineKeys:
        found, flags = line_keys(lines)
        return cls(each(b"".join(found)), flags)


def line_keys(lines: Iterable[str]) -> tuple[list[bytes], bytes]:
    """Return the key of each line, and a byte for each: 1 if it tells something."""
    found: list[bytes] = []
    flags = bytearray()
    for line in lines:
        text = norm(line)
        found.append(key(text) if text else BLANK)
        flags.append(telling(text))
    return found, bytes(flags)
