"""Finding secrets in a text: all rules' anchors in one pass, then each looked at closely where
it stands.

Works on bytes, so that a transcript's line need not be decoded: a JSON string is text with
backslashes, and the patterns look through those. Every look is bounded, so hostile text costs
time in proportion to its size.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import ahocorasick_rs

from whyfor.privacy import assignments
from whyfor.privacy.rules import Rule, Rules, compiled
from whyfor.privacy.shapes import (
    decode_base64,
    is_hex,
    is_monotonous,
    is_plain,
    is_random,
    is_stand_in,
)

DEPTH = 3  # base64 in base64 in base64
LONG = 1024
REACH = 2048  # bytes a name and its value may lie apart, with escapes between them
_MARKS = (
    b"\x1b[ \\u001b[ \\x1b[ \\033[ \\e[ "
    b"%0a %09 %20 %22 %25 %26 %27 %2b %2c %2d %2f %3a %3b %3c %3d %3e %40 %5f %7b %7c %24 %21 "
    b"&quot; &amp; &apos; &lt; &gt; &# \\u002 \\u003 \\u005 \\/"
).split()
_Look = Callable[[bytes, int, int, int, int], Iterator[tuple[int, int, str]]]
_ESCAPE: list[_Look] = []
_MASK = re.compile(rb"\[REDACTED:[a-z0-9-]+(?:#\d+)?\]")


def _encoded_text() -> re.Pattern[bytes]:
    """Return a pattern for base64 whose first five groups of four are printable ASCII: no other
    bytes come out like that by chance."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    places: list[set[int]] = [set(), set(), set()]
    for byte in (*range(32, 127), 9, 10, 13):
        places[0].add(byte >> 2)
        places[1].update((low << 4) | (byte >> 4) for low in range(4))
        places[2].update((low << 2) | (byte >> 6) for low in range(16))
    group = b""
    for values in places:
        group += b"[" + re.escape(bytes(letters[value] for value in sorted(values))) + b"]"
    return re.compile(b"(?:" + group + rb"[A-Za-z0-9+/_-]){5,}[A-Za-z0-9+/_-]*={0,2}")


_ENCODED = _encoded_text()
_INSIDE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_DEFAULTS = frozenset(
    "password passwd pass secret token user username root admin guest test postgres mysql redis "
    "mongo rabbitmq example "
    "minioadmin elastic changeme x-oauth-basic x-access-token oauth2 git none null true "
    "false pwd yyy xxx".split()
)


class Finding(NamedTuple):
    start: int
    end: int
    rule: str


class _View(NamedTuple):
    """A text with its escapes resolved, and where each piece of it stood."""

    text: bytes
    starts: list[int]  # of pieces in the view
    origins: list[int]  # of the same pieces in the original
    ends: list[int]

    def original(self, start: int, end: int) -> tuple[int, int]:
        return self._at(start)[0], self._at(end - 1)[1]

    def _at(self, place: int) -> tuple[int, int]:
        index = bisect_right(self.starts, place) - 1
        if self.ends[index]:  # one character that was written as an escape
            return self.origins[index], self.ends[index]
        begin = self.origins[index] + place - self.starts[index]
        return begin, begin + 1


