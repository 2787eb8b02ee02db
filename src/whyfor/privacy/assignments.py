"""A name that promises a secret, and the value it is given: in code, JSON, YAML, XML, flags,
tables and prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from whyfor.privacy.rules import NameParts
from whyfor.privacy.shapes import is_hex, is_password, is_plain, is_random, is_stand_in, surprise

GENERIC = frozenset(
    "password token secret api-key auth encoded-secret access-token login-command "
    "masked-value piped-password".split()
)
NAME = 48  # bytes a name goes on to either side of its word
BARE = 512
JUDGED = 160  # bytes of a value that decide
_NAME_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

# of a diff's or a numbered line
_PREFIX = rb"[ \t]*(?:[+\-> ]|\d{1,6}(?:\xe2\x86\x92|\\+u2192|[:|\t]| {1,4}))?[ \t]*"
_BREAK = rb"(?:\r?\n|(?:\\+r)?\\+n)" + _PREFIX
_SCHEME = rb"(?:(?:[Bb]earer|[Bb]asic|[Tt]oken|[Aa]pi[Kk]ey|[Dd]igest|GenieKey|SSWS|Bot)[ \t]+)?"
_ASSIGNED = re.compile(
    rb"(?:\\*[\"'`\])*]){0,5}"
    rb"(?:[ \t]*:?[ \t]*(?:&?(?:'static )?str|string|String|SecretStr|\[\]byte|text|char \*)\b"
    rb"(?:[ \t]*\|[ \t]*None)?(?=[ \t]*=))?"  # a type
    rb"[ \t]{0,40}"
    rb"(?P<op>=>|->|={1,3}|:{1,3}=|[?.+|]{1,2}=|!={1,2}|:|,|>|\||\((?=\\*[\"'])|(?:</?\w[^<>]{0,60}>[ \t]*){1,5})"
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
    rb"(?:\\*[\"'`]){0,2}(?:[ \t]*\{(?:" + _BREAK + rb"\w{1,30}[ \t]*=[ \t]*[^\n\\]{0,80}){0,4}?)?"
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
_BARE = re.compile(rb"(?:[^\s\"'`<>\\,;(){}\[\]|&]|&(?=[^\s\"'`\w;&])){4,512}")
_MORE = re.compile(  # a value that goes on in the next line, or in the string beside it
    rb"(?:\\\r?\n|\\{3}n|\\{7}n)[ \t]*(?=[\w+/=.~-])|\\*[\"'`](?:[ "
    rb"\t+.&]|\\?\r?\n|\\+n){1,12}\\*[\"'`](?=[\w+/=.~-])"
)
_REST = re.compile(rb"[A-Za-z0-9+/_=.~-]{3,512}")
_PROSE_WORD = re.compile(rb"[^\s\"'`<>\\,;(){}\[\]|&*]{8,512}")
_BEFORE = re.compile(
    rb"(?<![^\s\"'`<>\\,;(){}\[\]|&*])(?P<value>[^\s\"'`<>\\,;(){}\[\]|&*]{8,200})\\*[\"'`)\]*>]{0,3},?[ \t]+"
    rb"(?P<tie>(?:that's|that is|this is|it's|which "
    rb"is|is|was|as|for|\xe2\x86\x90|<-|<--|//|#|--|\()"
    rb"(?:[ \t]*\b(?:the|my|our|your|a|an|its|their|this|not|valid|no))*)"
    rb"(?:[ "
    rb"\t]+(?!(?:commit|sha|hash|branch|version|digest|checksum|id|uuid)\b)[\w.-]{1,20}){0,3}[ "
    rb"\t]*$"
)
_ELSEWHERE = re.compile(
    rb"(?<!\\)\"[,}\]:]"  # the string ends
    rb"|\b(?:commit|sha|hash|index|id|uuid|checksum|digest|etag|build|version|branch|request|trace)[ \t\"'`:=#]*$",
    re.IGNORECASE,
)
_TIED = re.compile(rb" (?:that's|is|was|as|for|\xe2\x86\x90|<-+|//|#|--) [^\n]{0,60}$")
_TIGHT = re.compile(rb"^[\s\"'`*]*(?:is|was|[:=])[\s\"'`*]*$|^[\s\"'`*]*[:=]|:[\s\"'`*]*$")
_LINE = re.compile(rb"\r?\n|(?:\\+r)?\\+n")
_SHELL = re.compile(
    rb"(?:^|[\s\"])(?:ENV|ARG|set|setx|export|define)(?:[ \t]+-\w+)*[ \t]+\\*[\"']?$"
)

_DIGIT = re.compile(r"\d")
_COLOUR = re.compile(rb"\d{1,3}(?:;\d{1,3})*m")
_ASSIGNMENT = re.compile(rb"[+\->]?([A-Za-z_][\w.-]{1,40})[=:].")
_SHORT_HEX = re.compile(r"[0-9a-f]{7,}(?:\.{2,3}[0-9a-f]{7,})?")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def is_name_key(key: str) -> bool:
    """Return whether what stands under this key may be the name of what stands beside it."""
    return _NAME_KEY.fullmatch(key) is not None


def is_value_key(key: str) -> bool:
    return _VALUE_KEY.fullmatch(key) is not None


class SecretName(NamedTuple):
    """A name that promises a secret, where it stands in a text."""

    data: bytes
    start: int  # of the word in it that promises
    after: int  # where the name ends
    low: int  # nothing outside of low and high is read
    high: int
    left: bytes  # its part before the word
    strength: int  # 2: the name of a secret; 1: it may be one


class AssignmentFinder:
    """Looks at one kind of name."""

    def __init__(self, rule: str, words: NameParts) -> None:
        self.rule = rule
        self.words = words

    def look(
        self, data: bytes, start: int, end: int, low: int, high: int
    ) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and rule of each value given to the name around data[start:end]."""
        name = self._name_around(data, start, end, low, high)
        if name is None:
            return
        word = data[start:end].lower()
        for begin, finish in self._values(name, word):
            yield begin, finish, self.rule

    def _name_around(
        self, data: bytes, start: int, end: int, low: int, high: int
    ) -> SecretName | None:
        """Return the whole name this word is in, or None if it promises no secret."""
        lead = data[max(low, start - NAME) : start]
        left = _name_end(lead)
        rest = data[end : min(high, end + NAME)]
        right = rest[: len(rest) - len(rest.lstrip(_NAME_CHARS))]
        before = left or lead[-24:].rpartition(b"\n")[2].rpartition(b"\\n")[2]
        strength = self._strength(before, data[start:end], right)
        if not strength or _RESOURCE.search(lead):
            return None
        after = end + len(right)
        begin = start - len(left)
        if data[max(low, begin - 1) : begin] in (b"?", b"&"):
            high = _fragment_start(data, after, high)
        return SecretName(data, start, after, low, high, left, strength)

    def _values(self, name: SecretName, word: bytes) -> Iterable[tuple[int, int]]:
        """Return the values of a name by the first way of writing them that finds one."""
        span = self._assigned(name) or self._paired(name)
        if span is not None:
            return [span]
        if name.strength < 2:
            return []
        if word not in _NEVER_IN_PROSE:
            spans = self._after_in_prose(name) or self._before_in_prose(name)
            if spans:
                return spans
        if _CELL_END.match(name.data, name.after, name.high):
            return self._cells_below(name)
        return []

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
        if self.rule == "api-key":
            return self._key_strength(left, before, glued)
        if self.rule == "auth":
            return _auth_strength(word, before, glued)
        if self.rule == "password" and len(word) <= len(b"pass"):
            return self._pass_strength(left, before, glued)
        return 2

    def _key_strength(self, left: bytes, before: list[str], glued: bool) -> int:
        owner = before[-1] if before else ""
        if left.endswith(b"."):
            return 0
        if glued:
            return 2 if owner.endswith(_GLUED_KEY) else 0
        sure = owner in self.words.key_of or not _SURE_KEY.isdisjoint(before)
        return 2 if sure else 1

    def _pass_strength(self, left: bytes, before: list[str], glued: bool) -> int:
        if glued or (len(left) >= 8 and surprise(left[-24:].decode("latin-1")) > 5.4):
            return 0  # two letters of a word, or of something drawn by chance
        joined = left[-1:].isalpha() or left[-1:] in (b"_", b"-", b".")
        owned = bool(before) and before[-1] in self.words.pass_of
        return 2 if joined or owned else 1

    def _assigned(self, name: SecretName) -> tuple[int, int] | None:
        """Return the span of the value that follows the name, if it is a secret."""
        for found in self._assignments(name):
            if found is None:
                continue
            span = _value(name.data, found, name.high)
            if span is None:
                continue
            loose = _is_loose(found) and not name.left.startswith(b"set")
            judged = name.data[span[0] : min(span[1], span[0] + JUDGED)]
            word = _MORE.sub(b"", judged).decode("utf-8", "replace")
            if _is_secret(word, self.rule, name.strength, loose):
                return _extend(name.data, span, name.high)
            inner = _parts(name.data, span, name.strength)
            if inner is not None:
                return inner
        return None

    def _assignments(self, name: SecretName) -> Iterator[re.Match[bytes] | None]:
        """Yield what the name is followed by, up to its value, in the ways of writing that."""
        assigned = _ASSIGNED.match(name.data, name.after, name.high)
        if assigned is not None:
            yield assigned
            return
        yield self._spaced(name)
        yield _NAMED.match(name.data, name.after, name.high)

    def _spaced(self, name: SecretName) -> re.Match[bytes] | None:
        """Match `--token X`, `ENV TOKEN X`, and `password X` of a .netrc."""
        match = _SPACED.match(name.data, name.after, name.high)
        if match is None or name.left.startswith(b"-"):
            return match
        begin = name.start - len(name.left)
        if _SHELL.search(name.data[max(name.low, begin - 24) : begin]):
            return match
        if self.rule != "password" or name.left:
            return None
        in_netrc = _NETRC.search(name.data[max(name.low, name.start - 120) : name.start])
        return match if in_netrc else None

    def _paired(self, name: SecretName) -> tuple[int, int] | None:
        """Return the value of a member beside the one that holds this name."""
        data = name.data
        begin = name.start - len(name.left)
        if data[max(name.low, begin - 8) : begin].rstrip(b" \t\"'\\")[-1:] != b":":
            return None
        for span in _values_beside(name, begin):
            if _is_secret(_text(data, span), self.rule, name.strength, loose=name.strength < 2):
                return span
        return None

    def _after_in_prose(self, name: SecretName) -> list[tuple[int, int]]:
        """Return the values that prose gives behind the word; there may be several."""
        data, after, high = name.data, name.after, name.high
        spans: list[tuple[int, int]] = []
        at, limit = after, after + self._prose_reach
        while found := _PROSE_WORD.search(data, at, min(high, limit + BARE)):
            if found.start() >= limit:
                break
            begin, at = _skip_escape(data, found.start()), found.end()
            if begin == after:
                continue  # still the name
            span = _trimmed(data, begin, at)
            between = data[after:begin]
            if _is_other(data, span, between):
                continue
            if between.count(b"\n") + between.count(b"\\n") > 2 or _ELSEWHERE.search(between):
                break
            if _is_prose_secret(_text(data, span), self._is_tight(between)):
                spans.append(_extend(data, span, high))
                at = max(at, spans[-1][1])
                limit += spans[-1][1] - span[0] - len(LABEL)  # as far as with a label in its place
        return spans

    @property
    def _prose_reach(self) -> int:
        return PROSE // 3 if self.rule == "auth" else PROSE

    def _is_tight(self, between: bytes) -> bool:
        """Return whether nothing but a tie stands between a name and a word of prose."""
        if _TIGHT.search(between):
            return True
        return self.rule != "api-key" and not between.strip(b" \t")

    def _before_in_prose(self, name: SecretName) -> list[tuple[int, int]]:
        """Return the value that prose gives before the word: `X is the password`."""
        lead = name.data[max(name.low, name.start - 280) : name.start]
        match = _BEFORE.search(lead) if _TIED.search(lead) else None
        if match is None:
            return []
        offset = name.start - len(lead)
        begin = _skip_escape(name.data, offset + match.start("value"))
        span = _trimmed(name.data, begin, offset + match.end("value"))
        plain = match["tie"].startswith(_PLAIN_TIES)
        return [span] if _is_prose_secret(_text(name.data, span), plain) else []

    def _cells_below(self, name: SecretName) -> Iterator[tuple[int, int]]:
        """Yield the secrets below a name that heads a column of a table or of comma separated
        values."""
        data, start = name.data, name.start
        floor = max(name.low, start - 400)
        begin = max((m.end() for m in _LINE.finditer(data, floor, start)), default=floor)
        stop = _LINE.search(data, name.after, min(name.high, name.after + 600))
        if stop is None or not _CELL_END.match(data, name.after, stop.end()):
            return
        head = data[begin : stop.start()]
        mark = next((mark for mark in (b"|", b"\t", b",", b";") if mark in head), None)
        if mark is None:
            return
        column = data.count(mark, begin, start)
        high = min(name.high, start + TABLE)
        for line, row in _table_rows(data, stop.end(), high, mark):
            if len(row) != head.count(mark) + 1:
                return
            word = row[column].strip(b" \"'`\\*")
            if _is_secret(word[:JUDGED].decode("utf-8", "replace"), self.rule, 2, loose=True):
                left = sum(len(cell) + 1 for cell in row[:column])
                at = line + left + row[column].find(word)
                yield at, at + len(word)


