"""Samples of secrets, written as templates: what looks like a key is made when it is needed, and
none is in a file.

`{a32}` stands for 32 characters of the class `a`; the same template gives the same text every
time.
"""

from __future__ import annotations

import base64
import random
import re
import string

_CLASSES = {
    "a": string.ascii_lowercase + string.digits,
    "A": string.ascii_letters + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase,
    "L": string.ascii_letters,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
    "p": string.ascii_letters + string.digits + "!@#%^*_-",
    "B": string.ascii_uppercase + "234567",
    "k": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "e": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
SLOT = re.compile(r"\{([aAUlLhHdwbpBke])(\d+)\}|\{uuid\}|\{jwt\}")


def expand(template: str) -> str:
    """The sample with its slots filled; a slot never begins or ends with a separator, and has
    letters and digits."""
    chance = random.Random(template)

    def fill(found: re.Match[str]) -> str:
        if found.group() == "{uuid}":
            return "-".join(_drawn(chance, "h", size) for size in (8, 4, 4, 4, 12))
        if found.group() == "{jwt}":
            return _jwt(chance)
        return _drawn(chance, found[1], int(found[2]))

    return SLOT.sub(fill, template)


def _drawn(chance: random.Random, kind: str, size: int) -> str:
    letters = _CLASSES[kind]
    while True:
        text = "".join(chance.choice(letters) for _ in range(size))
        varied = (
            kind in "lLd"
            or size < 8
            or (any(c.isdigit() for c in text) and any(c.isalpha() for c in text))
        )
        if text[0].isalnum() and text[-1].isalnum() and varied:
            return text


def _jwt(chance: random.Random) -> str:
    parts = (
        b'{"alg":"HS256","typ":"JWT"}',
        b'{"sub":"%d","iat":%d}' % (chance.randrange(10**9), chance.randrange(10**9)),
    )
    signed = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts]
    return ".".join([*signed, _drawn(chance, "w", 43)])
