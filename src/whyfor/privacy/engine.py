"""Finding secrets in a text: all rules' anchors in one pass, then each looked at closely where
it stands.

Works on bytes, so that a transcript's line need not be decoded: a JSON string is text with
backslashes, and the patterns look through those. Every look is bounded, so hostile text costs
time in proportion to its size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import ahocorasick_rs

from whyfor.privacy.encoded import encoded_texts
from whyfor.privacy.findings import Finding
from whyfor.privacy.forms import FormFinder
from whyfor.privacy.name_finder import GENERIC, NamedSecretFinder
from whyfor.privacy.prose import LABEL
from whyfor.privacy.rules import AssignmentRule, Rules
from whyfor.privacy.shapes import decode_base64, is_hex, is_plain, is_random, is_stand_in
from whyfor.privacy.split_strings import finding_parts, joined_strings
from whyfor.privacy.views import (
    ESCAPE_MARKS,
    ESCAPES,
    escape_windows,
    escaped_word,
    line_end,
    meant_by,
    text_view,
)

DEPTH = 3  # base64 in base64 in base64
LONG = 1024
_Look = Callable[[bytes, int, int, int, int], Iterator[tuple[int, int, str]]]
_ESCAPE: list[_Look] = []
_MASK = re.compile(rb"\[REDACTED:[a-z0-9-]+(?:#\d+)?\]")


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
        self._formed = {rule.id for rule in rules.rules if not rule.near} - GENERIC

    def find(self, data: bytes, *, lines: bool = False) -> list[Finding]:
        """Secrets, in order, none overlapping another. With `lines`, nothing is read across a
        line's end.

        All labels count the same, whatever they say, so that what is found does not hang on a
        rule's name or a number.
        """
        if _MASK.search(data) is None:
            return self._find(data, lines)
        view = text_view(data, 0, len(data), _MASK, lambda _label: LABEL)
        return [
            Finding(*view.original(f.start, f.end), f.rule) for f in self._find(view.text, lines)
        ]

    def _find(self, data: bytes, lines: bool) -> list[Finding]:
        escapes: list[int] = []
        found = self._plain(data, lines, escapes)
        if any(_is_cut(data, item) for item in found):
            escapes = sorted([*escapes, *(item.start for item in found if _is_cut(data, item))])
        for low, high in escape_windows(data, escapes, lines):
            view = text_view(data, low, high, ESCAPES, meant_by)
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
        for pieces in joined_strings(data):
            text = b"".join(data[start:stop] for start, stop in pieces)
            for item in self._forms_in(text):
                parts = list(finding_parts(pieces, item))
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
                high = line_end(data, start)
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
        for start, end, text in encoded_texts(data):
            rule = self._inside(text, depth)
            if rule:
                found.append(Finding(start, end, rule))
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


def _is_cut(data: bytes, found: Finding) -> bool:
    """Return whether a secret may go on in letters that are escaped."""
    return data[found.start - 1 : found.start + 1] == b"\\u" or data.startswith(b"\\u", found.end)


def _order(finding: Finding) -> tuple[int, int, bool, str]:
    generic = finding.rule in GENERIC
    return finding.start, -finding.end, generic, finding.rule


def _joined(one: Finding, other: Finding) -> Finding:
    """Return two findings as one, under the first rule that is not a generic one."""
    rule = one.rule
    if rule in GENERIC and other.rule not in GENERIC:
        rule = other.rule
    return Finding(one.start, max(one.end, other.end), rule)


def _name_looks(rules: Rules) -> dict[bytes, list[_Look]]:
    """Return for each word of a name who looks at it: nobody at a decoy."""
    looks: dict[bytes, list[_Look]] = {decoy.encode(): [] for decoy in rules.decoys}
    looks |= dict.fromkeys(ESCAPE_MARKS, _ESCAPE)
    for kind in rules.names:
        finder = NamedSecretFinder(kind, rules.words)
        for word in _spellings(kind):
            looks[word.encode()] = [finder.look]
            looks |= dict.fromkeys(escaped_word(word), _ESCAPE)
    return looks


def _spellings(kind: AssignmentRule) -> Iterator[str]:
    """Yield the words of a kind of name in the ways they may be written, as they are looked for:
    in a text whose letters of ASCII are small."""
    for word in kind.words:
        yield word
        if not word.isascii():
            yield from (_small_ascii(word.capitalize()), _small_ascii(word.upper()))


def _small_ascii(word: str) -> str:
    return word.encode().lower().decode()


def _form_looks(rules: Rules) -> dict[bytes, list[_Look]]:
    """Return for each anchor of a form who looks at it."""
    looks: dict[bytes, list[_Look]] = {}
    for rule in rules.rules:
        look = FormFinder(rule).look
        for anchor in rule.anchors:
            looks.setdefault(anchor.encode(), []).append(look)
    return looks
