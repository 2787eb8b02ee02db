"""Find all secrets in a text: read it until a pass finds no new value.

A value may be identified only by a name far below its first copy, so all values are collected
before any is replaced.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

import msgspec

from whyfor.model.errors import NotRedacted
from whyfor.privacy import private
from whyfor.privacy.engine import Engine
from whyfor.privacy.findings import Finding, join_findings
from whyfor.privacy.masked import MaskedText
from whyfor.privacy.passages import Passage, PassagePiece, is_record, passages, pieces
from whyfor.privacy.private_text import PRIVATE, PrivateText, private_records
from whyfor.privacy.records import in_strings, intact, is_number
from whyfor.privacy.redactor import ROUNDS, Redactor
from whyfor.privacy.spread import BEGINS, SpreadKey

DOCUMENT = 64 << 20  # bytes of one JSON document over many lines; a larger one is any text
Place = tuple[str, int, int]  # of a value where it is first met: rule, start, end


class Text:
    """A range of a file and the secrets in it, with positions in the whole file."""

    def __init__(
        self,
        engine: Engine,
        file: BinaryIO,
        start: int,
        stop: int,
        known: Iterable[tuple[bytes, str]] = (),
    ):
        self.file, self.start, self.stop = file, start, stop
        self.document = start == 0 and _is_document(file, stop)
        self.found: list[Finding] = []
        self.values: Counter[str] = Counter()  # different ones, by rule
        self.places: list[Place] = []
        self.labels = Redactor(engine)  # gives values their numbers, in the order of the text
        self._values = Redactor(engine)  # knows them in the order they are found
        self._hidden: list[tuple[int, int]] = []  # private in a document
        self._spread: list[Finding] = []  # lines of a private key that came one by one
        # a key that started before the last complete line and did not end
        self.open_key = False
        self._private_text = PrivateText()
        for value, rule in known:
            self.labels.know(value, rule)
            self._values.know(value, rule)

    def passages(self) -> Iterator[Passage]:
        return passages(self.file, self.start, self.stop)

    def read(self) -> None:
        """Find everything, then give numbers; raise NotRedacted if that never ends."""
        if self.document:
            self.file.seek(0)
            data = self.file.read(self.stop)
            self._hidden = (private.spans(data) or []) if private.marked(data) else []
        self._read_spread()
        self._pass(self._first_look)
        for _ in range(ROUNDS):
            known = len(self._values.labels)
            self._pass(self._for_copies)
            if len(self._values.labels) == known:
                break
        else:
            raise _endless()
        if self.found:
            self._number()

    def _read_spread(self) -> None:
        """Follow private keys from record to record, over all passages."""
        key = SpreadKey()
        for passage in self.passages():
            data = passage.data
            if not key.open and BEGINS not in data:
                continue
            whole = [PassagePiece(0, len(data), True)]
            for part in whole if self.document else pieces(data):
                low, high = max(part.start, passage.low), min(part.stop, passage.high)
                if part.records and low < high:
                    self._follow_key(key, passage, low, high)

    def _follow_key(self, key: SpreadKey, passage: Passage, low: int, high: int) -> None:
        """Look for lines of a key in a run of records."""
        data, at = passage.data, passage.at
        # the end of the last whole line: what has no line end yet may go on
        last = data.rfind(b"\n", low, high) + 1 or low
        for begin, end in ((low, last), (last, high)):
            for item in self._values.spread(data, key, begin, end):
                self._spread.append(Finding(at + item.start, at + item.end, item.rule))
            if begin < last:
                self.open_key = key.open

    def redacted(self) -> Iterator[tuple[Passage, bytes]]:
        """Yield each passage with its redacted text; records are checked to have the same
        structure."""
        done = self.start
        for passage in self.passages():
            kept = []
            for item in self.inside(passage):
                kept += [self._between(passage, done, item.start), self._label(passage, item)]
                done = item.end
            kept.append(self._between(passage, done, passage.stop))
            done = max(done, passage.stop)
            if len(kept) > 1:
                self._check_records(passage)
            yield passage, b"".join(kept)

    def check_document(self, clean: bytes) -> None:
        self.file.seek(0)
        if not intact(self.file.read(self.stop), clean):
            raise NotRedacted(
                "redaction would have broken this JSON document",
                "Nothing was written. Please report it.",
            )

    def inside(self, passage: Passage) -> list[Finding]:
        """Return the findings that start in a passage."""
        low, high = (bisect_left(self.found, (place,)) for place in (passage.start, passage.stop))
        return self.found[low:high]

    # -- passes -----------------------------------------------------------------------------------

    def _pass(self, look: Callable[[Passage], list[Finding]]) -> None:
        found: list[Finding] = []
        for passage in self.passages():
            for item in look(passage):
                here = Finding(passage.at + item.start, passage.at + item.end, item.rule)
                if found and here.start < found[-1].end + (here.rule == found[-1].rule == PRIVATE):
                    found[-1] = found[-1]._replace(end=max(found[-1].end, here.end))
                elif passage.start <= here.start < passage.stop:
                    found.append(here)
        self.found = found

    def _first_look(self, passage: Passage) -> list[Finding]:
        data, at = passage.data, passage.at
        parts = list(pieces(data))
        found: list[Finding] = []
        for part in parts:
            found += self._look(data, part)
        hidden = self._private(passage, parts)
        low = bisect_left(self._spread, (at,))
        high = bisect_left(self._spread, (at + len(data),))
        for item in self._spread[low:high]:
            hidden.append(Finding(item.start - at, item.end - at, item.rule))
        if hidden:
            found = join_findings([*hidden, *found], above=PRIVATE)
        return self._settled(data, found, found)

    def _for_copies(self, passage: Passage) -> list[Finding]:
        data, at = passage.data, passage.at
        low = bisect_right(self.found, at, key=lambda item: item.end)
        high = bisect_left(self.found, (at + len(data),))
        before = []
        for item in self.found[low:high]:
            start, end = max(0, item.start - at), min(len(data), item.end - at)
            before.append(Finding(start, end, item.rule))
        after = self._values.with_copies(data, before)
        new: list[Finding] = []
        if after is not before:
            for item in set(after) - set(before):
                new += self._fitted(data, item)
        return self._settled(data, sorted([*before, *new]), sorted(new))

    def _is_number(self, data: bytes, item: Finding) -> bool:
        """Return whether the finding is a number in a record or a document."""
        if not data[item.start : item.start + 1].isdigit() or not is_number(data, item):
            return False
        low, high = data.rfind(b"\n", 0, item.start) + 1, data.find(b"\n", item.end)
        return self.document or is_record(data, low, high)

    def _fitted(self, data: bytes, item: Finding) -> Iterable[Finding]:
        """Yield the finding, adjusted where a copy in a record starts with a letter of an escape
        sequence."""
        low, high = data.rfind(b"\n", 0, item.start) + 1, data.find(b"\n", item.end)
        return in_strings(data, item) if self.document or is_record(data, low, high) else [item]

    def _look(self, data: bytes, part: PassagePiece) -> Iterator[Finding]:
        whole = part.start == 0 and part.stop == len(data)
        text = data if whole else data[part.start : part.stop]
        for item in self._values.learn(text, lines=part.records, json=self.document):
            yield Finding(part.start + item.start, part.start + item.end, item.rule)

    def _settled(self, data: bytes, found: list[Finding], new: list[Finding]) -> list[Finding]:
        """Return findings with what is found once more after replacing, so that twice is the same
        as once."""
        for _ in range(ROUNDS):
            if not new:
                return found
            masked = MaskedText(data, found, self._values.engine.replace, self._is_number)
            again = list(self._look_again(masked, new))
            known = set(found)
            if again:
                found = join_findings([*found, *again], above=PRIVATE)
            new = [item for item in found if item not in known]
        if new:
            raise _endless()
        return found

    def _look_again(self, masked: MaskedText, new: list[Finding]) -> Iterator[Finding]:
        for part in masked.changed(new):
            for found in self._look(masked.text, part):
                item = masked.original(found)
                if item is not None:
                    yield item

    def _number(self) -> None:
        """Number the values in the order of the text; a value has the same rule everywhere."""
        numbered: list[Finding] = []
        met: set[tuple[str, str]] = set()
        for passage in self.passages():
            for item in self.inside(passage):
                if item.rule != PRIVATE:
                    value = passage.data[item.start - passage.at : item.end - passage.at]
                    known = len(self.labels.labels)
                    self.labels.know(value, item.rule)
                    if len(self.labels.labels) > known:
                        self.places.append((item.rule, item.start, item.end))
                    label = self.labels.label(value, item.rule)
                    if label.startswith("[REDACTED:"):
                        item = item._replace(rule=label[10:-1].split("#")[0])
                    met.add((item.rule, label))
                numbered.append(item)
        self.found = numbered
        self.values = Counter(rule for rule, _ in met)

    # -- private ----------------------------------------------------------------------------------

    def _private(self, passage: Passage, parts: list[PassagePiece]) -> list[Finding]:
        """Return what stands between private tags: in a record inside its strings, in text on to
        the tag that closes it or the end."""
        found: list[Finding] = []
        if self.document:
            for low, high in self._hidden:
                if passage.start <= low < passage.stop:
                    found.append(Finding(low - passage.at, high - passage.at, PRIVATE))
            return found
        lower = passage.data.lower()
        if not self._private_text.depth and b"private" not in lower:
            return found
        for part in parts:
            low, high = max(part.start, passage.low), min(part.stop, passage.high)
            if low >= high:
                continue
            if part.records:
                self._private_text.depth = 0
                found += private_records(passage.data, lower, low, high)
            else:
                found += self._private_text.between(lower, part, low, high)
        return found

    # -- replacing --------------------------------------------------------------------------------

    def _check_records(self, passage: Passage) -> None:
        """Raise NotRedacted if a record of this passage would not stay one."""
        done = passage.at
        data, at = passage.data, passage.at
        for item in self.inside(passage):
            if item.start < done:
                continue
            low = data.rfind(b"\n", 0, item.start - at) + 1
            high = data.find(b"\n", item.start - at)
            high = len(data) if high < 0 else high
            done = at + high
            if is_record(data, low, high) and not self._stays_intact(passage, low, high):
                raise NotRedacted(
                    f"redaction would have broken the record at byte {at + low:,}",
                    "Nothing was written. Please report it.",
                )

    def _stays_intact(self, passage: Passage, low: int, high: int) -> bool:
        data, at = passage.data, passage.at
        first = bisect_left(self.found, (at + low,))
        stop = bisect_left(self.found, (at + high,))
        kept, last = [], low
        for item in self.found[first:stop]:
            kept += [data[last : item.start - at], self._label(passage, item)]
            last = item.end - at
        kept.append(data[last:high])
        return last <= high and intact(data[low:high], b"".join(kept))

    def _between(self, passage: Passage, start: int, stop: int) -> bytes:
        low = max(start, passage.start) - passage.at
        return passage.data[low : max(low, stop - passage.at)]

    def _label(self, passage: Passage, item: Finding) -> bytes:
        """Return what stands in a finding's place."""
        low, high = item.start - passage.at, item.end - passage.at
        if item.rule != PRIVATE:
            label = self.labels.label(passage.data[low:high], item.rule).encode()
            number = self._is_number(passage.data, Finding(low, high, item.rule))
            return b'"%b"' % label if number else label
        after = passage.data[high : high + 8]
        # a key: two keys must not become equal
        if after[:1] == b'"' and after[1:].lstrip()[:1] == b":":
            return b"[REDACTED:private#%d]" % (bisect_left(self.found, item) + 1)
        return b"[REDACTED:private]"


def _is_document(file: BinaryIO, size: int) -> bool:
    """Return whether the file is one JSON value over many lines."""
    file.seek(0)
    first = file.read(4096).lstrip()
    line = first.split(b"\n", 1)[0]
    if size > DOCUMENT or first[:1] not in (b"{", b"[") or is_record(line, 0, len(line)):
        return False
    file.seek(0)
    try:
        msgspec.json.decode(file.read(size))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _endless() -> NotRedacted:
    return NotRedacted(
        "redaction does not come to an end on this text", "Nothing was written. Please report it."
    )
