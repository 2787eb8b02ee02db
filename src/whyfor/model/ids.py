"""Identity of events and usage: a provider's id, hashed to 64 bits to keep indexes small."""

from __future__ import annotations

try:
    from _blake2 import blake2b  # hashlib would bring OpenSSL along: 3 ms of every start
except ImportError:
    from hashlib import blake2b


def fold(*parts: object) -> int:
    """Return a signed 64-bit hash of the parts; it fits the integers of SQLite and PostgreSQL."""
    text = "\x1f".join([part if isinstance(part, str) else str(part) for part in parts])
    # to name how errors are handled takes longer than to encode
    data = text.encode() if text.isascii() else text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def fold_bytes(offset: int, line: bytes) -> int:
    """Return the identity of a record without its own id: a hash of its offset and content."""
    return int.from_bytes(
        blake2b(b"%d\x1f" % offset + line, digest_size=8).digest(), "big", signed=True
    )
