"""One session's redaction: secrets become `[REDACTED:rule#n]`, the same value the same number;
nothing else changes.

A transcript's line is changed in place, inside its strings, so its structure stays by
construction; that it did is checked all the same, and if it did not, nothing is handed out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from mmap import mmap

import ahocorasick_rs

from whyfor.model.errors import NotRedacted
from whyfor.privacy.engine import Engine
from whyfor.privacy.findings import Finding, join_findings
from whyfor.privacy.name_finder import GENERIC
from whyfor.privacy.records import RecordKeys, all_in_strings, check_records, is_number
from whyfor.privacy.shapes import is_hex, is_specific
from whyfor.privacy.spread import BEGINS, SpreadKey, in_public_key
from whyfor.privacy.spread import RULE as KEY_RULE
from whyfor.privacy.structure import IDENTITIES, PROTECTED, SEALED

ROUNDS = 16  # of looking at what replacing left; more would mean that it feeds on itself
# characters a value must have for its copies to be looked for where nothing else gives them away
FOLLOWED = 12
# rules whose secrets a person may have thought up: a word like any other
_THOUGHT_UP = GENERIC | frozenset(
    "url-password url-token curl-user command-password sql-password basic-auth cookie pgpass "
    "login-pair app-password bearer-token".split()
)


class Redactor:
    """Numbers values in the order they are met; one per session, so that a story still reads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.counts: Counter[str] = Counter()  # findings by rule
        self.labels: dict[bytes, str] = {}  # value → what stands in its place
        self._numbers: Counter[str] = Counter()
        self._followed: list[bytes] = []
        self._settled = 0  # how many of them are in the first automaton
        self._most: ahocorasick_rs.BytesAhoCorasick | None = None
        self._latest: ahocorasick_rs.BytesAhoCorasick | None = None

    # -- finding ----------------------------------------------------------------------------------

    def find(self, data: bytes, *, lines: bool = False) -> list[Finding]:
        """What must go. From now on the values are known, and their copies are found too."""
        found = self.learn(data, lines=lines)
        if lines and (spread := list(self.spread(data, SpreadKey()))):
            found = join_findings([*found, *spread])
        return self.with_copies(data, found, json=lines)

    def spread(
        self, data: bytes, key: SpreadKey, low: int = 0, high: int | None = None
    ) -> Iterator[Finding]:
        """Lines of a private key in records, one a line; what is found is known from now on."""
        high = len(data) if high is None else high
        known = RecordKeys(data)
        while low < high:
            if not key.open:
                begins = data.find(BEGINS, low, high)
                if begins < 0:
                    return
                low = data.rfind(b"\n", low, begins) + 1 or low
            stop = data.find(b"\n", low, high)
            stop = high if stop < 0 else stop
            for start, end in key.lines(data, low, stop):
                if known.key(start) not in PROTECTED:
                    self.know(data[start:end], KEY_RULE)
                    yield Finding(start, end, KEY_RULE)
            low = stop + 1

    def learn(self, data: bytes, *, lines: bool = False, json: bool = False) -> list[Finding]:
        """Return what gives itself away where it stands; from now on its value is known. With
        `json`, strings stay strings."""
        found = self.allowed_to_change(data, self.engine.find(data, lines=lines))
        if lines or json:
            found = all_in_strings(data, found)
            split = self.allowed_to_change(data, self.engine.find_split(data))
            if split:
                found = join_findings([*found, *split])
        for item in found:
            self.know(data[item.start : item.end], item.rule)
        return found

    def know(self, value: bytes, rule: str) -> bool:
        """Give a value its number; says whether its copies are worth looking for and were not
        looked for before."""
        value = _bare(value)
        if value in self.labels or rule in self.engine.replace:
            return False
        self._numbers[rule] += 1
        self.labels[value] = f"[REDACTED:{rule}#{self._numbers[rule]}]"
        word = value.decode("latin-1")
        if len(value) < FOLLOWED or is_hex(word) or b"\n" in value:
            return False
        if rule in _THOUGHT_UP and not is_specific(word):
            return False
        self._followed.append(value)
        self._latest = None
        return True

    def with_copies(
        self, data: bytes, found: list[Finding], *, json: bool = False
    ) -> list[Finding]:
        """Return findings with wherever else a known value stands: in a copy of the message, a
        key, a file's name; the same list if nowhere."""
        if not self._followed:
            return found
        starts = [item.start for item in found]
        copies: list[Finding] = []
        for start, end in sorted(self.copies(data), key=lambda span: (span[0], -span[1])):
            near = bisect_right(starts, start)
            if near and found[near - 1].end > start:
                continue
            if near < len(found) and found[near].start < end:
                continue
            if copies and start < copies[-1].end:
                continue
            rule = self.labels[data[start:end]][10:].split("#")[0]
            if rule == KEY_RULE and in_public_key(data, start):
                continue
            copies.append(Finding(start, end, rule))
        if not copies:
            return found
        copies = self.allowed_to_change(data, copies, copied=True)
        if json:
            copies = all_in_strings(data, copies)
        return sorted([*found, *copies])

    def copies(self, data: bytes | mmap) -> Iterator[tuple[int, int]]:
        """Many values in one automaton, the latest few in a second: making the first anew for
        each would never end."""
        if len(self._followed) > 2 * self._settled + 64:
            self._settled, self._most = len(self._followed), _automaton(self._followed)
            self._latest = None
        if self._latest is None:
            self._latest = _automaton(self._followed[self._settled :])
        for automaton in (self._most, self._latest):
            if automaton is not None:
                yield from (
                    (start, end) for _, start, end in automaton.find_matches_as_indexes(data)
                )

    def allowed_to_change(
        self, data: bytes, found: list[Finding], *, copied: bool = False
    ) -> list[Finding]:
        """Without those in ids, hashes and signatures of a JSON record: a session must stay
        itself."""
        if not found:
            return found
        kept, known = [], RecordKeys(data)
        for item in found:
            key = known.key(item.start)
            if key in SEALED or (key in IDENTITIES and (copied or item.rule in GENERIC)):
                continue
            kept.append(item)
        return kept

    # -- replacing --------------------------------------------------------------------------------

    def masked(self, data: bytes, found: Iterable[Finding], *, json: bool = False) -> bytes:
        pieces, done = [], 0
        for item in found:
            label = self.label(data[item.start : item.end], item.rule).encode()
            pieces += [
                data[done : item.start],
                b'"%b"' % label if json and is_number(data, item) else label,
            ]
            self.counts[item.rule] += 1
            done = item.end
        return b"".join([*pieces, data[done:]])

    def label(self, value: bytes, rule: str) -> str:
        """What stands in the place of a value; without a number if it is not known."""
        return (
            self.engine.replace.get(rule) or self.labels.get(_bare(value)) or f"[REDACTED:{rule}]"
        )

    def plain(self, data: bytes) -> bytes:
        """A text without its secrets. What is found in the result goes too, so that twice is the
        same as once."""
        return self.until_nothing_is_found(data, self.find)

    def until_nothing_is_found(self, data: bytes, find: Callable[[bytes], list[Finding]]) -> bytes:
        for _ in range(ROUNDS):
            found = find(data)
            if not found:
                return data
            data = self.masked(data, found)
        raise NotRedacted(
            "redaction does not come to an end on this text",
            "Nothing was written. Please report it.",
        )

    def jsonl(self, data: bytes) -> bytes:
        """Whole lines of a transcript; each still parses to the same structure."""
        for _ in range(ROUNDS):
            found = self.find(data, lines=True)
            if not found:
                return data
            redacted = self.masked(data, found, json=True)
            check_records(data, redacted)
            data = redacted
        raise NotRedacted(
            "redaction does not come to an end on these records",
            "Nothing was written. Please report it.",
        )


def _automaton(values: list[bytes]) -> ahocorasick_rs.BytesAhoCorasick | None:
    if not values:
        return None
    return ahocorasick_rs.BytesAhoCorasick(
        values, matchkind=ahocorasick_rs.MatchKind.LeftmostLongest
    )


def _bare(value: bytes) -> bytes:
    return value.replace(b"\\/", b"/")
