"""One session's redaction: secrets become `[REDACTED:rule#n]`, the same value the same number;
nothing else changes.

A transcript's line is changed in place, inside its strings, so its structure stays by
construction; that it did is checked all the same, and if it did not, nothing is handed out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from mmap import mmap
from typing import Any, TypeVar, cast

import ahocorasick_rs
import msgspec

from whyfor.model.errors import NotRedacted
from whyfor.privacy.assignments import GENERIC, is_name_key, is_value_key
from whyfor.privacy.engine import SPLIT, Engine, Finding
from whyfor.privacy.json_spans import StringLiteral, literals
from whyfor.privacy.shapes import is_hex, is_random
from whyfor.privacy.spread import BEGINS, SpreadKey
from whyfor.privacy.spread import RULE as KEY_RULE
from whyfor.privacy.structure import IDENTITIES, PROTECTED, SEALED

ROUNDS = 16  # of looking at what replacing left; more would mean that it feeds on itself
# characters a value must have for its copies to be looked for where nothing else gives them away
FOLLOWED = 12
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_decode = msgspec.json.Decoder().decode
T = TypeVar("T")


class Redactor:
    """Numbers values in the order they are met; one per session, so that a story still reads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.counts: Counter[str] = Counter()  # findings by rule
        self.labels: dict[bytes, str] = {}  # value → what stands in its place
        self._numbers: Counter[str] = Counter()
        self._followed: list[bytes] = []
        self._settled = 0  # how many of them are in the first automaton
        self._key = SpreadKey()  # over the strings of a structure
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
        known = _Strings(data)
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
        found = self._allowed_to_change(data, self.engine.find(data, lines=lines))
        if lines or json:
            found = _each_in_strings(data, found)
            split = self._allowed_to_change(data, self.engine.find_split(data))
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
        if rule in GENERIC and not is_random(word, 12):
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
            copies.append(Finding(start, end, self.labels[data[start:end]][10:].split("#")[0]))
        if not copies:
            return found
        copies = self._allowed_to_change(data, copies, copied=True)
        if json:
            copies = _each_in_strings(data, copies)
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

    def _allowed_to_change(
        self, data: bytes, found: list[Finding], *, copied: bool = False
    ) -> list[Finding]:
        """Without those in ids, hashes and signatures of a JSON record: a session must stay
        itself."""
        if not found:
            return found
        kept, known = [], _Strings(data)
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
        return self._until_nothing_is_found(data, self.find)

    def _until_nothing_is_found(self, data: bytes, find: Callable[[bytes], list[Finding]]) -> bytes:
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
            _check(data, redacted)
            data = redacted
        raise NotRedacted(
            "redaction does not come to an end on these records",
            "Nothing was written. Please report it.",
        )

    def text(self, value: str, name: str = "") -> str:
        """One string; its name is evidence too."""
        if not value:
            return value
        raw = value.encode("utf-8", "surrogatepass")
        self._follow_key(raw)
        if name and _TELLING.search(name):
            clean = self._until_nothing_is_found(raw, lambda data: self._find_named(data, name))
        else:
            clean = self.plain(raw)
        return value if clean is raw else clean.decode("utf-8", "surrogatepass")

    def _find_named(self, data: bytes, name: str) -> list[Finding]:
        """As if it stood in a record, behind its name; nothing else in the name's sight is
        learnt of that."""
        prefix = f'"{name}": "'.encode("utf-8", "surrogatepass")
        quoted = data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        wrapped = b'%b%b"' % (prefix, quoted)
        found = []
        for item in self._allowed_to_change(wrapped, self.engine.find(wrapped)):
            low, high = max(item.start, len(prefix)), min(item.end, len(wrapped) - 1)
            if low < high:
                start, end = (
                    len(_unquoted(wrapped[len(prefix) : _past_escape(wrapped, at)]))
                    for at in (low, high)
                )
                found.append(Finding(start, end, item.rule))
        found = join_findings([*found, *self._allowed_to_change(data, self.engine.find(data))])
        for item in found:
            self.know(data[item.start : item.end], item.rule)
        return self.with_copies(data, found)

    def _follow_key(self, data: bytes) -> None:
        """Learn the lines of a private key that earlier strings of the structure began."""
        # a key or a kind is no line of a file
        if len(data) >= FOLLOWED and (self._key.open or BEGINS in data):
            for start, end in self._key.lines(data, 0, len(data)):
                self.know(data[start:end], KEY_RULE)

    def _learn_split(self, texts: list[str]) -> None:
        """Learn the parts of a secret that begins in one of these strings and ends in the next."""
        for one, other in pairwise(texts):
            if one and other:
                record = msgspec.json.encode([one[-SPLIT:], other[:SPLIT]])
                for item in self.engine.find_split(record):
                    self.know(record[item.start : item.end], item.rule)

    def _identity(self, value: str, name: str) -> str:
        """An id stays what it is, unless somebody put a secret there that has a form of its own."""
        if name in SEALED:
            return value
        raw = value.encode("utf-8", "surrogatepass")
        clean = self._until_nothing_is_found(raw, self._find_formed)
        return value if clean is raw else clean.decode("utf-8", "surrogatepass")

    def _find_formed(self, data: bytes) -> list[Finding]:
        found = [item for item in self.engine.find(data) if item.rule not in GENERIC]
        for item in found:
            self.know(data[item.start : item.end], item.rule)
        return found

    def anything(self, value: T, name: str = "") -> T:
        """Every string in a structure, keys included; ids, hashes and signatures stay."""
        result: Any = value
        if isinstance(value, str):
            result = (
                self._identity(value, name.lower())
                if name.lower() in PROTECTED
                else self.text(value, name)
            )
        elif isinstance(value, dict):
            result = self._object(value, name)
        elif isinstance(value, list | tuple | set | frozenset):
            kind: Any = type(value)
            if isinstance(value, list | tuple) and len(value) > 1:
                self._learn_split([_text_of(item) for item in value])
            items = [self.anything(item, name) for item in value]
            result = kind(*items) if hasattr(value, "_fields") else kind(items)
        elif isinstance(value, msgspec.Struct):
            changed = {f: self.anything(getattr(value, f), f) for f in value.__struct_fields__}
            result = type(value)(**changed)
        return cast(T, result)

    def _object(self, value: dict[Any, Any], name: str) -> dict[Any, Any]:
        said = _said_name(value)
        made = {}
        for key, item in value.items():
            own = key if isinstance(key, str) else name
            named = said and is_value_key(own) and not _TELLING.search(own)
            made[self.anything(key)] = self.anything(item, said if named else own)
        return made


