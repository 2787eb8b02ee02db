"""Read the records of a stored session again, up to one of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, cast

import msgspec

from whyfor.agents import AGENTS, decode
from whyfor.agents.base import Agent, Framing, SourceShape
from whyfor.model.events import Event
from whyfor.model.findings import Record, Sink
from whyfor.model.gaps import Gap, between, runs
from whyfor.model.sources import Source, UnparsedRecord


class Cut(msgspec.Struct, frozen=True):
    """A session's records before and after an event."""

    before: list[Record]
    after: list[Record]
    reached: int  # the last event found at or before the cut; 0 if none
    found: int  # how many of the wanted events stand here


class SegmentPiece(NamedTuple):
    """A segment's bytes, their position in the source, and its gaps."""

    start: int
    data: bytes
    gaps: Sequence[Gap] = ()

    def before(self, offset: int) -> SegmentPiece:
        """What of it stands before a place in the source."""
        kept = between(runs(self.data, self.start, self.gaps), self.start, offset)
        return SegmentPiece(
            self.start,
            b"".join(run for _, run in kept),
            [gap for gap in self.gaps if gap[0] < offset],
        )


def read_records(
    source: Source,
    pieces: Iterable[SegmentPiece],
    wanted: Callable[[bytes], bool] | None = None,
) -> Iterator[tuple[int, bytes, Record]]:
    """Offset, line and record, as ingest gives them to a reader; what cannot be parsed is left
    out, and so are lines that are not wanted."""
    for start, data, gaps in pieces:
        if source.framing == "document":
            whole = decode.decode_document(decode.fill_gaps(data, start, gaps))
            for index, record in enumerate([] if isinstance(whole, UnparsedRecord) else whole):
                yield index, b"", record
            continue
        for offset, line in decode.split_lines(data, start, gaps):
            if wanted is not None and not wanted(line):
                continue
            found = decode.decode_line(line, offset)
            for index, record in enumerate([] if isinstance(found, UnparsedRecord) else found):
                yield offset + index, line, record


def read_events(
    source: Source, pieces: Iterable[SegmentPiece], wanted: Callable[[bytes], bool]
) -> Iterator[tuple[str, Event]]:
    """The events of wanted records, with the whole of their texts, each with its session's id.

    Every record is read by itself: the keys of events do not depend on what was read before, but
    the rest of their data may.
    """
    agent = AGENTS[source.agent]
    shape = _shape(source)
    for offset, line, record in _any_records(source, pieces, wanted):
        sink = Sink(source.session_id, source.parent)
        agent.reader(shape, {}).read(record, offset, line, sink)
        for bucket in sink.buckets.values():
            for event in bucket.events:
                yield bucket.session_id, event


def _any_records(
    source: Source, pieces: Iterable[SegmentPiece], wanted: Callable[[bytes], bool]
) -> Iterator[tuple[int, bytes, Record]]:
    """Records of any source: what is no transcript is one."""
    if source.framing != "blob":
        yield from read_records(source, pieces, wanted)
        return
    name = source.path.replace("\\", "/").rsplit("/", 1)[-1]
    for start, data, gaps in pieces:
        text = decode.fill_gaps(data, start, gaps, text=True)
        yield 0, text, {"name": name, "text": text.decode("utf-8", "replace")}


def _shape(source: Source) -> SourceShape:
    return SourceShape(
        cast(Framing, source.framing), source.session_id, source.parent, source.sidecar, source.cwd
    )


def cut(
    agent: Agent, source: Source, pieces: Iterable[SegmentPiece], wanted: dict[int, int]
) -> Cut:
    """Read again what was read, and stop after the record that told the last of the wanted
    events (key → seq).

    The keys of events are the same in every reading: they name the record, whatever the agent's
    format.
    """
    reader = agent.reader(_shape(source), {})
    seen: set[int] = set()
    read: list[Record] = []
    end = reached = 0
    for offset, line, whole in read_records(source, pieces):
        for record in _opened(whole):
            sink = Sink(source.session_id, source.parent)
            reader.read(record, offset, line, sink)
            read.append(record)
            fresh = {event.key for event in sink.main.events if event.key in wanted} - seen
            if fresh:
                seen |= fresh
                end, reached = len(read), max(reached, *(wanted[key] for key in fresh))
    return Cut(read[:end], read[end:], reached, len(seen))


def _opened(record: Record) -> Iterator[Record]:
    """A session that is one document has its messages inside."""
    messages = record.get("messages")
    if not isinstance(messages, list):
        yield record
        return
    yield {name: value for name, value in record.items() if name != "messages"}
    yield from (message for message in messages if isinstance(message, dict))
