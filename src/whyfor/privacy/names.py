"""The names that promise a secret, as `DB_PASSWORD` does: how much each one promises."""

from __future__ import annotations

import re
from typing import NamedTuple

from whyfor.privacy.rules import AssignmentRule, NameParts
from whyfor.privacy.shapes import surprise
from whyfor.privacy.values import BARE, STOP

NAME = 48  # bytes a name goes on to either side of its word
_NAME_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_NEXT_PARAMETER = re.compile(rb"[#&]")
_PHRASE_CHARS = _NAME_CHARS + b" '"  # a tab begins the next cell
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_GLUED_KEY = ("api", "access", "secret", "private", "auth", "my", "account", "license")
_SURE_KEY = frozenset(("api", "secret", "access", "private"))
_ACCOUNT = re.compile(
    rb"(?i)(?:(?<![a-z])|(?<=\\[nrt]))(?:user(?:name)?|login|account|host)(?![a-z])"
)
_MADE_UP = frozenset(("test", "example", "dummy", "fake", "mock", "sample", "fixture"))
_RESOURCE = re.compile(rb":\d{12}:$")  # the name of something at AWS
# the last part of longer words, as in Datenbankpasswort
_COMPOUNDS = frozenset((b"passwort", b"kennwort", b"wachtwoord", b"schluessel"))
ESCAPED_LETTERS = (b"n", b"r", b"t")


class SecretName(NamedTuple):
    """A name that promises a secret, where it stands in a text."""

    data: bytes
    start: int  # of the word in it that promises
    after: int  # where the name ends
    low: int  # nothing outside of low and high is read
    high: int
    left: bytes  # its part before the word
    word: bytes  # in small letters
    rule: str
    strength: int  # 2: the name of a secret; 1: it may be one
    about: frozenset[str]  # words that make it something about a secret: `token count`
    foreign: bool = False  # a word of another language than English

    @property
    def begin(self) -> int:
        return self.start - len(self.left)


class NameReader:
    """Reads the names around the words of one rule."""

    def __init__(self, rule: AssignmentRule, words: NameParts) -> None:
        self.rule = rule.id
        self.foreign = rule.foreign
        self.words = words

    def read(self, data: bytes, start: int, end: int, low: int, high: int) -> SecretName | None:
        """Return the whole name this word is in, or None if it promises no secret."""
        lead = data[max(low, start - NAME) : start]
        left = _name_end(lead)
        rest = data[end : min(high, end + NAME)]
        right = rest[: len(rest) - len(rest.lstrip(_NAME_CHARS))]
        if data[end - 1] > 127 and right[:1] not in (b"_", b"-"):
            right = b""  # a script without spaces: what follows is the value
        before = left or _phrase_end(lead[-24:])
        strength = self._strength(before, data[start:end], right)
        if not strength or _RESOURCE.search(lead):
            return None
        if self.foreign and not _stands_alone(data, start, end):
            return None
        if strength == 1 and self._is_surely_secret(data, left, lead, end + len(right)):
            strength = 2
        after = end + len(right)
        begin = start - len(left)
        if data[max(low, begin - 1) : begin] in (b"?", b"&"):
            high = _parameter_end(data, after, high)
        word = data[start:end].lower()
        about, foreign = self.words.about, self.foreign
        return SecretName(
            data, start, after, low, high, left, word, self.rule, strength, about, foreign
        )

    def _strength(self, left: bytes, word: bytes, right: bytes) -> int:
        """Return 2 for the name of a secret, 1 if it may be one, 0 if it only holds the word."""
        next_letter = right[:1]
        goes_on = next_letter.isalpha() and next_letter not in b"sS"
        if goes_on and next_letter.isupper() == word[-1:].isupper():
            return 0
        before, after = _words_in(left), _words_in(right)
        if not self.words.about.isdisjoint(after) or not self.words.open.isdisjoint(before[-2:]):
            return 0
        glued = left[-1:].isalpha() and left[-1:].isupper() == word[:1].isupper()
        if self.foreign:
            return 2
        if self.rule == "api-key":
            return self._key_strength(left, before, glued)
        if self.rule == "auth":
            return _auth_strength(left, word, before, glued)
        if self.rule == "password" and len(word) <= len(b"pass"):
            return self._pass_strength(left, word, before, glued)
        return 2

    def _is_surely_secret(self, data: bytes, left: bytes, lead: bytes, after: int) -> bool:
        """Return whether a name that may be one of a secret is: beside that of a user, or as a
        variable of the environment."""
        if self.rule == "password":
            return _ACCOUNT.search(lead) is not None
        if self.rule != "api-key" or not left.isupper() or not left.endswith(b"_"):
            return False
        return data[after : after + 1] == b"=" and data[after + 1 : after + 2] not in (b" ", b"=")

    def _key_strength(self, left: bytes, before: list[str], glued: bool) -> int:
        owner = before[-1] if before else ""
        if left.endswith(b"."):
            return 0
        if glued:
            return 2 if owner.endswith(_GLUED_KEY) else 0
        if not _MADE_UP.isdisjoint(before):
            return 1
        sure = owner in self.words.key_of or not _SURE_KEY.isdisjoint(before)
        return 2 if sure else 1

    def _pass_strength(self, left: bytes, word: bytes, before: list[str], glued: bool) -> int:
        if glued or (len(left) >= 8 and surprise(left[-24:].decode("latin-1")) > 5.4):
            return 0  # two letters of a word, or of something drawn by chance
        if word.lower() != b"pass":
            return 2
        joined = left[-1:].isalpha() or left[-1:] in (b"_", b"-", b".")
        owned = bool(before) and before[-1] in self.words.pass_of
        return 2 if joined or owned else 1


def _name_end(lead: bytes) -> bytes:
    """Return the part of a name that a text ends with."""
    left = lead[len(lead.rstrip(_NAME_CHARS)) :]
    if left[:1] in ESCAPED_LETTERS and lead[-len(left) - 1 : -len(left)] == b"\\":
        return left[1:]
    return left


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """Return whether a word of another language stands by itself, or ends a longer one; in the
    letters of an image it would mean nothing."""
    before, after = data[start - 1 : start] if start else b"", data[end : end + 1]
    if after.isalnum() and after not in b"sS" and data[end - 1] < 128:
        return False
    if before.isalpha() and data[start:end].lower() in _COMPOUNDS:
        return True
    if before in ESCAPED_LETTERS and data[start - 2 : start - 1] == b"\\":
        return True
    return data[start] > 127 or not (before.isalnum() or before in (b"+", b"/"))


def _phrase_end(lead: bytes) -> bytes:
    """Return the words of the same phrase that a text ends with."""
    words = lead[len(lead.rstrip(_PHRASE_CHARS)) :]
    if words[:1] in ESCAPED_LETTERS and lead[-len(words) - 1 : -len(words)] == b"\\":
        return words[1:]
    return words


def _parameter_end(data: bytes, after: int, high: int) -> int:
    """Return where a parameter of an address ends, or `high` if nothing follows it."""
    found = _NEXT_PARAMETER.search(data, after, min(high, after + BARE))
    if found is None or STOP.search(data, after, found.start()):
        return high
    return found.start()


def _words_in(name: bytes) -> list[str]:
    if not name:
        return []
    return [word.lower() for word in _WORDS.findall(name.decode("latin-1"))]


def _auth_strength(left: bytes, word: bytes, before: list[str], glued: bool) -> int:
    if glued and not (before and before[-1].endswith(("api", "basic"))):
        return 0
    return 2 if word.lower() == b"authorization" or left == b"_" else 1
