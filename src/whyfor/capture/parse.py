"""What stored bytes mean: the one path from a segment to events, for ingest and rebuild alike."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import cast

import msgspec

from whyfor.agents import AGENTS, decode
from whyfor.agents.base import Agent, Framing, RecordReader, SourceShape
from whyfor.capture import spool
from whyfor.capture.filters.gate import Decoded
from whyfor.capture.long_results import LongTextPlace, shorten_results
from whyfor.model.events import RESULT_HEAD, RESULT_TAIL
from whyfor.model.findings import Sink
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.store.journal import Journal, PlaceEntry, SegmentEntry
from whyfor.store.protocol import StoreWriter

_NONE: Decoded = {}
_LONG = RESULT_HEAD + RESULT_TAIL
CUT = "cut"  # in a source's state: the last segment ended inside a line


class SegmentParser:
    def __init__(
        self, writer: StoreWriter, journal: Journal | None, now: Callable[[], int]
    ) -> None:
        self.writer = writer
        self.journal = journal  # None while rebuilding: the journal is the source then
        self.now = now
        self._placed: set[tuple[str, str | None]] = set()

    def absorb(
        self, source: Source, entry: SegmentEntry, data: bytes, decoded: Decoded = _NONE
    ) -> None:
        """Store the segment's row and its events, and move the source's position on.

        The caller saves the source before the batch ends.
        """
        if source.id == 0:
            self.writer.save_source(source)
        self.writer.add_segment(source, entry)
        if entry.hiding is not None:
            self.writer.hide(source, entry.hiding)
        if source.agent == spool.HOOK:
            self._announce(source, entry, data)
        else:
            self._understand(source, entry, data, decoded)

    def _announce(self, source: Source, entry: SegmentEntry, data: bytes) -> None:
        """What hooks said. Each line was written whole: one without an end was torn and says
        nothing."""
        if entry.partial:
            source.tail = entry.end - entry.start
            return
        problems = []
        for found in spool.envelopes(data, entry.start, entry.gaps):
            if isinstance(found, UnparsedRecord):
                problems.append(found)
                continue
            signal = spool.signal(found, self.writer.session_around)
            self.writer.add_signals([signal])
            if signal.repository:
                self.locate(signal.repository)
        self.writer.add_problems(source, problems, {})
        source.unparsed += len(problems)
        source.position, source.tail = entry.end, 0

    def _understand(
        self, source: Source, entry: SegmentEntry, data: bytes, decoded: Decoded
    ) -> None:
        agent = AGENTS[source.agent]
        sink = Sink(source.session_id, source.parent)
        if source.cwd:
            sink.main.facts["cwd"] = source.cwd
        if entry.partial:
            source.tail = entry.end - entry.start
            self._read_tail(agent, source, entry, data, sink)
            problems: list[UnparsedRecord] = []
        else:
            cut = bool(source.state.pop(CUT, False))
            reader = agent.reader(_shape(source), source.state)
            if source.framing in ("blob", "document"):
                count, problems = _read(reader, source, entry, data, sink)
            else:
                last = _cut_line(source, entry, data)
                how = _LineReading(decoded, cut, last)
                count, problems = _read_lines(reader, source, entry, data, sink, how)
            source.state = reader.state
            if _cut_line(source, entry, data) is not None:
                source.state[CUT] = True
            if entry.position is not None:
                source.state["rows"] = entry.position
            source.records += count
            source.unparsed += len(problems)
            source.position, source.tail = entry.end, 0
        self.writer.add_problems(source, problems, sink.unknown)
        if entry.gaps and not data:
            return  # nothing of it is kept: not even that there was a session
        for bucket in sink.buckets.values():
            if (cwd := bucket.facts.get("cwd")) and self.writer.homeless(agent.name, bucket):
                self.locate(cwd, bucket.facts.get("remote"))
            self.writer.apply(agent.name, bucket, entry.observed_at, mutable=agent.mutable)

    def _read_tail(
        self, agent: Agent, source: Source, entry: SegmentEntry, data: bytes, sink: Sink
    ) -> None:
        """An unfinished line that happens to be whole is worth reading now; it is read again
        when it is finished."""
        if source.state.get(CUT):
            return
        line = decode.fill_gaps(data, entry.start, entry.gaps).removesuffix(b"\r")
        found = decode.decode_line(line, entry.start)
        if isinstance(found, UnparsedRecord):
            return
        reader = agent.reader(_shape(source), deepcopy(source.state))
        for record in found:
            reader.read(record, entry.start, line, sink)
        shorten_results(sink, LongTextPlace(source.id, entry.generation, entry.start))
        sink.unknown.clear()

    def locate(self, cwd: str, remote: str | None = None) -> None:
        """Learn which project a folder belongs to, once per run; when it is gone, keep what was
        known, or what the session says it was a clone of."""
        if (cwd, remote) in self._placed or self.journal is None:
            return
        self._placed.add((cwd, remote))
        # here: most runs meet no new folder
        from whyfor.git.identity import has_commit, identify, project_of_remote, still

        known = self.writer.place(cwd)
        if known is not None and (before := self.writer.project(known)) and still(cwd, before):
            return
        project = identify(cwd)
        if project.evidence == "path":
            told = project_of_remote(remote, cwd) if remote else None
            project = self.writer.adopted(cwd) or told or project
        if known is not None and project.evidence == "path":
            return
        when = self.now()
        former = [
            identity
            for identity, root in self.writer.former(project)
            if root is None or has_commit(Path(cwd), root)
        ]
        if self.writer.learn_place(cwd, project, former, when) != known or former:
            self.journal.add(PlaceEntry(cwd, project, when, former))


def _cut_line(source: Source, entry: SegmentEntry, data: bytes) -> int | None:
    """Return where a line begins that was too long for one piece; None if the segment ends with
    the end of a line."""
    is_lines = source.framing == "lines" and not entry.partial and not entry.gaps
    if not is_lines or not data or data.endswith(b"\n"):
        return None
    return data.rfind(b"\n") + 1 + entry.start


def _read(
    reader: RecordReader,
    source: Source,
    entry: SegmentEntry,
    data: bytes,
    sink: Sink,
) -> tuple[int, list[UnparsedRecord]]:
    """Hand the records of a file that is not made of lines to the reader; returns how many there
    were, and those that are none."""
    if source.framing == "blob":
        name = source.path.replace("\\", "/").rsplit("/", 1)[-1]
        data = decode.fill_gaps(data, entry.start, entry.gaps, text=True)
        found = [{"name": name, "text": data.decode("utf-8", "replace")}]
    elif not data:
        return 1, []  # nothing of it is kept
    else:
        document = decode.decode_document(decode.fill_gaps(data, entry.start, entry.gaps))
        if isinstance(document, UnparsedRecord):
            return 1, [document]
        found, data = document, b""
    for index, record in enumerate(found):
        reader.read(record, index, data, sink)
    shorten_results(sink, LongTextPlace(source.id, entry.generation, 0))
    return len(found), []


class _LineReading(msgspec.Struct, frozen=True):
    """How the lines of a segment are read."""

    decoded: Decoded  # records that are known already
    cut: bool  # it begins inside a line that was counted with the segment before
    last: int | None  # where a line begins that goes on in the next segment


def _read_lines(
    reader: RecordReader,
    source: Source,
    entry: SegmentEntry,
    data: bytes,
    sink: Sink,
    how: _LineReading,
) -> tuple[int, list[UnparsedRecord]]:
    """Hand the records of lines to the reader; returns how many lines there were, and those that
    are none."""
    problems: list[UnparsedRecord] = []
    count = 0
    read, known = reader.read, how.decoded.get
    for offset, line in decode.split_lines(data, entry.start, entry.gaps):
        if how.cut and offset == entry.start:
            continue
        count += 1
        if offset == how.last:
            problems.append(UnparsedRecord(offset, len(line), decode.TOO_LARGE))
            continue
        found = known(offset) or decode.decode_line(line, offset)
        if isinstance(found, UnparsedRecord):
            problems.append(found)
            continue
        for index, record in enumerate(found):
            read(record, offset + index, line, sink)
        if len(line) > _LONG:
            shorten_results(sink, LongTextPlace(source.id, entry.generation, offset))
    return count, problems


def _shape(source: Source) -> SourceShape:
    return SourceShape(
        cast(Framing, source.framing), source.session_id, source.parent, source.sidecar, source.cwd
    )
