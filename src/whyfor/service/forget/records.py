"""Which bytes of the stored segments are to be forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

import msgspec

from whyfor.agents import AGENTS, decode
from whyfor.agents.base import Framing, RecordReader, SourceShape
from whyfor.capture.filters.forgotten import TextPattern, lines_with_ends, messages, narrowed
from whyfor.model.errors import StoreError
from whyfor.model.findings import Sink
from whyfor.model.gaps import holes
from whyfor.model.sessions import SessionName
from whyfor.model.sources import UnparsedRecord
from whyfor.privacy.json_spans import Span, strings
from whyfor.store.blobs import Blobs
from whyfor.store.journal import SegmentEntry
from whyfor.store.tombstones import Tombstones

_UUID = re.compile(rb'"uuid"\s*:\s*"([\w-]{1,64})"')


class ForgetRequest(msgspec.Struct):
    """What somebody wants forgotten; subagents are named with their sessions."""

    sessions: set[SessionName] = set()
    commits: set[str] = set()
    events: dict[SessionName, set[int]] = {}  # keys of events whose records go
    words: dict[SessionName, list[TextPattern]] = {}  # the beginnings of those events' texts
    pattern: TextPattern | None = None
    signals_before: int | None = None
    new_salt: bool = False  # the one that digests were made with is lost for good

    def holds_text(self, data: bytes) -> bool:
        """Whether the text that is to be forgotten stands in these bytes."""
        return self.pattern is not None and self.pattern.stands_in(data)


class SourceRewrite:
    """One source on its way through the journal, which may call it by several paths."""

    def __init__(self, entry: SegmentEntry) -> None:
        self.path = entry.path
        self.framing = entry.framing
        self.name: SessionName = (entry.agent, entry.session_id)
        self.agent, self.session_id, self.parent = entry.agent, entry.session_id, entry.parent
        self.gone = False
        self.touched = False
        self._shape = SourceShape(
            cast(Framing, entry.framing),
            entry.session_id,
            entry.parent,
            entry.sidecar,
            entry.cwd,
        )
        self._reader: tuple[int, RecordReader] | None = None

    def new_reader(self) -> RecordReader:
        return AGENTS[self.agent].reader(self._shape, {})

    def reader(self, generation: int) -> RecordReader:
        """Return the reader of a generation, which is given one record after the other, as
        ingest does."""
        if self._reader is None or self._reader[0] != generation:
            self._reader = generation, self.new_reader()
        return self._reader[1]

    def read(self, reader: RecordReader, record: bytes, offset: int = 0) -> Sink:
        """Return what the JSON values of a record tell; nothing if it cannot be read."""
        sink = Sink(self.session_id, self.parent)
        found = decode.decode_line(record, 0)
        if not isinstance(found, UnparsedRecord):
            for index, each in enumerate(found):
                reader.read(each, offset + index, record, sink)
        return sink


class RecordFinder:
    """Finds the records and strings that go, and collects the digests they are known again by."""

    def __init__(self, request: ForgetRequest, tombstones: Tombstones) -> None:
        self.request = request
        self.tombstones = tombstones
        self.has_titles = False  # whether there are legacy titles at all
        self.leaves: set[int] = set()  # messages of forgotten sessions that have a legacy title
        self.titles: set[int] = set()  # keys of messages whose legacy titles go
        self.records = 0
        self.hidden: dict[str, set[str]] = {}  # by session, digests of records
        self.strings: set[str] = set()

    def spans(self, source: SourceRewrite, entry: SegmentEntry, kept: bytes) -> list[Span]:
        """Return where the bytes stand, among those kept of a segment, that go."""
        return [
            *self._with_text(source, kept, torn=entry.partial),
            *self._with_events(source, entry, kept),
            *self._with_titles(source, kept),
        ]

    def drop_titles(self, source: SourceRewrite, kept: bytes) -> None:
        """Note the titles that a forgotten file gave to messages, its own or others'."""
        for _, keys in _titles(source, kept):
            self.titles |= keys

    # -- by text ---------------------------------------------------------------------------------

    def _with_text(self, source: SourceRewrite, kept: bytes, *, torn: bool) -> Iterator[Span]:
        """Strings that hold the text; where it stands in none, the whole record."""
        if not self.request.holds_text(kept):
            return
        if source.framing == "blob":
            yield self._whole(source, kept)
            return
        records = (
            [((0, len(kept)), kept)] if source.framing == "document" else lines_with_ends(kept)
        )
        for (first, last), record in records:
            if not self.request.holds_text(record):
                continue
            held = self._strings_with_text(record)
            self.records += 1
            if held:
                yield from ((first + low, first + high) for low, high in held)
            else:
                self._hide(source, record, torn=torn)
                yield first, last

    def _strings_with_text(self, record: bytes) -> list[Span]:
        """Return the strings that hold the text; none if it also stands outside of them."""
        pattern = self.request.pattern
        assert pattern is not None
        held = [(span, text) for span, text in strings(record) if pattern.said_in(text)]
        spans = [span for span, _ in held]
        rest, _ = narrowed(record, 0, (), spans)
        if pattern.stands_in(rest):
            return []
        self.strings |= {self.tombstones.string(text) for _, text in held}
        return spans

    # -- by event --------------------------------------------------------------------------------

    def _with_events(
        self, source: SourceRewrite, entry: SegmentEntry, kept: bytes
    ) -> Iterator[Span]:
        """Records that told one of the events."""
        wanted = self.request.events.get(source.name)
        if not wanted:
            return
        if source.framing == "blob":
            if _blob_keys(source, entry, kept) & wanted:
                yield self._whole(source, kept)
        elif source.framing == "document":
            yield from self._in_document(source, kept, wanted)
        else:
            yield from self._in_lines(source, entry, kept, wanted)

    def _in_lines(
        self, source: SourceRewrite, entry: SegmentEntry, kept: bytes, wanted: set[int]
    ) -> Iterator[Span]:
        reader = source.reader(entry.generation)
        for offset, span, record in placed_lines(entry, kept):
            told = _keys(source.read(reader, record, offset))
            if told & wanted or (not told and self._repeats(source, record)):
                self.records += 1
                self._hide(source, record)
                yield span

    def _repeats(self, source: SourceRewrite, record: bytes) -> bool:
        """Whether a line that tells no event repeats what the events said: the last prompt, a
        queue, a snapshot."""
        patterns = self.request.words.get(source.name, ())
        return any(pattern.stands_in(record) for pattern in patterns)

    def _in_document(self, source: SourceRewrite, kept: bytes, wanted: set[int]) -> Iterator[Span]:
        """Words of a session that is one document: it stays one."""
        reader = source.reader(-1)
        for message, words in messages(source.agent, kept):
            if _keys(source.read(reader, message)) & wanted:
                self.records += 1
                self._hide(source, message)
                yield from words

    # -- by title --------------------------------------------------------------------------------

    def _with_titles(self, source: SourceRewrite, kept: bytes) -> Iterator[Span]:
        """Titles that another file gives to messages of a forgotten session."""
        if not self.leaves:
            return
        for (first, last), keys in _titles(source, kept):
            if keys & self.leaves:
                self.titles |= keys
                self.records += 1
                self._hide(source, kept[first:last].rstrip(b"\r\n"))
                yield first, last

    # -- digests ---------------------------------------------------------------------------------

    def _whole(self, source: SourceRewrite, kept: bytes) -> Span:
        self.records += 1
        self._hide(source, kept)
        return 0, len(kept)

    def _hide(self, source: SourceRewrite, record: bytes, *, torn: bool = False) -> None:
        session = f"{source.agent}:{source.session_id}"
        if torn:
            digest = self.tombstones.torn(session, record, len(record))
        else:
            digest = self.tombstones.line(session, record)
        self.hidden.setdefault(session, set()).add(digest)


