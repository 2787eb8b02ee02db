"""Identity of events and usage: a provider's id, hashed to 64 bits to keep indexes small; and
what is printed of a session's id."""

from __future__ import annotations

import re

try:
    from _blake2 import blake2b  # hashlib would bring OpenSSL along: 3 ms of every start
except ImportError:
    from hashlib import blake2b


_WORD = re.compile(r"[A-Za-z]+_")


def short_id(ident: str, least: int = 8) -> str:
    """Return the beginning of a session's id. A word that every id of an agent begins with
    (session_, ses_) tells nothing, so it comes in addition."""
    word = _WORD.match(ident)
    return ident[: least + (word.end() if word else 0)]


def fold(*parts: object) -> int:
    """Return a signed 64-bit hash of the parts; it fits the integers of SQLite and PostgreSQL."""
    text = "\x1f".join(map(str, parts))
    # to name how errors are handled takes longer than to encode
    data = text.encode() if text.isascii() else text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def fold_bytes(offset: int, line: bytes) -> int:
    """Return the identity of a record without its own id: a hash of its offset and content."""
    return int.from_bytes(
        blake2b(b"%d\x1f" % offset + line, digest_size=8).digest(), "big", signed=True
    )
