"""What a value must be beyond matching its rule's pattern: the checks a rule can name."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

from whyfor.privacy.judge import is_no_value, is_prose_secret, is_said_password
from whyfor.privacy.shapes import (
    decode_base64,
    is_hex,
    is_monotonous,
    is_random,
    is_reference,
    is_slug,
    is_stand_in,
)

SIGNATURE = 20  # characters of the shortest one; a shorter one was made up
_PERCENT = re.compile(r"%[2-7][0-9A-Fa-f]")
_DEFAULTS = frozenset(
    "password passwd pass secret token user username root admin guest test postgres mysql redis "
    "mongo rabbitmq example "
    "minioadmin elastic changeme x-oauth-basic x-access-token oauth2 git none null true "
    "false pwd yyy xxx".split()
)


def _varied(word: str) -> bool:
    return not is_monotonous(word) and not re.search(
        r"(?i)example|x{5}|\*{3}|\.{3}|#{4}|<|\$\{", word
    )


def _random(word: str) -> bool:
    if is_no_value(word) or is_slug(word):
        return False
    return is_random(word, 12) or is_hex(word)


def _credential(word: str) -> bool:
    """A password, or `user:password`: anything but what people write in its place."""
    word = word.strip("\\\"'`")
    if "%" in word:
        word = _PERCENT.sub(lambda code: unquote(code[0]), word)
    user, colon, secret = word.partition(":")
    secret = (secret or user) if colon else word
    secret = secret.strip("\\\"'`{}")
    if secret.lower() in _DEFAULTS or (secret.lower() == user.lower() and colon and secret != user):
        return False
    return (
        not is_stand_in(word)
        and not is_stand_in(secret)
        and not is_reference(secret)
        and not re.search(r"[\[$({]", word.replace("$1", "")[:1])
        and not re.search(r"\$\(|\$\{|\{\{|\$[A-Za-z_]|\[[A-Z]+\]|\$\d:", word)
    )


def _password(word: str) -> bool:
    """A password that stands among words."""
    return is_said_password(word) or is_prose_secret(word, tight=False)


def _basic(word: str) -> bool:
    inner = decode_base64(word.encode())
    return inner is not None and b":" in inner and _credential(inner.decode("latin-1"))


def _jwt(word: str) -> bool:
    head, _, signed = word.partition(".")
    signature = signed.partition(".")[2]
    if signature and len(signature) < SIGNATURE:
        return False
    first = decode_base64(head.encode()) or b""
    return first.lstrip()[:1] == b"{" and (b'"alg"' in first or b'"typ"' in first)


def _luhn(word: str) -> bool:
    digits = [int(c) for c in word if c.isdigit()]
    doubled = [d if i % 2 == 0 else d * 2 - 9 * (d > 4) for i, d in enumerate(reversed(digits))]
    return len(digits) >= 13 and len(set(digits)) > 2 and sum(doubled) % 10 == 0


def _iban(word: str) -> bool:
    account = word.replace(" ", "").upper()
    return int("".join(str(int(c, 36)) for c in account[4:] + account[:4])) % 97 == 1


VALUE_CHECKS: dict[str, Callable[[str], bool]] = {
    "varied": _varied,
    "random": _random,
    "credential": _credential,
    "password": _password,
    "basic": _basic,
    "jwt": _jwt,
    "luhn": _luhn,
    "iban": _iban,
}