def placed_lines(entry: SegmentEntry, kept: bytes) -> Iterator[tuple[int, Span, bytes]]:
    """Yield each line of the kept bytes: its place in the source, its place here, and itself."""
    missing = holes(entry.start, entry.gaps)
    for span, line in lines_with_ends(kept):
        skipped = sum(size for place, size in missing if place <= span[0])
        yield entry.start + span[0] + skipped, span, line


def named_messages(blobs: Blobs, agent: str, digest: str) -> set[int]:
    """Return the keys by which a legacy title may name the messages of a segment."""
    try:
        kept = blobs.get(digest)
    except StoreError:
        return set()
    reader, sink = AGENTS[agent].reader(SourceShape("lines", ""), {}), Sink("")
    for ident in set(_UUID.findall(kept)):
        record = {"type": "summary", "summary": "any", "leafUuid": ident.decode()}
        reader.read(record, 0, b"", sink)
    return {key for key, _ in sink.main.leaf_titles}


def _titles(source: SourceRewrite, kept: bytes) -> Iterator[tuple[Span, set[int]]]:
    """Lines that give a legacy title to a message, with the keys it may have."""
    if source.framing != "lines" or b'"leafUuid"' not in kept:
        return
    for span, line in lines_with_ends(kept):
        if b'"leafUuid"' not in line:
            continue
        sink = source.read(source.new_reader(), line)
        if sink.main.leaf_titles:
            yield span, {key for key, _ in sink.main.leaf_titles}


def _blob_keys(source: SourceRewrite, entry: SegmentEntry, kept: bytes) -> set[int]:
    name = source.path.replace("\\", "/").rsplit("/", 1)[-1]
    record = {"name": name, "text": kept.decode("utf-8", "replace")}
    sink = Sink(source.session_id, source.parent)
    source.reader(entry.generation).read(record, 0, kept, sink)
    return _keys(sink)


def _keys(sink: Sink) -> set[int]:
    return {event.key for bucket in sink.buckets.values() for event in bucket.events}
