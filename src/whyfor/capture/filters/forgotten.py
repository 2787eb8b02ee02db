"""Keeps forgotten text out: records and strings are recognised by their salted digests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from whyfor.agents import AGENTS
from whyfor.model.gaps import Gap, join_gaps, runs
from whyfor.model.sources import Source
from whyfor.privacy import private
from whyfor.privacy.json_spans import Span, encode_text, strings, unescape
from whyfor.store.tombstones import Tombstones

__all__ = ["Forgotten", "Span", "TextPattern", "lines_with_ends", "messages", "narrowed", "strings"]

_SPELLINGS = 3  # how deep a text may be written in JSON inside of JSON


class Forgotten:
    """Examines every run of bytes before it is stored."""

    def __init__(self, tombstones: Tombstones) -> None:
        self.stones = tombstones

    def __bool__(self) -> bool:
        return bool(self.stones.records or self.stones.strings)

    def narrowed(
        self, source: Source, start: int, kept: bytes, gaps: list[Gap]
    ) -> tuple[bytes, list[Gap]]:
        """Return the bytes about to be stored, and their gaps, without what was forgotten."""
        spans = self.hides(source.agent, source.session_id, source.framing, kept)
        return narrowed(kept, start, gaps, spans) if spans else (kept, gaps)

    def hides(self, agent: str, session_id: str, framing: str, kept: bytes) -> list[Span]:
        """Return which of these bytes of a session were forgotten."""
        session = f"{agent}:{session_id}"
        known = self.stones.records.get(session, set())
        if framing == "blob":
            return [(0, len(kept))] if known and self.stones.line(session, kept) in known else []
        found: list[Span] = []
        if known and framing != "document":
            torn = {int(size) for size, mark, _ in (name.partition("-") for name in known) if mark}
            for span, line in lines_with_ends(kept):
                names = [
                    self.stones.line(session, line),
                    *(self.stones.torn(session, line, size) for size in torn),
                ]
                if not known.isdisjoint(names):
                    found.append(span)
        elif known:
            for message, words in messages(agent, kept):
                if self.stones.line(session, message) in known:
                    found += words
        if self.stones.strings:
            found += (
                span
                for span, text in strings(kept)
                if self.stones.string(text) in self.stones.strings
            )
        return found


def messages(agent: str, document: bytes) -> Iterator[tuple[bytes, list[Span]]]:
    """Yield the messages of a session that is one document, each with the spans of its text."""
    for first, last in private.elements(
        document, frozenset(name.encode() for name in AGENTS[agent].lists)
    ):
        element = document[first:last]
        try:
            whole = msgspec.json.encode(msgspec.json.decode(element), order="deterministic")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            whole = element
        yield whole, [(first + low, first + high) for low, high in private.everything(element)]


def narrowed(
    kept: bytes, start: int, gaps: Sequence[Gap], spans: Iterable[Span]
) -> tuple[bytes, list[Gap]]:
    """Return the bytes without some spans, and the gaps of the source after that."""
    more: list[Gap] = []
    places, at = [], 0
    for offset, run in runs(kept, start, gaps):
        places.append((at, at + len(run), offset))
        at += len(run)
    left, done = [], 0
    for first, last in sorted(spans):
        first = max(first, done)
        if first >= last:
            continue
        left.append(kept[done:first])
        done = last
        for low, high, offset in places:
            if low < last and first < high:
                more.append((offset + max(first, low) - low, min(last, high) - max(first, low)))
    left.append(kept[done:])
    return b"".join(left), join_gaps([*gaps, *more])


def lines_with_ends(data: bytes) -> Iterator[tuple[Span, bytes]]:
    """Yield the lines that are not blank; each span includes the line's end."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at) + 1 or len(data)
        line = data[at:end].rstrip(b"\r\n")
        if line and not line.isspace():
            yield (at, end), line
        at = end


class TextPattern:
    """A text in any form in which JSON, or JSON inside JSON, may contain it."""

    def __init__(self, text: str) -> None:
        import json  # here: an ingest has no needle

        forms = {text}
        for _ in range(_SPELLINGS):
            forms |= {
                json.dumps(form, ensure_ascii=ascii)[1:-1]
                for form in forms
                for ascii in (True, False)
            }
        self._forms = tuple(forms)
        self._raw = tuple(map(encode_text, forms))
        units = re.findall("....", text.encode("utf-16-be", "surrogatepass").hex())
        self._escapes = {f"\\u{form}".encode() for unit in units for form in (unit, unit.upper())}
        if "/" in text:
            self._escapes.add(b"\\/")

    def stands_in(self, data: bytes) -> bool:
        """Return whether the text is in these bytes, also where letters are written as needless
        escapes."""
        if any(form in data for form in self._raw):
            return True
        odd = any(escape in data for escape in self._escapes)
        return odd and any(self.said_in(text) for _, text in strings(data))

    def said_in(self, text: str) -> bool:
        for _ in range(_SPELLINGS):
            if any(form in text for form in self._forms):
                return True
            if "\\" not in text:
                return False
            quoted = encode_text(text).replace(b'\\"', b"'").replace(b'"', b"'")
            text = unescape(quoted.replace(b"\n", b" "))
        return False
