"""The gate before storage: decides, record by record, what is stored, before anything is written.

Each record is decoded once and read ahead by the agent's own reader. Then the filters examine it in
this order: private, excluded, paused, forgotten. Private text inside a record that stays is
removed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import NamedTuple, cast

import msgspec

from whyfor.agents import AGENTS, decode
from whyfor.agents.base import Framing, RecordReader, SourceShape
from whyfor.capture import spool, tail
from whyfor.capture.filters.excluded import ExcludedFileFilter
from whyfor.capture.filters.forgotten import Forgotten
from whyfor.capture.filters.paused import PauseFilter
from whyfor.capture.filters.private import PrivateFilter, PrivateTurnState
from whyfor.capture.filters.record import ReadRecord, SourceLine, Verdict, source_lines
from whyfor.model.findings import Record, Sink
from whyfor.model.gaps import Gap, filled, join_gaps, without
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.privacy import private
from whyfor.privacy.json_spans import Span
from whyfor.store.protocol import StoreWriter

Decoded = Mapping[int, list[Record]]
"""The records of lines, by where the lines begin in their source."""


class ChunkLines:
    """The lines of a run of bytes. Mostly there is nothing to judge, and nobody asks for them."""

    def __init__(self, source: Source, chunk: tail.Chunk) -> None:
        self.source = source
        self.chunk = chunk
        self._all: list[SourceLine] | None = None

    @property
    def all(self) -> list[SourceLine]:
        if self._all is None:
            is_lines = self.source.framing == "lines"
            found = source_lines(self.chunk.data, self.chunk.start) if is_lines else ()
            self._all = list(found)
        return self._all

    def decoded(self, gaps: list[Gap]) -> Decoded:
        """Return the records of the lines that were decoded and have none of these gaps."""
        found: dict[int, list[Record]] = {}
        for line in self._all or ():
            records = line.known_records()
            if records is not None and not _has_gap(gaps, line):
                found[line.start] = records
        return found


class FilteredBytes(NamedTuple):
    """What is stored of a run of bytes."""

    data: bytes
    gaps: list[Gap]
    hiding: Record | None
    decoded: Decoded  # of the lines that were decoded to judge them, and are kept as they were


class CaptureGate:
    """Examines every run of bytes that ingest is about to store."""

    def __init__(
        self,
        writer: StoreWriter,
        paused: PauseFilter | None = None,
        forgotten: Forgotten | None = None,
    ) -> None:
        self.writer = writer
        self.paused = paused
        self.forgotten = forgotten
        by_place = paused is not None and paused.excluded.by_place
        self.excluded = paused.excluded if paused is not None and by_place else None
        self.records = 0  # that named a file of an excluded project
        self._known: dict[tuple[int, int], PrivateTurnState] | None = None
        self._sessions: dict[tuple[str, str], dict[int, PrivateTurnState]] = {}

    def kept(self, source: Source, chunk: tail.Chunk) -> FilteredBytes:
        hiding = None
        lines = ChunkLines(source, chunk)
        if source.agent == spool.HOOK:
            gaps = join_gaps(_spool_gaps(chunk))
        else:
            gaps, hiding = self._judged(source, chunk, lines)
            gaps = join_gaps([*gaps, *self._paused(source, chunk, lines)])
        data = without(chunk.data, chunk.start, gaps) if gaps else chunk.data
        if self.forgotten:
            data, gaps = self.forgotten.narrowed(source, chunk.start, data, gaps)
        return FilteredBytes(data, gaps, hiding, lines.decoded(gaps))

    def _judged(
        self, source: Source, chunk: tail.Chunk, lines: ChunkLines
    ) -> tuple[list[Gap], Record | None]:
        """Return what must go because of what the records say, and the state to remember."""
        before, around = self._hiding(source), self._around(source)
        if before is None and not around and not self.excluded and not private.marked(chunk.data):
            return [], None
        walk = _Walk(source, PrivateFilter(source, deepcopy(before) or PrivateTurnState(), around))
        if self.excluded is not None:
            cwd = source.cwd or self.writer.whereabouts(source.agent, source.session_id)
            walk.excluded = ExcludedFileFilter(self.excluded, cwd, walk.private)
        gaps = join_gaps(walk.gaps(chunk, lines.all))
        if walk.excluded is not None and not chunk.partial:
            self.records += walk.excluded.records
        after = walk.private.state
        if chunk.partial or after == (before or PrivateTurnState()):
            return gaps, None
        self._remember(source, after)
        return gaps, msgspec.to_builtins(after)

    def _paused(self, source: Source, chunk: tail.Chunk, lines: ChunkLines) -> Iterable[Gap]:
        """Return what must go because of when and where it was written."""
        if self.paused is None:
            return ()
        self.paused.pauses.refresh()
        if not self.paused or not chunk.data:
            return ()
        if source.framing == "blob" or source.sidecar:
            covered = self.paused.covers_file(source)
            return [(chunk.start, len(chunk.data))] if covered else ()
        if source.framing == "document":
            return self.paused.document_gaps(source, chunk.data)
        return self.paused.line_gaps(source, lines.all)

    # -- what is remembered ----------------------------------------------------------------------

    def _hiding(self, source: Source) -> PrivateTurnState | None:
        if self._known is None:
            self._known = {}
            for ident, generation, agent, session_id, body in self.writer.hiding():
                self._known[ident, generation] = found = msgspec.convert(body, PrivateTurnState)
                self._sessions.setdefault((agent, session_id), {})[ident] = found
        return self._known.get((source.id, source.generation)) if source.id else None

    def _around(self, source: Source) -> list[PrivateTurnState]:
        """Return the state of the session that this source is part of: as a subagent, or as a file
        beside its transcript."""
        if not source.parent and not source.sidecar:
            return []
        session = (source.agent, source.parent or source.session_id)
        return list(self._sessions.get(session, {}).values())

    def _remember(self, source: Source, hiding: PrivateTurnState) -> None:
        if source.id == 0:
            self.writer.save_source(source)
        assert self._known is not None
        self._known[source.id, source.generation] = hiding
        self._sessions.setdefault((source.agent, source.session_id), {})[source.id] = hiding


def _has_gap(gaps: list[Gap], line: SourceLine) -> bool:
    """Return whether something of a line is not kept; the gaps are in order."""
    last = bisect_left(gaps, (line.start + len(line.data), 0)) - 1
    return last >= 0 and sum(gaps[last]) > line.start


def _spool_gaps(chunk: tail.Chunk) -> Iterator[Gap]:
    """Return what a hook of an older version should not have written. A torn line means nothing and
    goes as well."""
    if not private.marked(chunk.data):
        return
    for line in source_lines(chunk.data, chunk.start):
        if not private.marked(line.text):
            continue
        header = line.text.find(b"\t") + 1
        spans = private.spans(line.text[header:])
        if spans is None or not header or chunk.partial:
            yield line.start, len(line.data)
        else:
            yield from _gaps(line.start + header, spans)


class _Walk:
    """One run of bytes, read ahead by the agent's own reader, which knows prompts and calls."""

    def __init__(self, source: Source, private_filter: PrivateFilter) -> None:
        self.source = source
        self.agent = AGENTS[source.agent]
        self.lists = frozenset(name.encode() for name in self.agent.lists)
        self.private = private_filter
        self.excluded: ExcludedFileFilter | None = None
        self.reader = self._reader(deepcopy(source.state))
        self.parts = private.Parts(*private_filter.state.split)
        self.partial = False

    def _reader(self, state: Record) -> RecordReader:
        source = self.source
        shape = SourceShape(
            cast(Framing, source.framing),
            source.session_id,
            source.parent,
            source.sidecar,
            source.cwd,
        )
        return self.agent.reader(shape, state)

    def gaps(self, chunk: tail.Chunk, lines: list[SourceLine]) -> Iterator[Gap]:
        self.partial = chunk.partial
        if self.source.framing == "lines":
            yield from self._lines(lines)
            return
        if self.source.framing == "blob":
            spans = self._blob(chunk.data)
        else:
            spans = self._document(chunk.data)
        yield from _gaps(0, [(0, len(chunk.data))] if spans is None else spans)

    def _lines(self, lines: list[SourceLine]) -> Iterator[Gap]:
        if self.agent.under({}) is not None:
            self._look_ahead(lines)
        state = self.private.state
        for number, line in enumerate(lines):
            goes_on = state.cut and number == 0
            is_cut = not self.partial and not line.is_whole
            state.cut = is_cut and (goes_on or private.marked(line.data))
            spans: list[Span] | None = []
            if goes_on:
                spans = None
            elif not line.data.isspace():
                spans = self._line(line)
            yield from _gaps(line.start, [(0, len(line.data))] if spans is None else spans)
            yield from _gaps(0, self.parts.late())
        state.keep_split(self.parts.message, self.parts.depth)

    # -- one piece -------------------------------------------------------------------------------

    def _line(self, line: SourceLine) -> list[Span] | None:
        """Return the spans of a line that must go; None for the whole line."""
        text = line.text
        spans = self.parts.spans(text, line.start, self.lists)
        if spans is None:
            return None
        shown = _shown(text, spans)
        found = decode.decode_line(shown, line.start) if spans else line.records()
        if isinstance(found, UnparsedRecord):
            # torn, or still being written: its turn is unknown
            return None if spans or self.private.is_doubtful or self._may_concern(text) else []
        verdict = self._judge(self._read(found, line.start, shown, marked=bool(spans)))
        if verdict is Verdict.DROP:
            return None
        if verdict is Verdict.HOLLOW:
            return private.everything(text)
        return [*spans, *self._retold(text, spans)]

    def _may_concern(self, text: bytes) -> bool:
        """Return whether a line that cannot be parsed may be about an excluded project."""
        return self.excluded is not None and (self.partial or self.excluded.may_concern(text))

    def _document(self, data: bytes) -> list[Span] | None:
        """Examine a file that is rewritten as a whole: each message by itself; messages that must
        go stay as empty ones."""
        spans = private.spans(data, self.lists) if private.marked(data) else []
        if spans is None:
            return None
        found = decode.decode_document(_shown(data, spans))
        if isinstance(found, UnparsedRecord):
            return None if spans or self.private.around else []
        self.private.state = PrivateTurnState()
        if private.elements(data, self.lists):
            return self._messages(data, spans)
        verdict = self._judge(self._read(found, 0, b"", marked=bool(spans)))
        return spans if verdict is Verdict.KEEP else None

    def _blob(self, data: bytes) -> list[Span] | None:
        """Examine a tool result that was too large for its transcript."""
        name = self.source.path.replace("\\", "/").rsplit("/", 1)[-1]
        sink = Sink(self.source.session_id, self.source.parent)
        self.reader.read({"name": name, "text": ""}, 0, b"", sink)
        verdict = self._judge(ReadRecord(self.agent, [], sink, marked=False))
        return private.text_spans(data) if verdict is Verdict.KEEP else None

    def _retold(self, line: bytes, spans: list[Span]) -> list[Span]:
        """Remove private turns from a record that repeats earlier messages."""
        state = self.private.state
        if not self.lists or not (spans or state.turns):
            return []
        if not private.elements(line, self.lists):
            return []
        is_open, turns = state.open, state.turns
        found = self._messages(line, spans)
        state.open, state.turns = is_open, turns
        return found

    def _messages(self, data: bytes, spans: list[Span]) -> list[Span]:
        """Examine the messages inside a record, each like a record."""
        reader, self.reader = self.reader, self._reader({})
        state = self.private.state
        state.open = False
        gone = list(spans)
        elements = private.elements(data, self.lists)
        for first, last in elements:
            low, high = bisect_left(spans, (first, 0)), bisect_left(spans, (last, 0))
            own = [(start - first, stop - first) for start, stop in spans[low:high]]
            message = data[first:last]
            if self._judge_message(message, first, own) is not Verdict.KEEP:
                gone += [(first + low, first + high) for low, high in private.everything(message)]
        # a title, a summary: made from the whole conversation
        if state.turns or state.whole:
            edges = [0, *(place for element in elements for place in element), len(data)]
            gone += [span for span in private.everything(data) if _is_outside(span, edges)]
        self.reader = reader
        return gone

    def _judge_message(self, message: bytes, place: int, spans: list[Span]) -> Verdict:
        shown = _shown(message, spans)
        found = decode.decode_line(shown, place)
        records = found if isinstance(found, list) else []
        sink = Sink(self.source.session_id, self.source.parent)
        for record in records:
            self.reader.read(self.agent.alone(record), place, shown, sink)
        return self._judge(ReadRecord(self.agent, records, sink, marked=bool(spans)))

    def _look_ahead(self, lines: list[SourceLine]) -> None:
        """Find private prompts and their answers first, because rows come in the order of messages,
        not of time."""
        reader = self._reader(deepcopy(self.source.state))
        for line in lines:
            text = line.text
            spans = (private.spans(text) if private.marked(text) else []) or []
            found = decode.decode_line(_shown(text, spans), line.start) if spans else line.records()
            for record in found if isinstance(found, list) else []:
                sink = Sink(self.source.session_id, self.source.parent)
                reader.read(record, line.start, text, sink)
                self.private.look_ahead(ReadRecord(self.agent, [record], sink, marked=bool(spans)))

    # -- a record --------------------------------------------------------------------------------

    def _read(self, records: list[Record], place: int, shown: bytes, *, marked: bool) -> ReadRecord:
        sink = Sink(self.source.session_id, self.source.parent)
        for index, record in enumerate(records):
            self.reader.read(record, place + index, shown, sink)
        return ReadRecord(self.agent, records, sink, marked=marked)

    def _judge(self, read: ReadRecord) -> Verdict:
        self.private.note(read)
        verdict = self.private.judge_hidden(read)
        if verdict is None and self.excluded is not None:
            verdict = self.excluded.judge(read)
        return self.private.judge_turn(read) if verdict is None else verdict


def _gaps(start: int, spans: Iterable[Span]) -> Iterator[Gap]:
    return ((start + low, high - low) for low, high in spans)


def _shown(data: bytes, spans: list[Span]) -> bytes:
    """Return the bytes as readers will see them."""
    if not spans:
        return data
    holes, missing = [], 0
    for low, high in spans:
        holes.append((low - missing, high - low))
        missing += high - low
    return filled(private.without(data, spans), 0, holes)


def _is_outside(span: Span, edges: list[int]) -> bool:
    """Return whether a span is between the elements, in none of them."""
    return bisect_right(edges, span[0]) % 2 == 1