class Engine:
    """Compiled rules. Knows nothing of sessions."""

    def __init__(self, rules: Rules) -> None:
        self.allow = rules.allow
        self.replace = {rule.id: rule.replace for rule in rules.rules if rule.replace}
        names = _name_looks(rules)
        forms = _form_looks(rules)
        kinds = ahocorasick_rs.MatchKind
        # Of names the longest counts, so that a decoy hides the word in it; of forms all, so that
        # none hides another.
        self._names = ahocorasick_rs.BytesAhoCorasick(list(names), matchkind=kinds.LeftmostLongest)
        self._forms = ahocorasick_rs.BytesAhoCorasick(list(forms), matchkind=kinds.Standard)
        self._looks = [*names.values(), *forms.values()]
        self._named = len(names)
        self._formed = {rule.id for rule in rules.rules if not rule.near} - assignments.GENERIC

    def find(self, data: bytes, *, lines: bool = False) -> list[Finding]:
        """Secrets, in order, none overlapping another. With `lines`, nothing is read across a
        line's end.

        All labels count the same, whatever they say, so that what is found does not hang on a
        rule's name or a number.
        """
        if _MASK.search(data) is None:
            return self._find(data, lines)
        view = _view(data, 0, len(data), _MASK, lambda _label: assignments.LABEL)
        return [
            Finding(*view.original(f.start, f.end), f.rule) for f in self._find(view.text, lines)
        ]

    def _find(self, data: bytes, lines: bool) -> list[Finding]:
        escapes: list[int] = []
        found = self._plain(data, lines, escapes)
        for low, high in _windows(data, escapes, lines):
            view = _view(data, low, high, _ESCAPES, _meant)
            found += [
                Finding(*view.original(f.start, f.end), f.rule)
                for f in self._plain(view.text, lines, [])
            ]
        found += self._encoded(data, 0)
        return self._settled(data, found)

    def find_split(self, data: bytes) -> list[Finding]:
        """Return the parts of secrets that begin in one string of a message and end in the next,
        in records one a line.

        Only of those that have a form of their own: anything else would be found in any two
        words.
        """
        found: list[Finding] = []
        for pieces in _joined_strings(data):
            text = b"".join(data[start:stop] for start, stop in pieces)
            for item in self._forms_in(text):
                parts = list(_parts(pieces, item))
                if len(parts) > 1:
                    found += parts
        return self._settled(data, found)

    def _forms_in(self, text: bytes) -> Iterator[Finding]:
        """What has a form of its own, and needs no name beside it."""
        for pattern, start, end in self._forms.find_matches_as_indexes(
            text.lower(), overlapping=True
        ):
            for look in self._looks[self._named + pattern]:
                for begin, finish, rule in look(text, start, end, 0, len(text)):
                    if rule in self._formed and not _MASK.search(text, begin, finish):
                        yield Finding(begin, finish, rule)

    def _plain(self, data: bytes, lines: bool, escapes: list[int]) -> list[Finding]:
        """Return what stands there as it is written; note where escapes stand."""
        found: list[Finding] = []
        low, high = 0, -1 if lines else len(data)  # of the line we are in
        done = 0  # the end of a long one: what lies in it is gone already
        for start, end, looks in self._anchors(data, escapes):
            if start < done:
                continue
            if lines and start > high:
                low = data.rfind(b"\n", 0, start) + 1
                high = _line_end(data, start)
            for look in looks:
                for begin, finish, rule in look(data, start, end, low, high):
                    found.append(Finding(begin, finish, rule))
                    if finish - begin > LONG:
                        done = finish
        return found

    def _anchors(self, data: bytes, escapes: list[int]) -> Iterator[tuple[int, int, list[_Look]]]:
        """Yield every anchor that may name something, in order; what stands in a secret's place
        names nothing."""
        masks = [match.span() for match in _MASK.finditer(data)][::-1]
        for start, end, pattern in self._met(data.lower()):
            looks = self._looks[pattern]
            if looks is _ESCAPE:
                escapes.append(start)
                continue
            while masks and masks[-1][1] <= start:
                masks.pop()
            if looks and not (masks and masks[-1][0] <= start):
                yield start, end, looks

    def _met(self, low: bytes) -> list[tuple[int, int, int]]:
        """Every anchor, in order."""
        met = [
            (start, end, pattern)
            for pattern, start, end in self._names.find_matches_as_indexes(low)
        ]
        forms = self._forms.find_matches_as_indexes(low, overlapping=True)
        met += [(start, end, self._named + pattern) for pattern, start, end in forms]
        met.sort()
        return met

    def _encoded(self, data: bytes, depth: int) -> list[Finding]:
        """Base64 that holds text with a secret in it, or nothing but one."""
        found = []
        for match in _ENCODED.finditer(data):
            begin = match.start()
            if (
                begin
                and data[begin - 1] in _INSIDE
                and data[begin - 2 : begin] not in (b"\\n", b"\\r", b"\\t")
            ):
                continue
            inner = decode_base64(match.group())
            if inner is None:
                continue
            rule = self._inside(inner, depth)
            if rule:
                found.append(Finding(match.start(), match.end(), rule))
        return found

    def _inside(self, inner: bytes, depth: int) -> str | None:
        """Return the rule of a secret in decoded text, or None."""
        found = self._plain(inner, False, [])
        if not found and depth + 1 < DEPTH:
            found = self._encoded(inner, depth + 1)
        if found:
            return found[0].rule
        word = inner.strip().decode("latin-1")
        if len(word) > 512 or len(word.split()) != 1 or decode_base64(inner.strip()) is not None:
            return None
        secret = word.partition(":")[2] or word
        if is_random(secret, 12, 5.0) and not (is_hex(word) or is_plain(word) or is_stand_in(word)):
            return "encoded-secret"
        return None

    def _settled(self, data: bytes, found: list[Finding]) -> list[Finding]:
        """Return findings without those that are allowed or masked; overlapping ones become one,
        under the name of the one that says most."""
        if not found:
            return found
        masks = [match.span() for match in _MASK.finditer(data)]
        result: list[Finding] = []
        for item in sorted(set(found), key=_order):
            if any(start < item.end and item.start < end for start, end in masks):
                continue
            if any(pattern.search(data[item.start : item.end]) for pattern in self.allow):
                continue
            if result and item.start < result[-1].end:
                result[-1] = _joined(result[-1], item)
            else:
                result.append(item)
        return result


