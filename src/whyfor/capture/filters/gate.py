"""What is not stored: the one place that decides it, record by record, before anything is
written.

Private text goes where it stands. A prompt that is nothing but private hides its turn: every
record up to the next prompt, the subagents it started, and what the agent derives from it later.

A session that ran elsewhere may still read and write files of an excluded project: the calls
that name one of its paths, and what came back, keep their structure and lose their words.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from enum import Enum
from typing import Any, NamedTuple, cast

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents import paths as agent_paths
from whyfor.agents.base import Agent, Framing, RecordReader, SourceShape, as_dict, as_str
from whyfor.capture import decode, spool, tail
from whyfor.capture.filters.excluded import Excluded
from whyfor.model.events import Event
from whyfor.model.findings import TITLE_AGENT, Bucket, Record, Sink
from whyfor.model.gaps import FILLER, Gap, filled, joined, without
from whyfor.model.ids import fold
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.model.times import parse_iso
from whyfor.privacy import private
from whyfor.store.protocol import StoreWriter

Span = tuple[int, int]
# what of a source's bytes from a place on was paused or excluded
Unwanted = Callable[[Source, bytes, int], list[Gap]]
# kept bytes, less what was forgotten
Narrowed = Callable[[Source, int, bytes, list[Gap]], tuple[bytes, list[Gap]]]
_MOST = 5000  # ids of a source that are remembered
_DERIVED = ("compaction",)
_ABSOLUTE = re.compile(rb"/[^\x00-\x1f\"'`<>|:*?\\]{2,1000}")


class FilteredBytes(NamedTuple):
    """What is stored of a run of bytes."""

    data: bytes
    gaps: list[Gap]
    hiding: Record | None = None


class PrivateTurnState(msgspec.Struct, omit_defaults=True):
    """What must be remembered of a source's private turns, to hide all that belongs to them. No
    word of theirs."""

    open: bool = False  # the turn goes on
    whole: bool = False  # the source is a subagent's that began in one
    turns: list[tuple[int | None, int | None]] = []  # from, to
    ids: list[int] = []  # of calls and messages in them
    # a message that has tags open, and how many: its next record may close them
    split: tuple[int, int] = (0, 0)
    cut: bool = False  # a line too long for one piece had tags in it: no more of it is kept

    def began(self, at: int | None) -> None:
        self.open = True
        self.turns = [*self.turns, (at, None)]

    def ended(self, at: int | None) -> None:
        self.open = False
        if self.turns and self.turns[-1][1] is None:
            self.turns = [*self.turns[:-1], (self.turns[-1][0], at)]

    def holds(self, at: int | None) -> bool:
        """Whether a private turn was going on then."""
        if at is None:
            return self.open
        return any(
            (since or 0) <= at and (until is None or at < until) for since, until in self.turns
        )


class CaptureGate:
    """Asked about every run of bytes that ingest is about to store."""

    def __init__(
        self,
        writer: StoreWriter,
        unwanted: Unwanted | None = None,
        narrowed: Narrowed | None = None,
        excluded: Excluded | None = None,
    ) -> None:
        self.writer = writer
        self.unwanted = unwanted
        self.narrowed = narrowed
        self.excluded = excluded if excluded is not None and excluded.by_place else None
        self.records = 0  # that named a file of an excluded project
        self._known: dict[tuple[int, int], PrivateTurnState] | None = None
        self._sessions: dict[tuple[str, str], dict[int, PrivateTurnState]] = {}

    def kept(self, source: Source, chunk: tail.Chunk) -> FilteredBytes:
        gaps, hiding = (
            self._spooled(chunk) if source.agent == spool.HOOK else self._transcript(source, chunk)
        )
        if self.unwanted is not None and (more := self.unwanted(source, chunk.data, chunk.start)):
            gaps = joined([*gaps, *more])
        data = without(chunk.data, chunk.start, gaps) if gaps else chunk.data
        if self.narrowed is not None:
            data, gaps = self.narrowed(source, chunk.start, data, gaps)
        return FilteredBytes(data, gaps, hiding)

    def _transcript(self, source: Source, chunk: tail.Chunk) -> tuple[list[Gap], Record | None]:
        before, around = self._hiding(source), self._around(source)
        if before is None and not around and not self.excluded and not private.marked(chunk.data):
            return [], None
        walk = _Walk(source, deepcopy(before) or PrivateTurnState(), around)
        if self.excluded is not None:
            walk.excluded = self.excluded
            walk.cwd = source.cwd or self.writer.whereabouts(source.agent, source.session_id)
        gaps = joined(walk.gaps(chunk))
        self.records += walk.elsewhere if not chunk.partial else 0
        if chunk.partial or walk.hiding == (before or PrivateTurnState()):
            return gaps, None
        self._remember(source, walk.hiding)
        return gaps, msgspec.to_builtins(walk.hiding)

    # -- what is remembered ----------------------------------------------------------------------

    def _hiding(self, source: Source) -> PrivateTurnState | None:
        if self._known is None:
            self._known = {}
            for ident, generation, agent, session_id, body in self.writer.hiding():
                self._known[ident, generation] = found = msgspec.convert(body, PrivateTurnState)
                self._sessions.setdefault((agent, session_id), {})[ident] = found
        return (
            self._known.get((source.id, source.generation)) if self._known and source.id else None
        )

    def _around(self, source: Source) -> list[PrivateTurnState]:
        """Of the session that this is a part of: a subagent, or something kept beside a
        transcript."""
        if not self._sessions or not (source.parent or source.sidecar):
            return []
        return list(
            self._sessions.get((source.agent, source.parent or source.session_id), {}).values()
        )

    def _remember(self, source: Source, hiding: PrivateTurnState) -> None:
        if source.id == 0:
            self.writer.save_source(source)
        assert self._known is not None
        self._known[source.id, source.generation] = hiding
        self._sessions.setdefault((source.agent, source.session_id), {})[source.id] = hiding

    # -- the spool -------------------------------------------------------------------------------

    def _spooled(self, chunk: tail.Chunk) -> tuple[list[Gap], None]:
        """What a hook of an older version may have let through. A torn line says nothing, so
        nothing of it stays."""
        gaps: list[Gap] = []
        if not private.marked(chunk.data):
            return gaps, None
        for first, last in _lines(chunk.data):
            line = chunk.data[first:last].rstrip(b"\r\n")
            if not private.marked(line):
                continue
            header = line.find(b"\t") + 1
            spans = private.spans(line[header:])
            if spans is None or not header or chunk.partial:
                gaps.append((chunk.start + first, last - first))
            else:
                gaps += [(chunk.start + first + header + low, high - low) for low, high in spans]
        return joined(gaps), None


class _Does(Enum):
    """What becomes of a record."""

    STAY = 0
    HOLLOW = 1  # its structure stays
    GO = 2


class _Walk:
    """One run of bytes, read ahead by the agent's own reader: it knows what a prompt is, and a
    call."""

    def __init__(
        self, source: Source, hiding: PrivateTurnState, around: list[PrivateTurnState]
    ) -> None:
        self.source = source
        self.agent: Agent = AGENTS[source.agent]
        self.lists = frozenset(name.encode() for name in self.agent.lists)
        self.hiding = hiding
        self.around = around
        self.known = {ident for one in (hiding, *around) for ident in one.ids}
        self.reader = self._reader(deepcopy(source.state))
        self.at: int | None = None
        self.begun = source.position > 0
        self.parts = private.Parts(*hiding.split)
        self.excluded: Excluded | None = None
        self.cwd: str | None = None
        self.partial = False
        self.elsewhere = 0  # records that named a file of an excluded project

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

    def gaps(self, chunk: tail.Chunk) -> Iterator[Gap]:
        data = chunk.data
        self.partial = chunk.partial
        if self.source.framing == "lines":
            if self.agent.under({}) is not None:
                self._look_ahead(data, chunk.start)
            for first, last in _lines(data):
                goes_on = self.hiding.cut and first == 0
                self.hiding.cut = (
                    not chunk.partial
                    and data[last - 1] != 10
                    and (goes_on or private.marked(data[first:last]))
                )
                if goes_on:
                    yield chunk.start, last
                    continue
                line = data[first:last].rstrip(b"\r\n")
                spans = self._line(line, chunk.start + first) if line and not line.isspace() else []
                if spans is None:
                    yield chunk.start + first, last - first
                else:
                    yield from ((chunk.start + first + low, high - low) for low, high in spans)
                yield from ((low, high - low) for low, high in self.parts.late())
            self.hiding.split = (
                (self.parts.message, self.parts.depth) if self.parts.depth else (0, 0)
            )
            return
        spans = self._blob(data) if self.source.framing == "blob" else self._document(data)
        yield from [(0, len(data))] if spans is None else ((low, high - low) for low, high in spans)

    # -- one piece -------------------------------------------------------------------------------

    def _line(self, line: bytes, offset: int) -> list[Span] | None:
        """What goes of a line; None is all of it."""
        spans = self.parts.spans(line, offset, self.lists)
        if spans is None:
            return None
        shown = _shown(line, spans)
        found = decode.records(shown, offset)
        # torn, or still being written: nobody can say to which turn it belongs
        if isinstance(found, UnparsedRecord):
            doubtful = self.hiding.turns or self.hiding.whole or (self.around and not self.begun)
            doubtful = doubtful or self._may_name_excluded(line)
            return None if spans or doubtful else []
        sink = Sink(self.source.session_id, self.source.parent)
        for index, record in enumerate(found):
            self.reader.read(record, offset + index, shown, sink)
        does = self._judged(found, sink, bool(spans))
        if does is _Does.GO:
            return None
        if does is _Does.HOLLOW:
            return private.everything(line)
        return [*spans, *self._retold(line, spans)]

    def _document(self, data: bytes) -> list[Span] | None:
        """A file rewritten in one piece: its messages are judged one by one, and stay as empty
        as they must be."""
        spans = private.spans(data, self.lists) if private.marked(data) else []
        found = None if spans is None else decode.document(_shown(data, spans))
        if spans is None or found is None or isinstance(found, UnparsedRecord):
            return None if spans is None or spans or self.around else []
        self.hiding = PrivateTurnState()
        if not private.elements(data, self.lists):
            sink = Sink(self.source.session_id, self.source.parent)
            for index, record in enumerate(found):
                self.reader.read(record, index, b"", sink)
            return spans if self._judged(found, sink, bool(spans)) is _Does.STAY else None
        return self._messages(data, spans, self._reader({}))

    def _blob(self, data: bytes) -> list[Span] | None:
        """A tool's result that was too large for its transcript."""
        name = self.source.path.replace("\\", "/").rsplit("/", 1)[-1]
        sink = Sink(self.source.session_id, self.source.parent)
        self.reader.read({"name": name, "text": ""}, 0, b"", sink)
        if self._judged([], sink, False) is not _Does.STAY:
            return None
        return private.text_spans(data)

    def _retold(self, line: bytes, spans: list[Span]) -> list[Span]:
        """A record that tells earlier messages again: of private turns it tells nothing either."""
        if (
            not self.lists
            or not (spans or self.hiding.turns)
            or not private.elements(line, self.lists)
        ):
            return []
        open_, turns = self.hiding.open, self.hiding.turns
        found = self._messages(line, spans, self._reader({}))
        self.hiding.open, self.hiding.turns = open_, turns
        return found or []

    def _messages(self, data: bytes, spans: list[Span], reader: RecordReader) -> list[Span] | None:
        """Messages inside a record, each judged like a record."""
        ours, self.reader = self.reader, reader
        self.hiding.open = False
        gone = list(spans)
        inside = private.elements(data, self.lists)
        for first, last in inside:
            low, high = bisect_left(spans, (first, 0)), bisect_left(spans, (last, 0))
            own = [(start - first, stop - first) for start, stop in spans[low:high]]
            shown = _shown(data[first:last], own)
            found = decode.records(shown, first)
            sink = Sink(self.source.session_id, self.source.parent)
            for record in [] if isinstance(found, UnparsedRecord) else found:
                self.reader.read(self.agent.alone(record), first, shown, sink)
            if (
                self._judged([] if isinstance(found, UnparsedRecord) else found, sink, bool(own))
                is not _Does.STAY
            ):
                gone += [
                    (first + low, first + high)
                    for low, high in private.everything(data[first:last])
                ]
        # a title, a summary: the agent made it of all that was said
        if self.hiding.turns or self.hiding.whole:
            edges = [0, *(place for element in inside for place in element), len(data)]
            gone += [span for span in private.everything(data) if _outside(span, edges)]
        self.reader = ours
        return gone

    def _look_ahead(self, data: bytes, start: int) -> None:
        """Rows come in the order of their messages, not of time: first which prompts are
        private, and who answered."""
        reader = self._reader(deepcopy(self.source.state))
        for first, last in _lines(data):
            line = data[first:last].rstrip(b"\r\n")
            spans = (private.spans(line) if private.marked(line) else []) or []
            found = decode.records(_shown(line, spans), start + first)
            for record in [] if isinstance(found, UnparsedRecord) else found:
                sink = Sink(self.source.session_id, self.source.parent)
                reader.read(record, start + first, line, sink)
                self._note([], sink)
                self._look_at(
                    record, [e for e in sink.main.events if e.kind == "user.prompt"], bool(spans)
                )

    def _look_at(self, record: Record, prompts: list[Event], marked: bool) -> None:
        own, above = self.agent.under(record) or ("", "")
        if prompts and marked and all(_is_empty(event.text, event.data) for event in prompts):
            if not self._knows(f"asked {above}"):
                self._learn([f"asked {above}"])
                self.hiding.began(self.at)
        elif prompts and self.hiding.open and (self.at or 0) > (self.hiding.turns[-1][0] or 0):
            self.hiding.ended(self.at)
        if own and self._knows(f"asked {above}"):
            self._learn([f"answer {own}"])

    def _judged_row(self, own: str, above: str, sink: Sink, marked: bool) -> _Does:
        if self._knows(f"answer {own}") or self._knows(f"answer {above}"):
            self._learn(_names(sink))
            return _Does.GO
        if self._knows(f"asked {own}") or (self._knows(f"asked {above}") and not marked):
            return _Does.HOLLOW
        return _Does.HOLLOW if self.hiding.turns and _is_derived(sink.main) else _Does.STAY

    # -- what becomes of a record -----------------------------------------------------------------

    def _judged(self, records: list[Record], sink: Sink, marked: bool) -> _Does:
        main, hiding = sink.main, self.hiding
        self._note(records, sink)
        if not self.begun:
            self.begun = True
            hiding.whole = (
                any(one.whole or one.holds(self.at) for one in self.around)
                and not self.source.sidecar
            )
        if hiding.whole or self._is_answer(sink):
            return self._gone(records, sink)
        if self.excluded is not None and self._names_excluded(records, sink):
            self.elsewhere += 1
            says = any(bucket.events for bucket in sink.buckets.values())
            return _Does.HOLLOW if says or any("uuid" in record for record in records) else _Does.GO
        if records and (place := self.agent.under(records[0])) is not None:
            return self._judged_row(*place, sink, marked)
        prompts = [event for event in main.events if event.kind == "user.prompt"]
        if prompts:
            if marked and all(_is_empty(event.text, event.data) for event in prompts):
                hiding.ended(self.at)
                hiding.began(self.at)
            else:
                hiding.ended(self.at)
            return _Does.STAY
        if hiding.open:
            return (
                _Does.HOLLOW if any(map(self.agent.begins, records)) else self._gone(records, sink)
            )
        return _Does.HOLLOW if hiding.turns and _is_derived(main) else _Does.STAY

    # -- files of excluded projects ---------------------------------------------------------------

    def _names_excluded(self, records: list[Record], sink: Sink) -> bool:
        """Whether a record names a file there, or is about a call that did; its calls are known
        from now on."""
        assert self.excluded is not None
        events = [event for bucket in sink.buckets.values() for event in bucket.events]
        for event in events:
            self.cwd = as_str(as_dict(event.data).get("cwd")) or self.cwd
        calls = [*agent_paths.call_ids(records), *_call_names(events)]
        if any(self._knows(f"elsewhere {name}") for name in calls):
            return True
        told = [records, [as_dict(event.data).get("input") for event in events]]
        named = {*agent_paths.named_paths(told)}
        named.update(touch.path for bucket in sink.buckets.values() for touch in bucket.touches)
        if not any(self.excluded.covers_file(path, self.cwd) for path in named if path):
            return False
        self._learn(f"elsewhere {name}" for name in calls)
        return True

    def _may_name_excluded(self, line: bytes) -> bool:
        """Of a line that is no record: one that is still being written, or that says the path of
        such a file."""
        if self.excluded is None:
            return False
        if self.partial:
            return True
        named = (found.decode("utf-8", "surrogateescape") for found in _ABSOLUTE.findall(line))
        return any(self.excluded.covers_file(path) for path in named)

    def _gone(self, records: list[Record], sink: Sink) -> _Does:
        names = [as_str(record.get("id")) or as_str(record.get("uuid")) for record in records]
        self._learn([name for name in [*names, *_names(sink)] if name])
        return _Does.GO

    def _knows(self, name: str) -> bool:
        return fold(name) in self.known

    def _learn(self, names: Iterable[str]) -> None:
        new = [ident for ident in dict.fromkeys(map(fold, names)) if ident not in self.known]
        self.known.update(new)
        self.hiding.ids = [*self.hiding.ids, *new][-_MOST:]

    def _is_answer(self, sink: Sink) -> bool:
        """To a call of a private turn, however late it comes; and what is kept beside the
        transcript of one."""
        told = [*_names(sink), as_str(sink.main.facts.get("tool_use_id"))]
        return any(self._knows(name) for name in told if name)

    def _note(self, records: list[Record], sink: Sink) -> None:
        """When we are; what does not say so was written with the record before it."""
        for record in records:
            self.at = parse_iso(record.get("timestamp")) or self.at
        self.at = next(
            (event.created_at for event in sink.main.events if event.created_at), self.at
        )


