"""A name and the value it is assigned: in code, JSON, YAML, XML and flags."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whyfor.privacy.judge import is_among_words, is_assigned_secret
from whyfor.privacy.names import SecretName
from whyfor.privacy.values import (
    INNER_BREAK,
    JUDGED,
    MORE,
    Span,
    closing_quote,
    extended,
    judged_text,
    trimmed,
    value_span,
)

# of a diff's or a numbered line
_PREFIX = rb"[ \t]*(?:[+\-> ]|\d{1,6}(?:\xe2\x86\x92|\\+u2192|[:|\t]| {1,4}))?[ \t]*"
_BREAK = rb"(?:\r?\n|(?:\\+r)?\\+n)" + _PREFIX
_SCHEME = rb"(?:(?:[Bb]earer|[Bb]asic|[Tt]oken|[Aa]pi[Kk]ey|[Dd]igest|GenieKey|SSWS|Bot)[ \t]+)?"
_ASSIGNED = re.compile(
    rb"(?:\\*[\"'`\])*]){0,5}"
    rb"(?:[ \t]*:?[ \t]*(?:&?(?:'static )?str|string|String|SecretStr|\[\]byte|text|char \*)\b"
    rb"(?:[ \t]*\|[ \t]*None)?(?=[ \t]*=))?"  # a type
    rb"[ \t]{0,40}"
    rb"(?P<op>=>|->|={1,3}|:{1,3}=|[?.+|]{1,2}=|!={1,2}|:|\xef\xbc[\x9a\x9d]|,|>|\||\((?=\\*[\"'])|(?:</?\w[^<>]{0,60}>[ \t]*){1,5})"
    rb"(?:[ \t]|\\+t|" + _BREAK + rb"){0,6}?"
    rb"(?:[|>][+-]?[ \t]*"
    + _BREAK
    + rb"|\((?:[ \t]|"
    + _BREAK
    + rb"){0,3}(?=\\*[\"'`])|</?\w[^<>]{0,60}>){0,4}"
    rb"(?P<made>(?:new[ \t]+)?[A-Za-z_][\w.:<>]{0,40}\([ \t]?(?=[rbuf]{0,2}\\*[\"'`]))?"
    rb"(?:[rbufRBUF]{0,2}(?=\\*[\"'`]))?(?P<q>\\*[\"'`])?" + _SCHEME + rb"(?=[^\s\"'`<>\\=])"
)
_NAMED = re.compile(  # name: THE_NAME, value: …; variable "the_name" { default = … }
    rb"(?:\\*[\"'`]){0,2}(?:[ \t]*\{(?:"
    + _BREAK
    + rb"\w{1,30}[ \t]*=[ \t]*(?:[^\n\\]|\\+[\"']){0,80}){0,4}?)?"
    rb"(?:[ \t,;]|/?>|"
    + _BREAK
    + rb"){1,6}\\*[\"']?(?:secret_?)?(?:[vV]alue|default)\\*[\"']?[ \t]*[=:][ \t]*(?P<q>\\*[\"'`])?"
)
# {"name": "THE_NAME", "value": …} in any order, its quotes escaped or not; what stands between may
# be other members.
_NAMES = rb"\w{0,20}(?:[nN]ame|[kK]ey|[vV]ariable|[iI]d|[fF]ield|[pP]arameter|[hH]eader|[sS]etting|[eE]nv)"
_VALUES = rb"\w{0,20}(?:[vV]alue|[vV]al|[sS]ecret|[dD]efault)"
_BLANKS = rb"(?:\s|\\+[nrt])*"
_IS_NAME = re.compile(rb"(?P<q>\\*[\"'])" + _NAMES + rb"(?P=q)[ \t]*:[ \t]*(?P=q)$")
_MEMBER = re.compile(
    rb"(?P<q>\\*[\"'])"
    + _VALUES
    + rb"(?P=q)"
    + _BLANKS
    + rb":"
    + _BLANKS
    + rb"(?P=q)(?=[^\s\"'`<>\\])"
)
_BELOW_VALUE = re.compile(  # - value: …, and in the line below it name: THE_NAME
    rb"\b" + _VALUES + rb"[ \t]*:[ \t]*\\*[\"']?(?P<value>[^\s\"'`\\,{}]{6,512})\\*[\"']?[ \t]*"
    rb"(?:\r?\n|(?:\\+r)?\\+n)[ \t]+" + _NAMES + rb"[ \t]*:[ \t]*\\*[\"']?$"
)
_NAME_KEY, _VALUE_KEY = re.compile(_NAMES.decode()), re.compile(_VALUES.decode())
PAIR = 600  # bytes between a name and its value in such an object
_SPACED = re.compile(rb"(?:\\*[\"'])?[ \t]+(?P<q>\\*[\"'`])?" + _SCHEME + rb"(?=[^\s\"'`<>\\\-])")
_SHELL = re.compile(
    rb"(?:^|[\s\"])(?:ENV|ARG|set|setx|export|define)(?:[ \t]+-\w+)*[ \t]+\\*[\"']?$"
)
_LINE_BREAK = re.compile(rb"\n|\\n")
_QUOTES = (b'"', b"'", b"`")
_LOOSE_SIGNS = (b">", b"|", b",", b"->", b"(")
_NETRC = re.compile(rb"(?:machine|login|default)\s[^\n]{0,100}(?:\n|\\n)?[ \t]*$|^[ \t]*$")
_ELEMENT_END = re.compile(rb"[.,:;!?*']{0,3}(?:</|\\+u003c\\*/)")
_BRACE = re.compile(rb"[{}]")


def is_name_key(key: str) -> bool:
    """Return whether what stands under this key may be the name of what stands beside it."""
    return _NAME_KEY.fullmatch(key) is not None


def is_value_key(key: str) -> bool:
    return _VALUE_KEY.fullmatch(key) is not None


def assigned_value(name: SecretName) -> Span | None:
    """Return the span of the value that follows the name, if it is a secret."""
    for found in _assignments(name):
        if found is None:
            continue
        span = value_span(name.data, found, name.high)
        if span is None:
            continue
        if _is_address(name, found, span) or _is_list(found):
            continue
        loose = _is_loose(name, found, span)
        judged = name.data[span[0] : min(span[1], span[0] + JUDGED)]
        word = MORE.sub(b"", judged).decode("utf-8", "replace")
        several = " " in word and name.rule != "password"
        if not several and is_assigned_secret(word, name.rule, name.strength, loose):
            return extended(name.data, span, name.high)
        inner = _secret_part(name.data, span, name.strength)
        if inner is not None:
            return inner
    return None


def _assignments(name: SecretName) -> Iterator[re.Match[bytes] | None]:
    """Yield what the name is followed by, up to its value, in the ways of writing that."""
    assigned = _ASSIGNED.match(name.data, name.after, name.high)
    if assigned is not None:
        yield assigned
        return
    yield _spaced(name)
    yield _NAMED.match(name.data, name.after, name.high)


def _spaced(name: SecretName) -> re.Match[bytes] | None:
    """Match `--token X`, `ENV TOKEN X`, and `password X` of a .netrc."""
    match = _SPACED.match(name.data, name.after, name.high)
    if match is None or name.left.startswith(b"-"):
        return match
    begin = name.begin
    if _SHELL.search(name.data[max(name.low, begin - 24) : begin]):
        return match
    if name.rule != "password" or name.left:
        return None
    in_netrc = _NETRC.search(name.data[max(name.low, name.start - 120) : name.start])
    return match if in_netrc else None


def paired_value(name: SecretName) -> Span | None:
    """Return the value of a member beside the one that holds this name."""
    data = name.data
    begin = name.begin
    if data[max(name.low, begin - 8) : begin].rstrip(b" \t\"'\\")[-1:] != b":":
        return None
    for span in _values_beside(name, begin):
        if is_assigned_secret(
            judged_text(data, span), name.rule, name.strength, loose=name.strength < 2
        ):
            return span
    return None


def _is_address(name: SecretName, match: re.Match[bytes], value: Span) -> bool:
    """Return whether name and value are one word in quotes, as in 'secret:…': where it is kept."""
    if match.re is not _ASSIGNED or match.start("op") != name.after or value[0] != name.after + 1:
        return False
    quote = name.data[name.begin - 1 : name.begin]
    return match["op"] == b":" and quote in _QUOTES and name.data[value[1] : value[1] + 1] == quote


def _is_list(match: re.Match[bytes]) -> bool:
    """Return whether name and value are items of a list, one in a line."""
    if match.re is not _ASSIGNED or match["op"] != b",":
        return False
    return _LINE_BREAK.search(match.string, match.end("op"), match.end()) is not None


def _is_loose(name: SecretName, match: re.Match[bytes], value: Span) -> bool:
    """Return whether what ties name and value need not be an assignment."""
    if match.re is _NAMED or name.left.startswith(b"set"):
        return False
    if match.re is not _ASSIGNED or match["made"]:
        return True
    if match["op"] == b">":  # of an element that holds nothing else
        return _ELEMENT_END.match(name.data, value[1]) is None
    return match["op"] in _LOOSE_SIGNS


def _members(data: bytes, low: int, stop: int, quote: bytes, high: int) -> Iterator[Span]:
    """Values of members in a stretch of an object whose names and values have this quote."""
    for member in _MEMBER.finditer(data, low, stop):
        if member["q"] != quote:
            continue
        end = closing_quote(data, member.end(), quote, high)
        if end is not None and not INNER_BREAK.search(data, member.end(), end):
            yield trimmed(data, member.end(), end, quoted=True)


def _values_beside(name: SecretName, begin: int) -> Iterator[Span]:
    """Yield the values that may belong to a name which is itself a value, behind it first."""
    data, high = name.data, name.high
    lead = data[max(name.low, begin - PAIR) : begin]
    offset = begin - len(lead)
    key = _IS_NAME.search(lead, max(0, len(lead) - 60))
    if key is not None:
        quote = key["q"]
        end = _object_end(data, name.after, min(high, name.after + PAIR))
        yield from _members(data, name.after, end, quote, high)
        start = offset + _object_start(lead, key.start())
        yield from _members(data, start, offset + key.start(), quote, high)
    elif below := _BELOW_VALUE.search(lead):
        yield offset + below.start("value"), offset + below.end("value")


def _object_end(data: bytes, low: int, high: int) -> int:
    found = _BRACE.search(data, low, high)
    return found.start() if found else high


def _object_start(lead: bytes, stop: int) -> int:
    return max(lead.rfind(b"{", 0, stop), lead.rfind(b"}", 0, stop)) + 1


def _secret_part(data: bytes, span: Span, strength: int) -> Span | None:
    """Return the span of a secret among the several words of a quoted value."""
    value = data[span[0] : span[1]]
    if strength < 2 or b" " not in value or MORE.search(value):
        return None
    at = span[0]
    for part in value.split(b" "):
        if is_among_words(part.decode("latin-1")):
            return at, at + len(part)
        at += len(part) + 1
    return None
