"""Rules as data: what the TOML files beside this say, and what a person adds in the
configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from whyfor.model.errors import BadInput

CHECKS = ("varied", "random", "credential", "password", "basic", "jwt", "luhn", "iban")
_FILES = ("providers.toml", "formats.toml")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A secret that has a form of its own."""

    id: str
    title: str
    anchors: list[str]
    """Lower case; every match contains one. The pattern is tried only where an anchor stands."""
    pattern: str
    """Of the secret, or of more with the secret in the group `secret`."""
    before: int = 0
    """How many bytes before its anchor a match may begin."""
    after: int = 600
    """How many bytes after the anchor's beginning it may end."""
    needs: str = ""
    """What must stand in that stretch after the anchor; for patterns that are slow to try."""
    check: str = "varied"
    """What the value must be beyond matching: one of CHECKS, or `` for nothing."""
    edges: bool = True
    """No letter, digit or dash right before the match, no letter or digit right after."""
    near: bool = False
    """The anchors name the issuer, the pattern matches the value; an assignment joins them."""
    replace: str = ""
    """What is written in its place, where that is not the rule's id in brackets."""
    match: list[str] = []
    ignore: list[str] = []


class AssignmentRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Secrets that have no form: known by the name of what they are assigned to. One kind of
    name."""

    id: str
    title: str
    words: list[str]
    foreign: bool = False
    """Words of other languages than English, in the capitals they are written with."""
    match: list[str] = []
    ignore: list[str] = []


class NameParts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands beside the word in a name, and changes what it means."""

    about: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    key_of: frozenset[str] = frozenset()
    pass_of: frozenset[str] = frozenset()


class Rules(msgspec.Struct, frozen=True):
    rules: list[Rule]
    names: list[AssignmentRule]
    words: NameParts
    decoys: list[str]  # words that hold one of the names' words and mean something else
    allow: list[re.Pattern[bytes]] = []  # what a person says is no secret


class _File(msgspec.Struct, forbid_unknown_fields=True):
    rule: list[Rule] = []
    names: list[AssignmentRule] = []
    words: NameParts = NameParts()
    decoys: list[str] = []


@cache
def _shipped(name: str) -> _File:
    import tomllib  # here: who only checks the settings does not need what is shipped

    text = (Path(__file__).with_name("rules") / name).read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _File)


def load_rules(
    *, personal: bool = False, own: Iterable[Rule] = (), allow: Iterable[str] = ()
) -> Rules:
    """Return everything shipped, personal data if asked for, and a person's own rules."""
    words = _shipped("names.toml").words
    found = Rules([], [], words, [], [allowed(pattern) for pattern in allow])
    for name in (*_FILES, "names.toml", *(["personal.toml"] if personal else [])):
        file = _shipped(name)
        found.rules.extend(file.rule)
        found.names.extend(file.names)
        found.decoys.extend(file.decoys)
    for rule in own:
        compiled(rule)
        found.rules.append(rule)
    return found


# A letter of an escape such as \n, or a hex digit of one such as %3D, is no part of the word that
# follows; nor is the sign at the beginning of a diff's line.
_LEFT = rb"(?:(?<![A-Za-z0-9_+\-])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=^[+\-])|(?<=\\n[+\-]))"
_RIGHT = rb"(?![A-Za-z0-9])"


# Between an issuer's name and a value: the rest of the name, what assigns it, quotes. In prose, a
# word for what it is.
_NAME = rb"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z])|(?<=\\[nrtbf]))"
_ABOUT = (  # a name that says the value is no secret
    rb"(?![\w.\- "
    rb"\t]{0,40}(?:(?i:hash|commit|digest|checksum|revision|integrity|version|etag|fingerprint"
    rb"|(?:project|service|deploy|deployment|environment|message|event|request|trace|span|session|build|job|run|order|issue"
    rb"|guild|channel|server|user|account|team|org|workspace|page|board|task|node)[_\- "
    rb"]?ids?(?![a-z]))"
    rb"|sha\d|SHA|md5|MD5))"
)
_QUOTE = rb"(?:\\*[\"'`])"
_GAP = rb"(?:[ \t]|\\+[nrt]|\r?\n[+\-> ]?(?:[ \t]{0,8}\d{1,6}(?:\xe2\x86\x92|\\+u2192|[:|\t]))?)"
_ASSIGNS = (
    rb"[\w.\- \t]{0,40}(?:%(quote)b|[\])]){0,3}[ \t]{0,8}"
    rb"(?:=>|->|:{0,3}=|[?.+|]{1,2}=|={2,3}|\|\||[:,|>(]"
    rb"|[,;]?%(gap)b{1,12}%(quote)b?value%(quote)b?[ \t]?[:=])"
) % {b"quote": _QUOTE, b"gap": _GAP}
_SAYS = (
    rb"[\w.\- \t]{0,30}(?i:key|token|secret|password|credential|id)s?"
    rb"(?:[ \t]+(?i:is|was|of|to|as|for|the|in|prod|value)){0,3}:?(?=[ \t\"'`])"
)
_LEAD = rb"%b{0,12}(?:[rbuf](?=%b))?%b?(?:(?i:bearer|token|basic|bot)[ \t])?" % (
    _GAP,
    _QUOTE,
    _QUOTE,
)
_BETWEEN = rb"(?:" + _ASSIGNS + rb"|" + _SAYS + rb")" + _LEAD
_WHOLE = rb"(?![A-Za-z0-9]|[_\-/.+=][A-Za-z0-9])"


def compiled(rule: Rule) -> re.Pattern[bytes]:
    if rule.check and rule.check not in CHECKS:
        raise BadInput(
            f"rule {rule.id}: no such check: {rule.check}", f"Checks: {', '.join(CHECKS)}."
        )
    if not rule.anchors or any(not anchor or anchor != anchor.lower() for anchor in rule.anchors):
        raise BadInput(
            f"rule {rule.id}: anchors must be given, in small letters", "See: docs/redact.md"
        )
    try:
        raw = rule.pattern.encode()
        re.compile(raw)  # by itself, so that it cannot lean on what is put around it
        if rule.near:
            names = b"|".join(re.escape(anchor.encode()) for anchor in rule.anchors)
            raw = (
                _NAME
                + rb"(?i:"
                + names
                + rb")"
                + _ABOUT
                + _BETWEEN
                + rb"(?P<secret>"
                + raw
                + rb")"
                + _WHOLE
            )
            return re.compile(raw, re.MULTILINE)
        return re.compile(
            _LEFT + rb"(?:" + raw + rb")" + _RIGHT if rule.edges else raw, re.MULTILINE
        )
    except re.error as error:
        raise BadInput(
            f"rule {rule.id}: its pattern is not right: {error}", "See: docs/redact.md"
        ) from None


def allowed(pattern: str) -> re.Pattern[bytes]:
    """Return the pattern of what a person says is no secret; raises BadInput."""
    try:
        return re.compile(pattern.encode())
    except re.error as error:
        raise BadInput(
            f"allow: {pattern!r} is not a pattern: {error}", "See: docs/redact.md"
        ) from None


def as_rule(given: dict[str, Any]) -> Rule:
    """A rule as config.toml has it."""
    try:
        return msgspec.convert(given, Rule)
    except msgspec.ValidationError as error:
        raise BadInput(f"rule {given.get('id', '?')}: {error}", "See: docs/redact.md") from None
