"""The whole text of long results, read again from the records that tell them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import msgspec

from whyfor.agents import AGENTS, decode
from whyfor.agents.base import Framing, SourceShape
from whyfor.model.errors import StoreError
from whyfor.model.events import LongText, StoredEvent, result_ends
from whyfor.model.findings import Record, Sink
from whyfor.model.sources import Source, StoredSegment, UnparsedRecord
from whyfor.store.open import OpenStore

_Results = dict[int, list[str]]  # texts by their sizes


class WholeTexts:
    """Reads the records of shortened events; keeps the last segment and record at hand."""

    def __init__(self, library: OpenStore) -> None:
        self.library = library
        self._places: dict[int, dict[int, tuple[Source, LongText]]] = {}  # by session and seq
        self._segment: tuple[StoredSegment, bytes] | None = None
        self._record: tuple[tuple[int, int, int], _Results] | None = None

    def fill(self, session: int, events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        """Yield the events of a session with their whole texts. One whose record cannot be read
        any more stays shortened."""
        for event in events:
            text = self._text(session, event) if event.whole_size else None
            if text is not None:
                event = msgspec.structs.replace(event, text=text, whole_size=0)
            yield event

    def _text(self, session: int, event: StoredEvent) -> str | None:
        if session not in self._places:
            self._places[session] = self.library.conversation.long_texts(session)
        found = self._places[session].get(event.seq)
        if found is None:
            return None
        source, long = found
        head, tail = result_ends(event.text)
        for text in self._results(source, long).get(long.size, ()):
            shown = text.replace("\x00", "\u2400")
            if shown.startswith(head) and shown.endswith(tail):
                return shown
        return None

    def _results(self, source: Source, long: LongText) -> _Results:
        """Return the results that a record tells."""
        place = (long.source, long.generation, long.at)
        if self._record is None or self._record[0] != place:
            results: _Results = {}
            try:
                for text in self._read(source, long):
                    results.setdefault(len(text.encode("utf-8", "replace")), []).append(text)
            except StoreError:  # doctor tells of it
                pass
            self._record = place, results
        return self._record[1]

    def _read(self, source: Source, long: LongText) -> Iterator[str]:
        stored = self._stored(source, long)
        if stored is None:
            return
        shape = SourceShape(
            cast(Framing, source.framing),
            source.session_id,
            source.parent,
            source.sidecar,
            source.cwd,
        )
        reader = AGENTS[source.agent].reader(shape, {})
        sink = Sink(source.session_id, source.parent)
        for record, line in _records(source, long.at, *stored):
            reader.read(record, long.at, line, sink)
        for bucket in sink.buckets.values():
            yield from (event.text for event in bucket.events if event.kind == "tool.result")

    def _stored(self, source: Source, long: LongText) -> tuple[StoredSegment, bytes] | None:
        stored = self.library.records.segment_at(source.id, long.generation, long.at)
        if stored is None:
            return None
        if self._segment is None or self._segment[0].address != stored.address:
            self._segment = stored, self.library.blobs.get(stored.address)
        return stored, self._segment[1]


def whole_events(
    library: OpenStore, session: int, events: Iterable[StoredEvent]
) -> Iterator[StoredEvent]:
    """Yield the events of a session with their whole texts."""
    return WholeTexts(library).fill(session, events)


def _records(
    source: Source, at: int, stored: StoredSegment, data: bytes
) -> Iterator[tuple[Record, bytes]]:
    """Yield the records that begin at a place."""
    if source.framing == "blob":
        data = decode.fill_gaps(data, stored.start, stored.gaps, text=True)
        name = source.path.replace("\\", "/").rsplit("/", 1)[-1]
        yield {"name": name, "text": data.decode("utf-8", "replace")}, data
        return
    line = b""
    if source.framing == "document":
        found = decode.decode_document(decode.fill_gaps(data, stored.start, stored.gaps))
    else:
        line = decode.line_at(data, stored.start, stored.gaps, at)
        found = decode.decode_line(line, at)
    if not isinstance(found, UnparsedRecord):
        yield from ((record, line) for record in found)