ROWS = 40
PROSE = 120  # bytes of prose between a name and its value
TABLE = 16 << 10  # bytes of one, from the name on
LABEL = b"[REDACTED:x]"  # all labels count like this one
_NEVER_IN_PROSE = (b"pw", b"psk")
_PLAIN_TIES = (b"is", b"that", b"it", b"this", b"as", b"which", b"\xe2", b"<-")
_LOOSE_SIGNS = (b">", b"|", b",", b"->", b"(")
_ESCAPED_LETTERS = (b"n", b"r", b"t")
_GLUED_KEY = ("api", "access", "secret", "private", "auth", "my", "account", "license")
_SURE_KEY = frozenset(("api", "secret", "access", "private"))
_CELL_END = re.compile(rb"\\*[\"']?[ \t]*(?:[|,;\t]|\r?\n|\\+[rn])")
_NETRC = re.compile(rb"(?:machine|login|default)\s[^\n]{0,100}(?:\n|\\n)?[ \t]*$|^[ \t]*$")
_RESOURCE = re.compile(rb":\d{12}:$")  # the name of something at AWS


# -- names ---------------------------------------------------------------------------------------


def _name_end(lead: bytes) -> bytes:
    """Return the part of a name that a text ends with."""
    left = lead[len(lead.rstrip(_NAME_CHARS)) :]
    if left[:1] in _ESCAPED_LETTERS and lead[-len(left) - 1 : -len(left)] == b"\\":
        return left[1:]
    return left