def _order(finding: Finding) -> tuple[int, int, bool, str]:
    generic = finding.rule in assignments.GENERIC
    return finding.start, -finding.end, generic, finding.rule


def _joined(one: Finding, other: Finding) -> Finding:
    """Return two findings as one, under the first rule that is not a generic one."""
    rule = one.rule
    if rule in assignments.GENERIC and other.rule not in assignments.GENERIC:
        rule = other.rule
    return Finding(one.start, max(one.end, other.end), rule)


def _line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end


# -- what is looked for --------------------------------------------------------------------------


def _name_looks(rules: Rules) -> dict[bytes, list[_Look]]:
    """Return for each word of a name who looks at it: nobody at a decoy."""
    looks: dict[bytes, list[_Look]] = {decoy.encode(): [] for decoy in rules.decoys}
    looks |= dict.fromkeys(_MARKS, _ESCAPE)
    for kind in rules.names:
        finder = assignments.AssignmentFinder(kind.id, rules.words)
        for word in kind.words:
            looks[word.encode()] = [finder.look]
    return looks


def _form_looks(rules: Rules) -> dict[bytes, list[_Look]]:
    """Return for each anchor of a form who looks at it."""
    looks: dict[bytes, list[_Look]] = {}
    for rule in rules.rules:
        look = _Form(rule).look
        for anchor in rule.anchors:
            looks.setdefault(anchor.encode(), []).append(look)
    return looks


