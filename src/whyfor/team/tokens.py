"""Tokens: how they look, how they are kept, and whose they are.

A token is a prefix, 32 random bytes and a checksum, so that a mistyped or foreign one is refused
without asking the database, and scanners can recognise one that leaked. Only its hash is kept.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import threading
import time
import zlib
from collections.abc import Callable

from whyfor.model.accounts import Member

PREFIX = "wft_"
SESSION_PREFIX = "wfs_"  # a browser's, which is in its cookie only
LINK_PREFIX = "wfl_"  # an invitation's
CODE_PREFIX = "wfd_"  # a device's, while it waits to be let in
CACHE_SECONDS = 10.0
_CACHED_MAX = 10_000
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_BODY, _CHECK = 43, 6  # characters: 32 bytes, and a CRC32
_FORM = re.compile(rf"wf[tsld]_[0-9A-Za-z]{{{_BODY + _CHECK}}}")


def make_token(prefix: str = PREFIX) -> str:
    """Return a new token."""
    body = prefix + _base62(int.from_bytes(secrets.token_bytes(32)), _BODY)
    return body + _checksum(body)


def is_token(text: str, prefix: str = PREFIX) -> bool:
    """Return whether a text has the form of a token, and its checksum."""
    if not text.startswith(prefix) or not _FORM.fullmatch(text):
        return False
    return text[-_CHECK:] == _checksum(text[:-_CHECK])


def hash_token(token: str) -> bytes:
    """Return what is kept of a token. It is random, so that no slower hash is needed."""
    return hashlib.sha256(token.encode()).digest()


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECK)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


class TokenCache:
    """Whose tokens are, for at most ten seconds. `drop` forgets a person's at once."""

    def __init__(
        self,
        look_up: Callable[[bytes, int], Member | None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look_up = look_up
        self._now = now
        self._found: dict[bytes, tuple[float, Member]] = {}
        self._lock = threading.Lock()
        self._drops = 0

    def member(self, token: str) -> Member | None:
        """Return whose a token is; None if it is good for nothing (any more)."""
        digest = hash_token(token)
        now = self._now()
        known = self._found.get(digest)
        if known is not None and known[0] > now:
            return known[1]
        drops = self._drops
        member = self._look_up(digest, int(time.time() * 1000))
        with self._lock:
            if member is None:
                self._found.pop(digest, None)
            elif drops == self._drops:  # else it may have been revoked meanwhile
                if len(self._found) >= _CACHED_MAX:
                    self._found.clear()
                self._found[digest] = (now + CACHE_SECONDS, member)
        return member

    def drop(self, person: int | None = None) -> None:
        """Forget a person's tokens; all if no person is named."""
        with self._lock:
            self._drops += 1
            gone = [
                digest
                for digest, (_, member) in self._found.items()
                if person is None or member.person == person
            ]
            for digest in gone:
                del self._found[digest]
