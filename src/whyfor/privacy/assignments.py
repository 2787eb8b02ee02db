"""A name that promises a secret, and the value it is given: in code, JSON, YAML, XML, flags,
tables and prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

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
_SAID_WORD = re.compile(rb"[^\s\"'`<>\\,;(){}\[\]|&*]{8,512}")
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


class AssignmentFinder:
    """Looks at one kind of name."""

    def __init__(self, rule: str, words: NameParts) -> None:
        self.rule = rule
        self.words = words

    def look(
        self, data: bytes, start: int, end: int, low: int, high: int
    ) -> Iterator[tuple[int, int, str]]:
        lead = data[max(low, start - NAME) : start]
        left = lead[len(lead.rstrip(_NAME_CHARS)) :]
        if left[:1] in (b"n", b"r", b"t") and lead[-len(left) - 1 : -len(left)] == b"\\":
            left = left[1:]  # of an escape
        rest = data[end : min(high, end + NAME)]
        right = rest[: len(rest) - len(rest.lstrip(_NAME_CHARS))]
        said = b"" if left else lead[-24:].rpartition(b"\n")[2].rpartition(b"\\n")[2]
        strength = self._strength(left or said, data[start:end], right)
        if not strength or _RESOURCE.search(lead):
            return
        after = end + len(right)
        if data[max(low, start - len(left) - 1) : start - len(left)] in (b"?", b"&"):
            mark = data.find(b"#", after, min(high, after + BARE))
            if mark > 0 and not _STOP.search(data, after, mark):
                high = mark  # of an address: up to its fragment
        span = self._assigned(data, start, after, low, high, strength, left)
        spans = [span] if span is not None else []
        if (
            not spans
            and (span := self._paired(data, start - len(left), after, low, high, strength))
            is not None
        ):
            spans = [span]
        if not spans and strength == 2 and data[start:end].lower() not in _NEVER_SAID:
            spans = self._told(data, start, after, low, high)
        if not spans and strength == 2 and _CELL_END.match(data, after, high):
            spans = list(self.columns(data, start, after, low, high))
        for span in spans:
            yield (*span, self.rule)

    def _strength(self, left: bytes, word: bytes, right: bytes) -> int:
        """2: the name of a secret. 1: it may be. 0: it only holds the word."""
        if (
            right[:1].isalpha()
            and right[:1].isupper() == word[-1:].isupper()
            and right[:1] not in b"sS"
        ):
            return 0
        before, after = (
            [w.lower() for w in _WORDS.findall(text.decode("latin-1"))] if text else []
            for text in (left, right)
        )
        if not self.words.about.isdisjoint(after) or not self.words.open.isdisjoint(before[-2:]):
            return 0
        owner = before[-1] if before else ""
        glued = left[-1:].isalpha() and left[-1:].isupper() == word[:1].isupper()
        if self.rule == "api-key":
            if left.endswith(b".") or (glued and not owner.endswith(_GLUED_KEY)):
                return 0
            return (
                2 if glued or owner in self.words.key_of or not _SURE_KEY.isdisjoint(before) else 1
            )
        if self.rule == "auth":
            if glued and not owner.endswith(("api", "basic")):
                return 0
            return 2 if word.lower() == b"authorization" else 1
        if self.rule == "password" and len(word) <= len(b"pass"):
            if glued or (len(left) >= 8 and surprise(left[-24:].decode("latin-1")) > 5.4):
                return 0  # two letters of a word, or of something drawn by chance
            joined = left[-1:].isalpha() or left[-1:] in (b"_", b"-", b".")
            return 2 if joined or owner in self.words.pass_of else 1
        return 2

    def _assigned(
        self, data: bytes, start: int, after: int, low: int, high: int, strength: int, left: bytes
    ) -> tuple[int, int] | None:
        tries = [_ASSIGNED.match(data, after, high)]
        if tries[0] is None:
            tries = [
                self._spaced(data, start, after, low, high, left),
                _NAMED.match(data, after, high),
            ]
        for found in tries:
            if found is None or (span := _value(data, found, high)) is None:
                continue
            loose = (
                found.re is not _ASSIGNED
                or found["made"]
                or found["op"] in (b">", b"|", b",", b"->", b"(")
            )
            word = _MORE.sub(b"", data[span[0] : min(span[1], span[0] + JUDGED)]).decode(
                "utf-8", "replace"
            )
            if _is_secret(word, self.rule, strength, bool(loose) and not left.startswith(b"set")):
                return _whole(data, span, high)
            if (inner := _parts(data, span, strength)) is not None:
                return inner
        return None

    def _spaced(
        self, data: bytes, start: int, after: int, low: int, high: int, left: bytes
    ) -> re.Match[bytes] | None:
        """`--token X`, `ENV TOKEN X`, `password X` of a .netrc."""
        match = _SPACED.match(data, after, high)
        if match is None or left.startswith(b"-"):
            return match
        name = start - len(left)
        if _SHELL.search(data[max(low, name - 24) : name]):
            return match
        netrc = (
            self.rule == "password"
            and not left
            and _NETRC.search(data[max(low, start - 120) : start])
        )
        return match if netrc else None

    def _paired(
        self, data: bytes, name: int, after: int, low: int, high: int, strength: int
    ) -> tuple[int, int] | None:
        """The value of a member beside the one that says this name."""
        if data[max(low, name - 8) : name].rstrip(b" \t\"'\\")[-1:] != b":":
            return None
        lead = data[max(low, name - PAIR) : name]
        offset = name - len(lead)
        said = _IS_NAME.search(lead, max(0, len(lead) - 60))
        if said is None:
            below = _BELOW_VALUE.search(lead)
            spans = [(offset + below.start("value"), offset + below.end("value"))] if below else []
        else:
            spans = [
                *_members(
                    data, after, _object_end(data, after, min(high, after + PAIR)), said["q"], high
                ),
                *_members(
                    data,
                    _object_start(lead, said.start()) + offset,
                    offset + said.start(),
                    said["q"],
                    high,
                ),
            ]
        for span in spans:
            word = data[span[0] : min(span[1], span[0] + JUDGED)].decode("utf-8", "replace")
            if _is_secret(word, self.rule, strength, loose=strength < 2):
                return span
        return None

    def _told(
        self, data: bytes, start: int, after: int, low: int, high: int
    ) -> list[tuple[int, int]]:
        """In prose, after the word, where there may be several, or before it."""
        spans: list[tuple[int, int]] = []
        at, limit = after, after + (SAID if self.rule != "auth" else SAID // 3)
        while (
            found := _SAID_WORD.search(data, at, min(high, limit + BARE))
        ) and found.start() < limit:
            begin, at = found.span()
            if data[begin - 1 : begin] == b"\\" and data[begin : begin + 1] in (b"n", b"r", b"t"):
                begin += 1  # of an escape
            if begin == after:
                continue  # still the name
            span = _trimmed(data, begin, at)
            between = data[after:begin]
            if _is_other(data, span, between):
                continue
            if between.count(b"\n") + between.count(b"\\n") > 2 or _ELSEWHERE.search(between):
                break
            tight = _TIGHT.search(between) or (self.rule != "api-key" and not between.strip(b" \t"))
            if _is_told(_text(data, span), bool(tight)):
                spans.append(_whole(data, span, high))
                at = max(at, spans[-1][1])
                limit += spans[-1][1] - span[0] - len(LABEL)  # as far as with a label in its place
        if spans:
            return spans
        lead = data[max(low, start - 280) : start]
        if _TIED.search(lead) and (match := _BEFORE.search(lead)):
            offset = start - len(lead)
            begin = offset + match.start("value")
            if data[begin - 1 : begin] == b"\\" and data[begin : begin + 1] in (b"n", b"r", b"t"):
                begin += 1  # of an escape
            span = _trimmed(data, begin, offset + match.end("value"))
            plain = match["tie"].startswith(
                (b"is", b"that", b"it", b"this", b"as", b"which", b"\xe2", b"<-")
            )
            if _is_told(_text(data, span), plain):
                return [span]
        return []

    def columns(
        self, data: bytes, start: int, after: int, low: int, high: int
    ) -> Iterator[tuple[int, int]]:
        """The cells below a name that heads a column of a table or of comma separated values."""
        begin = max(
            (m.end() for m in _LINE.finditer(data, max(low, start - 400), start)),
            default=max(low, start - 400),
        )
        stop = _LINE.search(data, after, min(high, after + 600))
        if stop is None:
            return
        head = data[begin : stop.start()]
        mark = next((mark for mark in (b"|", b"\t", b",", b";") if mark in head), None)
        if mark is None or not _CELL_END.match(data, after, stop.end()):
            return
        column, cells = data.count(mark, begin, start), head.count(mark)
        line = stop.end()
        high = min(high, start + TABLE)
        for _ in range(ROWS):
            stop = _LINE.search(data, line, min(high, line + 2000))
            end = stop.start() if stop else min(high, line + 2000)
            row = data[line:end].split(mark)
            if len(row) != cells + 1:
                return
            word = row[column].strip(b" \"'`\\*")
            at = line + sum(len(cell) + 1 for cell in row[:column]) + row[column].find(word)
            if _is_secret(word[:JUDGED].decode("utf-8", "replace"), self.rule, 2, loose=True):
                yield at, at + len(word)
            if stop is None:
                return
            line = stop.end()


ROWS = 40
SAID = 120  # bytes of prose between a name and its value
TABLE = 16 << 10  # bytes of one, from the name on
LABEL = b"[REDACTED:x]"  # all labels count like this one
_NEVER_SAID = (b"pw", b"psk")
_GLUED_KEY = ("api", "access", "secret", "private", "auth", "my", "account", "license")
_SURE_KEY = frozenset(("api", "secret", "access", "private"))
_CELL_END = re.compile(rb"\\*[\"']?[ \t]*(?:[|,;\t]|\r?\n|\\+[rn])")
_NETRC = re.compile(rb"(?:machine|login|default)\s[^\n]{0,100}(?:\n|\\n)?[ \t]*$|^[ \t]*$")
_RESOURCE = re.compile(rb":\d{12}:$")  # the name of something at AWS


# -- values --------------------------------------------------------------------------------------


def _value(data: bytes, match: re.Match[bytes], high: int) -> tuple[int, int] | None:
    """What stands after the match: up to the closing quote, or as far as a bare word goes, and
    what it goes on with."""
    start = match.end()
    quote = match["q"]
    if quote and (end := _closing(data, start, quote, high)) is not None:
        cut = _INNER_BREAK.search(data, start, end)
        if cut is None:
            return _trimmed(data, start, _continued(data, end, high), quoted=True)
        return _trimmed(data, start, _continued(data, cut.start(), high), quoted=True)
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


def _whole(data: bytes, span: tuple[int, int], high: int) -> tuple[int, int]:
    """A value that was judged by its beginning, to its end."""
    if span[1] - span[0] < BARE and span[1] < high and _STOP.match(data, span[1]):
        return span
    if data[span[1] : span[1] + 1] in (b".", b",", b":", b";", b"!", b"?", b"*", b"_", b"'"):
        return span
    stop = _STOP.search(data, span[1], high)
    return span[0], stop.start() if stop else high


def _trimmed(data: bytes, start: int, end: int, *, quoted: bool = False) -> tuple[int, int]:
    text = data[start:end]
    kept = text.rstrip(b" \t\\") if quoted else text.rstrip(b".,:;!?*'")
    return start, start + len(kept)


def _text(data: bytes, span: tuple[int, int]) -> str:
    return data[span[0] : min(span[1], span[0] + JUDGED)].decode("utf-8", "replace")


@lru_cache(4096)
def _is_secret(word: str, rule: str, strength: int, loose: bool) -> bool:
    """After an assignment to a name that promises a secret."""
    if len(word) < 6 or (len(word) < 12 and rule != "password" and not _DIGIT.search(word)):
        return False
    if is_stand_in(word) or is_plain(word):
        return False
    if strength == 1:
        least = 10 if rule == "password" and not loose and not _SHORT_HEX.fullmatch(word) else 16
        hexes = any(map(is_hex, [word, *re.split(r"[-_.:/]", word)]))
        return len(word) >= least and surprise(word) >= 5.0 and not hexes
    if is_hex(word):
        return not loose or len(word) >= 20
    if word.isdigit():
        return len(word) >= 14 and not loose
    if is_random(word, 8 if not loose else 12):
        return True
    return rule == "password" and not loose and is_password(word)


def _parts(data: bytes, span: tuple[int, int], strength: int) -> tuple[int, int] | None:
    """A word in a quoted value that has several."""
    if strength < 2 or b" " not in data[span[0] : span[1]]:
        return None
    at = span[0]
    for part in data[span[0] : span[1]].split(b" "):
        word = part.decode("latin-1")
        if (
            is_random(word, 16, 5.0)
            and not is_hex(word)
            and not is_stand_in(word)
            and not is_plain(word)
        ):
            return at, at + len(part)
        at += len(part) + 1
    return None


@lru_cache(4096)
def _is_told(word: str, tight: bool) -> bool:
    """In prose, where anything may follow a word."""
    digits = _DIGIT.search(word) is not None
    if (not digits and len(word) < 16) or is_stand_in(word) or is_plain(word):
        return False
    if is_hex(word) or _SHORT_HEX.fullmatch(word):
        return tight and len(word) >= 32
    return is_random(word, 10, 5.0) if digits else is_random(word, 16, 5.1)
