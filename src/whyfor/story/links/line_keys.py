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
_LONG = 10  # characters that a line must have to tell something
_LETTERS = 6  # or digits among them
_SIX_LETTERS = re.compile(rf"(?:[^\W_][\W_]*){{{_LETTERS}}}")
_NOT_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())
_ODD_BLANKS = b"\x1c\x1d\x1e\x1f"  # white space in a text, and not in bytes
_KEPT = 1 << 16
# keys by line: what one commit adds another removes, and a third adds again
_keyed: dict[bytes, tuple[bytes, bool]] = {}


def norm(line: str) -> str:
    return " ".join(line.split())


def key(norm: str) -> bytes:
    return blake2b(norm.encode("utf-8", "surrogatepass"), digest_size=WIDTH).digest()


def keys(lines: Iterable[str]) -> bytes:
    """The keys of the lines that are not blank, side by side."""
    return b"".join(key(text) for line in lines if (text := norm(line)))


def each(packed: bytes) -> list[int]:
    """Keys as numbers; the same on every machine that reads its own."""
    return memoryview(packed).cast("Q").tolist() if packed else []


def telling(norm: str) -> bool:
    """Long enough, and with enough letters in it, to mean something."""
    return len(norm) >= _LONG and _SIX_LETTERS.search(norm) is not None


class LineKeys(NamedTuple):
    """Lines that stand together: the key of each, 0 for a blank one, and whether it tells
    something."""

    numbers: list[int]
    telling: Sequence[int]

    @classmethod
    def of(cls, lines: Iterable[str]) -> LineKeys:
        found, flags = line_keys(line.encode("utf-8", "surrogatepass") for line in lines)
        return cls(each(b"".join(found)), flags)


def line_keys(lines: Iterable[bytes]) -> tuple[list[bytes], bytes]:
    """Return the key of each line, and a byte for each: 1 if it tells something."""
    if len(_keyed) > _KEPT:
        _keyed.clear()
    found: list[bytes] = []
    flags = bytearray()
    for line in lines:
        known = _keyed.get(line)
        if known is None:
            known = _keyed[line] = _key_of(line)
        found.append(known[0])
        flags.append(known[1])
    return found, bytes(flags)


def _key_of(line: bytes) -> tuple[bytes, bool]:
    if not line.isascii() or len(line.translate(None, _ODD_BLANKS)) < len(line):
        text = norm(_decoded(line))
        return (key(text), telling(text)) if text else (BLANK, False)
    packed = b" ".join(line.split())
    if not packed:
        return BLANK, False
    tells = len(packed) >= _LONG and len(packed.translate(None, _NOT_LETTERS)) >= _LETTERS
    return blake2b(packed, digest_size=WIDTH).digest(), tells


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace")