def _call_names(events: list[Event]) -> list[str]:
    """The ids of the calls among these, and of those that are answered."""
    calls = (event for event in events if event.kind in ("tool.call", "tool.result"))
    return [ident for event in calls if isinstance(ident := as_dict(event.data).get("id"), str)]


def _is_empty(text: str, data: Any) -> bool:
    """Nothing was there but private text and blanks."""
    return not text.replace(FILLER.decode(), "").strip() and not as_dict(data).get("images")


def _is_derived(bucket: Bucket) -> bool:
    """A title or a summary that the agent made of what was said."""
    titled = bucket.facts.get("title_rank", -1) <= TITLE_AGENT and bucket.facts.get("title")
    return bool(
        titled or bucket.leaf_titles or any(event.kind in _DERIVED for event in bucket.events)
    )


def _names(sink: Sink) -> list[str]:
    """Of the calls that a record tells of, and of the subagents in the same file."""
    events = (event for bucket in sink.buckets.values() for event in bucket.events if event.data)
    calls = [ident for event in events if isinstance(ident := as_dict(event.data).get("id"), str)]
    return [*calls, *(name for name, bucket in sink.buckets.items() if bucket is not sink.main)]


def _shown(data: bytes, spans: list[Span]) -> bytes:
    """As readers will see it."""
    holes, missing = [], 0
    for low, high in spans:
        holes.append((low - missing, high - low))
        missing += high - low
    return filled(private.without(data, spans), 0, holes) if spans else data


def _outside(span: Span, edges: list[int]) -> bool:
    """In one of the stretches between the elements."""
    return bisect_right(edges, span[0]) % 2 == 1


def _lines(data: bytes) -> Iterator[Span]:
    at = 0
    while at < len(data):
        end = data.find(b"\n", at) + 1 or len(data)
        yield at, end
        at = end
