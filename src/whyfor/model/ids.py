"""Identity of events and usage: a provider's id, folded to 64 bits so that an index stays small."""

from __future__ import annotations

try:
    from _blake2 import blake2b  # hashlib would bring OpenSSL along: 3 ms of every start
except ImportError:
    from hashlib import blake2b


def fold(*parts: object) -> int:
    """A signed 64-bit digest of the parts: fits SQLite's and PostgreSQL's integer."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


def fold_bytes(offset: int, line: bytes) -> int:
    """Identity of a record without an id of its own: where it stands and what it says."""
    return int.from_bytes(
        blake2b(b"%d\x1f" % offset + line, digest_size=8).digest(), "big", signed=True
    )