def _fragment_start(data: bytes, after: int, high: int) -> int:
    """Return where the fragment of an address begins, or `high` if it has none."""
    mark = data.find(b"#", after, min(high, after + BARE))
    if mark > 0 and not _STOP.search(data, after, mark):
        return mark
    return high


def _words_in(name: bytes) -> list[str]:
    if not name:
        return []
    return [word.lower() for word in _WORDS.findall(name.decode("latin-1"))]


def _auth_strength(word: bytes, before: list[str], glued: bool) -> int:
    if glued and not (before and before[-1].endswith(("api", "basic"))):
        return 0
    return 2 if word.lower() == b"authorization" else 1


# -- values --------------------------------------------------------------------------------------


def _is_loose(match: re.Match[bytes]) -> bool:
    """Return whether what ties name and value need not be an assignment."""
    if match.re is not _ASSIGNED:
        return True
    return bool(match["made"]) or match["op"] in _LOOSE_SIGNS


def _value(data: bytes, match: re.Match[bytes], high: int) -> tuple[int, int] | None:
    """Return the span of what stands after the match: up to the closing quote, or as far as a
    bare word goes, and what it goes on with."""
    start = match.end()
    quote = match["q"]
    closing = _closing(data, start, quote, high) if quote else None
    if closing is not None:
        cut = _INNER_BREAK.search(data, start, closing)
        end = cut.start() if cut else closing
        return _trimmed(data, start, _continued(data, end, high), quoted=True)
    bare = _BARE.match(data, start, high)
    if bare is None or data[bare.end() : bare.end() + 1] in (b"(", b"["):
        return None
    return _trimmed(data, start, _continued(data, bare.end(), high))


