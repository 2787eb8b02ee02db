"""A private key whose lines do not stand together: `cat key.pem` streamed, or a file read line
by line.

Each line by itself is base64 like any other. It is taken for a key's where it is as long as the
lines of keys are, and comes within a few records of one that began a key and did not end it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whyfor.privacy.shapes import is_hex

RULE = "private-key"
FOLLOWING = 40  # records without a line of the key after which it is given up
PUBLIC = 16 << 10  # bytes of a public key
LAST = 4  # records after one of its lines in which its last line may come
_LENGTHS = frozenset((64, 70, 72, 76))  # PEM, OpenSSH, and what other programs write
_PARTS = re.compile(
    rb"(?P<begin>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    rb"|(?P<end>-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    rb"|(?:(?<![^\s\"'`>|:,])|(?<=\\[nrt])|(?<=\xe2\x86\x92)|(?<=u2192))"
    rb"(?P<line>[A-Za-z0-9+/]{4,76}={0,2})(?=[\s\"'`\\,<]|\Z)"
)
BEGINS = b"PRIVATE KEY"


class SpreadKey:
    """Follows a key from record to record."""

    def __init__(self) -> None:
        self._left = 0  # records in which a line of the key may still come
        self._last = 0  # the same of its last line, which is shorter

    @property
    def open(self) -> bool:
        return self._left > 0

    def lines(self, record: bytes, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Where lines of the key stand in the next record, which is this range of the data."""
        if not self.open and record.find(BEGINS, low, high) < 0:
            return
        self._left -= self.open
        self._last -= self._last > 0
        for match in _PARTS.finditer(record, low, high):
            if match.lastgroup == "begin":
                self._left, self._last = FOLLOWING, 0
            elif match.lastgroup == "end":
                self._left = self._last = 0
            elif self.open and self._is_line(match["line"].decode("ascii")):
                self._left, self._last = FOLLOWING, LAST
                yield match.span("line")

    def _is_line(self, word: str) -> bool:
        if len(word) in _LENGTHS:
            return _is_mixed(word) and not is_hex(word)
        if not self._last or len(word) % 4:
            return False
        return word.endswith("=") or (len(word) >= 16 and _is_mixed(word))


def in_public_key(data: bytes, at: int) -> bool:
    """Return whether a line belongs to a public key, whose first lines its private key repeats."""
    begins = data.rfind(b"-----BEGIN ", max(0, at - PUBLIC), at)
    return begins >= 0 and data.find(b"PUBLIC KEY", begins, begins + 40) >= 0


def _is_mixed(word: str) -> bool:
    return (
        any(map(str.isupper, word)) and any(map(str.islower, word)) and any(map(str.isdigit, word))
    )
