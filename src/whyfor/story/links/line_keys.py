"""How lines are compared: white space aside, and by a short key instead of their text, which
keeps memory small."""

from __future__ import annotations

from collections.abc import Iterable

try:
    from _blake2 import blake2b  # hashlib would bring OpenSSL along
except ImportError:
    from hashlib import blake2b

WIDTH = 8  # bytes of a key


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
    return len(norm) >= 10 and sum(map(str.isalnum, norm)) >= 6