def _automaton(values: list[bytes]) -> ahocorasick_rs.BytesAhoCorasick | None:
    if not values:
        return None
    return ahocorasick_rs.BytesAhoCorasick(
        values, matchkind=ahocorasick_rs.MatchKind.LeftmostLongest
    )


_TELLING = re.compile(r"(?i)pass|pwd|secret|token|key|auth|cred")


def _said_name(value: dict[Any, Any]) -> str:
    """The name that an object gives its value, where that promises a secret: {"name": "API_KEY",
    "value": …}."""
    keys = [key for key in value if isinstance(key, str)]
    if not any(map(is_value_key, keys)):
        return ""
    names = (value[key] for key in keys if is_name_key(key))
    return next(
        (
            name
            for name in names
            if isinstance(name, str) and len(name) < 100 and _TELLING.search(name)
        ),
        "",
    )


def _text_of(item: object) -> str:
    """The words of a block of a message; nothing of anything else."""
    if isinstance(item, dict):
        item = item.get("text")
    elif isinstance(item, msgspec.Struct):
        item = getattr(item, "text", None)
    return item if isinstance(item, str) else ""


def join_findings(found: Iterable[Finding], above: str = "") -> list[Finding]:
    """What overlaps is one, under the name of the longer, or the one that is above all others."""
    result: list[Finding] = []
    for item in sorted(found):
        if result and item.start < result[-1].end:
            last = result[-1]
            longer = last if last.end - last.start >= item.end - item.start else item
            rule = above if above in (last.rule, item.rule) else longer.rule
            result[-1] = Finding(last.start, max(last.end, item.end), rule)
        else:
            result.append(item)
    return result


def _unquoted(text: bytes) -> bytes:
    return re.sub(rb"\\([\\\"])", rb"\1", text)


def _bare(value: bytes) -> bytes:
    return value.replace(b"\\/", b"/")