class _Form:
    """Looks for one rule's form where one of its anchors stands."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.group: str | int = "secret" if rule.near or "(?P<secret>" in rule.pattern else 0
        self.check = _CHECKS[rule.check] if rule.check else None
        self.needs = rule.needs.encode()

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """Compiled when an anchor is met: all of them take a second, and a text meets few."""
        return compiled(self.rule)

    def look(self, data: bytes, start: int, _end: int, low: int, high: int) -> Iterator[Finding]:
        """Yield the secret at an anchor, if there is one."""
        stop = min(high, start + self.rule.after)
        if self.needs and data.find(self.needs, start, stop) < 0:
            return
        if self.rule.before:
            match = self.pattern.search(data, max(low, start - self.rule.before), stop)
            while match is not None and match.end() <= start:  # of an anchor before this one
                match = self.pattern.search(data, match.end(), stop)
        else:
            match = self.pattern.match(data, start, stop)
        if match is None:
            return
        begin, finish = match.span(self.group)
        if self.check is None or self.check(data[begin:finish].decode("latin-1")):
            yield Finding(begin, finish, self.rule.id)


# -- checks --------------------------------------------------------------------------------------


def _varied(word: str) -> bool:
    return not is_monotonous(word) and not re.search(
        r"(?i)example|x{5}|\*{3}|\.{3}|#{4}|<|\$\{", word
    )


def _random(word: str) -> bool:
    if is_stand_in(word) or is_plain(word):
        return False
    return is_random(word, 12) or is_hex(word)


def _credential(word: str) -> bool:
    """A password, or `user:password`: anything but what people write in its place."""
    word = word.strip("\\\"'`")
    user, colon, secret = word.partition(":")
    secret = (secret or user) if colon else word
    secret = secret.strip("\\\"'`{}")
    if secret.lower() in _DEFAULTS or (secret.lower() == user.lower() and colon and secret != user):
        return False
    return (
        not is_stand_in(word)
        and not re.search(r"[\[$({]", word.replace("$1", "")[:1])
        and not re.search(r"\$\(|\$\{|\{\{|\$[A-Za-z_]|\[[A-Z]+\]|\$\d:", word)
    )


def _basic(word: str) -> bool:
    inner = decode_base64(word.encode())
    return inner is not None and b":" in inner and _credential(inner.decode("latin-1"))


def _jwt(word: str) -> bool:
    head = decode_base64(word.partition(".")[0].encode())
    return head is not None and head.lstrip()[:1] == b"{" and (b'"alg"' in head or b'"typ"' in head)


def _luhn(word: str) -> bool:
    digits = [int(c) for c in word if c.isdigit()]
    doubled = [d if i % 2 == 0 else d * 2 - 9 * (d > 4) for i, d in enumerate(reversed(digits))]
    return len(digits) >= 13 and len(set(digits)) > 2 and sum(doubled) % 10 == 0


def _iban(word: str) -> bool:
    account = word.replace(" ", "").upper()
    return int("".join(str(int(c, 36)) for c in account[4:] + account[:4])) % 97 == 1


_CHECKS: dict[str, Callable[[str], bool]] = {
    "varied": _varied,
    "random": _random,
    "credential": _credential,
    "basic": _basic,
    "jwt": _jwt,
    "luhn": _luhn,
    "iban": _iban,
}


# -- two strings of one message ------------------------------------------------------------------

SPLIT = 400  # bytes on either side of a string's end that are looked at together with the next
# between the texts of two blocks: the one ends, its braces, and the next begins
_BLOCKS = re.compile(
    rb"\"(?:\s?,\s?\"type\"\s?:\s?\"\w{0,12}text\")?\s?\}\s?,\s?\{\s?"
    rb"(?:\"type\"\s?:\s?\"\w{0,12}text\"\s?,\s?)?\"text\"\s?:\s?\""
)
_LIST = re.compile(rb"\[\s?\"(?:[^\"\\]++|\\.)*+\"\s?,\s?\"", re.DOTALL)
_ITEM = re.compile(rb"(?:[^\"\\]++|\\.)*+\"\s?,\s?\"", re.DOTALL)
_REST = re.compile(rb"(?:[^\"\\\n]++|\\[^\n])*+")
_COMMA = re.compile(rb"\"\s?,\s?\"\Z")


def _joined_strings(data: bytes) -> Iterator[list[tuple[int, int]]]:
    """Yield the spans of strings that follow each other, two or more, and hold nothing else."""
    joints = {match.span() for match in _BLOCKS.finditer(data)}
    joints.update(_commas(data))
    pieces: list[tuple[int, int]] = []
    high = 0
    for start, end in sorted(joints):
        if start < high:
            continue  # inside what was taken for a string
        if pieces and start == high:
            low = pieces.pop()[0]
        else:
            if pieces:
                yield pieces
                pieces = []
            low = _string_start(data, start)
        rest = _REST.match(data, end, end + SPLIT)
        high = rest.end() if rest else end
        pieces += [(low, start), (end, high)]
    if pieces:
        yield pieces


def _string_start(data: bytes, stop: int) -> int:
    """Where the string begins that ends here, or SPLIT bytes before."""
    floor = max(0, stop - SPLIT)
    quote = data.rfind(b'"', floor, stop)
    while quote >= 0:
        back = quote
        while back > floor and data[back - 1] == 92:
            back -= 1
        if (quote - back) % 2 == 0:
            return quote + 1
        quote = data.rfind(b'"', floor, back)
    return floor


def _commas(data: bytes) -> Iterator[tuple[int, int]]:
    """Between the strings of a list of strings."""
    for first in _LIST.finditer(data):
        item: re.Match[bytes] | None = first
        for _ in range(LISTED):
            if item is None:
                break
            comma = _COMMA.search(data, max(item.start(), item.end() - 8), item.end())
            if comma is not None:
                yield comma.span()
            item = _ITEM.match(data, item.end())


LISTED = 64  # strings of a list


def _parts(pieces: list[tuple[int, int]], item: Finding) -> Iterator[Finding]:
    """Where a finding in the joined pieces stands in the text they are of."""
    at = 0
    for start, stop in pieces:
        low, high = max(item.start, at), min(item.end, at + stop - start)
        if low < high:
            yield Finding(start + low - at, start + high - at, item.rule)
        at += stop - start


# -- views ---------------------------------------------------------------------------------------

_ESCAPES = re.compile(
    rb"(?:\x1b|\\+(?:u001[bB]|x1[bB]|033|e))\[[0-9;?]{0,20}[A-Za-z]"  # colours
    rb"|%[0-9A-Fa-f]{2}"
    rb"|&(?:amp|quot|apos|lt|gt|#\d{1,4}|#x[0-9A-Fa-f]{1,4});"
    rb"|\\+u00[2-7][0-9A-Fa-f]|\\+/"
)
_ENTITIES = {b"amp": b"&", b"quot": b'"', b"apos": b"'", b"lt": b"<", b"gt": b">"}


def _windows(data: bytes, escapes: list[int], lines: bool) -> Iterator[tuple[int, int]]:
    """Yield stretches of text with escapes in them, as far as a name and its value lie apart."""
    low = high = end = -1  # end: of the line the last one is in
    for at in escapes:
        begin, finish = max(0, at - REACH), min(len(data), at + REACH)
        if lines:
            if at > end:
                begin = data.rfind(b"\n", begin, at) + 1 or begin
                end = _line_end(data, at)
            finish = min(finish, end)
        if begin <= high:
            high = max(high, finish)
            continue
        if high > 0:
            yield low, high
        low, high = begin, finish
    if high > 0:
        yield low, high


def _view(
    data: bytes, low: int, high: int, pattern: re.Pattern[bytes], meant: Callable[[bytes], bytes]
) -> _View:
    pieces: list[bytes] = []
    view = _View(b"", [], [], [])
    done, size = low, 0

    def add(piece: bytes, origin: int, end: int) -> None:
        nonlocal size
        if piece:
            view.starts.append(size)
            view.origins.append(origin)
            view.ends.append(end)
            pieces.append(piece)
            size += len(piece)

    for match in pattern.finditer(data, low, high):
        add(data[done : match.start()], done, 0)
        add(meant(match.group()), match.start(), match.end())
        done = match.end()
    add(data[done:high], done, 0)
    return view._replace(text=b"".join(pieces))


def _meant(escape: bytes) -> bytes:
    """The character an escape stands for; nothing for a colour."""
    if b"[" in escape:
        return b""
    if escape.startswith(b"%"):
        return bytes([int(escape[1:], 16)])
    if escape.startswith(b"&"):
        name = escape[1:-1]
        if name in _ENTITIES:
            return _ENTITIES[name]
        code = int(name[2:], 16) if name[1:2] in b"xX" else int(name[1:])
        return bytes([code]) if 9 <= code < 128 else b" "
    if escape.endswith(b"/"):
        return b"/"
    return bytes([int(escape[-2:], 16)])