def _members(
    data: bytes, low: int, stop: int, quote: bytes, high: int
) -> Iterator[tuple[int, int]]:
    """Values of members in a stretch of an object whose names and values have this quote."""
    for member in _MEMBER.finditer(data, low, stop):
        if member["q"] != quote:
            continue
        end = _closing(data, member.end(), quote, high)
        if end is not None and not _INNER_BREAK.search(data, member.end(), end):
            yield _trimmed(data, member.end(), end, quoted=True)


def _values_beside(name: SecretName, begin: int) -> Iterator[tuple[int, int]]:
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


def _table_rows(
    data: bytes, start: int, high: int, mark: bytes
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield where each of the next lines starts, and its cells; ROWS at most."""
    for _ in range(ROWS):
        stop = _LINE.search(data, start, min(high, start + 2000))
        end = stop.start() if stop else min(high, start + 2000)
        yield start, data[start:end].split(mark)
        if stop is None:
            return
        start = stop.end()


def _object_end(data: bytes, low: int, high: int) -> int:
    found = _BRACE.search(data, low, high)
    return found.start() if found else high


def _object_start(lead: bytes, stop: int) -> int:
    return max(lead.rfind(b"{", 0, stop), lead.rfind(b"}", 0, stop)) + 1


_BRACE = re.compile(rb"[{}]")
_INNER_BREAK = re.compile(rb"\\+[nrt]|\\?\n")


def _closing(data: bytes, start: int, quote: bytes, high: int) -> int | None:
    """Where the string ends: its quote once more, with as many backslashes as before and not one
    more."""
    end, limit = start - 1, min(high, start + 2048)
    while (end := data.find(quote, end + 1, limit)) >= 0:
        if data[end - 1 : end] != b"\\" or (quote[:1] == b"\\" and data[end - 2 : end] != b"\\\\"):
            return end
    return None  # never closed here: as if it were not quoted


def _continued(data: bytes, end: int, high: int) -> int:
    for _ in range(64):
        more = _MORE.match(data, end, min(high, end + 80))
        rest = _REST.match(data, more.end(), high) if more else None
        if rest is None or data[rest.end() : rest.end() + 1] in (b":", b"=", b"("):
            break
        end = rest.end()
    return end


_STOP = re.compile(rb"[\s\"'`<>\\,;(){}\[\]|&]")


def _is_other(data: bytes, span: tuple[int, int], between: bytes) -> bool:
    """What is left of a colour, or an assignment that its own name decides."""
    word = data[span[0] : span[0] + JUDGED]
    if between.endswith(b"[") and _COLOUR.match(word):
        return True
    named = _ASSIGNMENT.match(word)
    return named is not None and surprise(named[1].decode("latin-1")) < 4.6


def _extend(data: bytes, span: tuple[int, int], high: int) -> tuple[int, int]:
    """Return the span of the whole value that was judged by its beginning."""
    start, end = span
    if end - start < BARE and end < high and _STOP.match(data, end):
        return span
    if data[end : end + 1] in (b".", b",", b":", b";", b"!", b"?", b"*", b"_", b"'"):
        return span
    stop = _STOP.search(data, end, high)
    return start, stop.start() if stop else high


def _skip_escape(data: bytes, begin: int) -> int:
    r"""Return where a word begins that was found behind a backslash: after the n of `\n`."""
    escaped = data[begin - 1 : begin] == b"\\" and data[begin : begin + 1] in _ESCAPED_LETTERS
    return begin + 1 if escaped else begin


def _trimmed(data: bytes, start: int, end: int, *, quoted: bool = False) -> tuple[int, int]:
    text = data[start:end]
    kept = text.rstrip(b" \t\\") if quoted else text.rstrip(b".,:;!?*'")
    return start, start + len(kept)


def _text(data: bytes, span: tuple[int, int]) -> str:
    return data[span[0] : min(span[1], span[0] + JUDGED)].decode("utf-8", "replace")


@lru_cache(4096)
def _is_secret(word: str, rule: str, strength: int, loose: bool) -> bool:
    """Return whether this word, assigned to a name that promises a secret, is one."""
    if len(word) < 6 or (len(word) < 12 and rule != "password" and not _DIGIT.search(word)):
        return False
    if is_stand_in(word) or is_plain(word):
        return False
    strict_password = rule == "password" and not loose
    if strength == 1:
        return _is_surprising(word, 10 if strict_password else 16)
    if is_hex(word):
        return not loose or len(word) >= 20
    if word.isdigit():
        return len(word) >= 14 and not loose
    if is_random(word, 12 if loose else 8):
        return True
    return strict_password and is_password(word)


def _is_surprising(word: str, least: int) -> bool:
    """Return whether a word of at least so many letters was drawn by chance and is no hash."""
    if _SHORT_HEX.fullmatch(word):
        least = 16
    if len(word) < least or surprise(word) < 5.0:
        return False
    return not any(map(is_hex, [word, *re.split(r"[-_.:/]", word)]))


def _parts(data: bytes, span: tuple[int, int], strength: int) -> tuple[int, int] | None:
    """Return the span of a secret among the several words of a quoted value."""
    value = data[span[0] : span[1]]
    if strength < 2 or b" " not in value:
        return None
    at = span[0]
    for part in value.split(b" "):
        word = part.decode("latin-1")
        if is_random(word, 16, 5.0) and not (is_hex(word) or is_stand_in(word) or is_plain(word)):
            return at, at + len(part)
        at += len(part) + 1
    return None


@lru_cache(4096)
def _is_prose_secret(word: str, tight: bool) -> bool:
    """In prose, where anything may follow a word."""
    digits = _DIGIT.search(word) is not None
    if (not digits and len(word) < 16) or is_stand_in(word) or is_plain(word):
        return False
    if is_hex(word) or _SHORT_HEX.fullmatch(word):
        return tight and len(word) >= 32
    return is_random(word, 10, 5.0) if digits else is_random(word, 16, 5.1)