class _Strings:
    """Which key a place in JSON text belongs to."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._low = self._high = -1  # of the line that was read last
        self._literals: list[StringLiteral] = []

    def key(self, at: int) -> str:
        """In small letters; nothing if the text is not JSON here, or the place is in a key."""
        if not self._low <= at < self._high:
            self._read(at)
        index = bisect_right(self._literals, at, key=_quote) - 1
        if index < 0:
            return ""
        literal = self._literals[index]
        if literal.is_key or literal.stop + literal.closed <= at:
            return ""
        return literal.key.decode("latin-1").lower()

    def _read(self, at: int) -> None:
        self._low, self._high = _line_around(self.data, at, at)
        line = self.data[self._low : self._high].lstrip()
        self._literals = []
        if line[:1] in (b"{", b"[", b'"', b"}"):
            self._literals = list(literals(self.data, self._low, self._high))


def _quote(literal: StringLiteral) -> int:
    return literal.start - 1


def _line_around(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the line begins that `start` is in, and where the one ends that `end` is in."""
    high = data.find(b"\n", end)
    return data.rfind(b"\n", 0, start) + 1, len(data) if high < 0 else high


def in_strings(data: bytes, item: Finding) -> Iterator[Finding]:
    """What of it lies in strings of its record, no escape cut in two: a key's lines in a list go
    one by one."""
    inside = [item]
    if b'"' in data[item.start : item.end]:
        inside = [
            Finding(max(item.start, found.start), min(item.end, found.stop), item.rule)
            for found in literals(data, *_line_around(data, item.start, item.end))
            if found.start < item.end and item.start < found.stop
        ]
    for part in inside:
        start, end = _past_escape(data, part.start), _past_escape(data, part.end)
        if start < end:
            yield Finding(start, end, part.rule)


def is_number(data: bytes, item: Finding) -> bool:
    """Whether it is a number in a record, no part of a string: what stands in its place must be
    a string."""
    if not _NUMBER.fullmatch(data, item.start, item.end):
        return False
    around = literals(data, *_line_around(data, item.start, item.end))
    return not any(found.start <= item.start < found.stop + found.closed for found in around)


def _past_escape(data: bytes, at: int) -> int:
    """The same place, or behind the escape it is inside of."""
    for back in range(1, 6):
        begin = at - back
        if begin >= 0 and data[begin] == 92:
            first = begin
            while first and data[first - 1] == 92:
                first -= 1
            size = 6 if data[begin + 1 : begin + 2] == b"u" else 2
            if (begin - first) % 2 == 0 and back < size:
                return begin + size
    return at


# -- what must not have changed ------------------------------------------------------------------


def _check(before: bytes, after: bytes) -> None:
    """What parsed still parses, to the same structure with the same ids."""
    old, new = before.split(b"\n"), after.split(b"\n")
    if len(old) != len(new):
        raise NotRedacted(
            "redaction would have changed the number of lines",
            "Nothing was written. Please report it.",
        )
    for number, (one, other) in enumerate(zip(old, new, strict=True), 1):
        if one != other and not intact(one, other):
            raise NotRedacted(
                f"redaction would have broken the record on line {number}",
                "Nothing was written. Please report it.",
            )


def intact(before: bytes, after: bytes) -> bool:
    """Whether one record is what it was but for strings that lost something."""
    try:
        value = _decode(before)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    try:
        return _same(value, _decode(after), "")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _same(one: Any, other: Any, key: str) -> bool:
    """Return whether two values differ in nothing but strings that may change."""
    todo = [(one, other, key)]
    while todo:
        a, b, name = todo.pop()
        if type(a) is not type(b):
            if not _is_redacted_number(a, b, name):
                return False
        elif isinstance(a, dict):
            if len(a) != len(b):
                return False
            todo += [(x, y, k.lower()) for (k, x), y in zip(a.items(), b.values(), strict=True)]
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            todo += [(x, y, name) for x, y in zip(a, b, strict=True)]
        elif a != b and (not isinstance(a, str) or name in SEALED):
            return False
    return True


def _each_in_strings(data: bytes, found: list[Finding]) -> list[Finding]:
    parts: list[Finding] = []
    for item in found:
        parts += in_strings(data, item)
    return parts


def _is_redacted_number(before: Any, after: Any, name: str) -> bool:
    if not isinstance(before, int | float) or not isinstance(after, str):
        return False
    return "[REDACTED:" in after and name not in PROTECTED
