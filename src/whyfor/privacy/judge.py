"""Whether a value beside a name that promises a secret is one: the closer the tie between the two,
the less the value itself must show."""

from __future__ import annotations

import re
from functools import lru_cache

from whyfor.privacy.shapes import (
    decode_base64,
    is_hex,
    is_password,
    is_plain,
    is_random,
    is_reference,
    is_slug,
    is_specific,
    is_spoken_password,
    is_stand_in,
    is_technical,
    surprise,
)

_DIGIT = re.compile(r"\d")
_SHORT_HEX = re.compile(r"[0-9a-f]{7,}(?:\.{2,3}[0-9a-f]{7,})?")
HASH = 32  # hex digits of the shortest key that is not the hash of something


@lru_cache(4096)
def is_assigned_secret(word: str, rule: str, strength: int, loose: bool) -> bool:
    """Return whether a word that is assigned to a name is a secret. Loose: what stands between the
    two need not be an assignment."""
    if not _may_be_secret(word, rule):
        return False
    if " " in word and (loose or strength == 1):
        return False
    if strength == 1:
        strict_password = rule == "password" and not loose
        return _is_surprising(word, 10 if strict_password else 16)
    return _is_loose_secret(word) if loose else _is_strict_secret(word, rule)


def _may_be_secret(word: str, rule: str) -> bool:
    """Return whether a word is long enough for a secret, and nothing else than a value."""
    if rule == "password":
        is_other = is_slug(word) and "/" in word
        is_short = len(word) < 6
    else:
        is_other = is_slug(word)
        is_short = len(word) < (6 if _DIGIT.search(word) else 12)
    return not (is_short or is_other or is_no_value(word))


def _is_loose_secret(word: str) -> bool:
    if is_hex(word):
        return len(word) >= 20
    return not word.isdigit() and is_specific(word)


def _is_strict_secret(word: str, rule: str) -> bool:
    if is_hex(word):
        return True
    if word.isdigit():
        return len(word) >= 14
    if is_random(word):
        return True
    thought_up = {"password": is_password, "secret": is_spoken_password}.get(rule)
    return thought_up is not None and thought_up(word)


def is_no_value(word: str) -> bool:
    """Return whether a word, or what it is the base64 of, stands for a value or is of another
    kind: a placeholder, a reference, a path, a term."""
    if is_stand_in(word) or is_plain(word) or is_technical(word):
        return True
    inner = decode_base64(word.encode()) if len(word) % 4 == 0 else None
    if inner is None:
        return False
    text = inner.decode("utf-8", "replace").strip()
    return is_stand_in(text) or is_reference(text) or is_plain(text)


def _is_surprising(word: str, least: int) -> bool:
    """Return whether a word of at least so many letters was drawn by chance and is no hash."""
    if _SHORT_HEX.fullmatch(word):
        least = 16
    if len(word) < least or surprise(word) < 5.0:
        return False
    return not any(map(is_hex, [word, *re.split(r"[-_.:/]", word)]))


@lru_cache(4096)
def is_among_words(word: str) -> bool:
    """Return whether a word among others in a quoted value is a secret."""
    if is_hex(word) or is_no_value(word):
        return False
    return is_random(word, 16, 5.0)


@lru_cache(4096)
def is_prose_secret(word: str, tight: bool) -> bool:
    """Return whether a word of a sentence near a name is a secret. Tight: the sentence says so."""
    if is_no_value(word):
        return False
    if is_hex(word) or _SHORT_HEX.fullmatch(word):
        return tight and len(word) >= HASH
    return is_specific(word)


@lru_cache(4096)
def is_said_password(word: str) -> bool:
    """Return whether a word that a sentence calls the password is one."""
    if is_no_value(word):
        return False
    return is_spoken_password(word)
