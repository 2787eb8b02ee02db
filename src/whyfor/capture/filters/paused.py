"""Which bytes of a source were written during a pause or in an excluded place, record by record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from whyfor.agents import AGENTS, decode
from whyfor.agents import paths as agent_paths
from whyfor.agents.base import Agent, RecordStamp, as_dict, get_str
from whyfor.capture import spool, tail
from whyfor.capture.filters.excluded import Excluded
from whyfor.capture.filters.pauses import Pauses
from whyfor.capture.filters.record import SourceLine, source_lines
from whyfor.hook.private import Json
from whyfor.model.gaps import Gap
from whyfor.model.paths import to_path
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.privacy.json_spans import members, word_spans
from whyfor.privacy.structure import KEPT_IN_PAUSE

BEFORE = 256 << 10  # bytes that are looked through for the time of the record before
_DERIVED = (b"summary", b"title")  # of a document: made of all messages in it
_Known = Callable[[str, str], str | None]  # the folder a stored session began in


class _Around(msgspec.Struct):
    """What the records so far said about time and place."""

    agent: str
    path: str
    end: int  # of what was looked at
    first: int | None = None  # time in the source
    last: int | None = None
    cwds: set[str] = set()
    sessions: set[str] = set()


class PauseFilter:
    """Examines every run of bytes before it is stored."""

    def __init__(self, pauses: Pauses, excluded: Excluded) -> None:
        self.pauses = pauses
        self.excluded = excluded
        self.place: _Known = lambda _agent, _session_id: None
        self.records = 0  # withheld so far
        self._around: _Around | None = None

    def __bool__(self) -> bool:
        return bool(self.pauses) or self.excluded.by_place or bool(self.excluded.agents)

    def line_gaps(self, source: Source, lines: list[SourceLine]) -> Iterator[Gap]:
        """Return the spans of the lines that must not be stored."""
        agent = AGENTS[source.agent]
        around = self._context(source, lines[0].start)
        for line in lines:
            around.end = line.start + len(line.data)
            if line.data.isspace():
                continue
            stamp = line.stamp(agent)
            if stamp is None:
                # taken for a part of the one before, or it is being written now
                stamp = RecordStamp()
                if not line.is_whole:
                    stamp.until = time.time_ns() // 1_000_000
            if self._covers(stamp, around):
                self.records += line.is_whole
                yield line.start, len(line.data)

    def covers_file(self, source: Source) -> bool:
        """Return whether a file without times in it was written during a pause, judged by the
        file's own time."""
        around = self._context(source, 0)
        try:
            at = to_path(source.path).stat().st_mtime_ns // 1_000_000
        except OSError:
            at = None
        return any(self.pauses.covers(at, *place) for place in _places(around))

    def document_gaps(self, source: Source, data: bytes) -> Iterator[Gap]:
        """Return the spans of text of each message that must go; of all messages if they cannot be
        told apart."""
        around = self._context(source, 0)
        if not any(self.pauses.overlaps(None, None, *place) for place in _places(around)):
            return
        agent = AGENTS[source.agent]
        scanned = Json(data, frozenset(name.encode() for name in agent.lists))
        whole = decode.decode_document(data)
        if not scanned.sound or not whole or isinstance(whole, UnparsedRecord):
            yield 0, len(data)
            return
        around.first = around.last = agent.stamp(whole[0]).since
        for span in scanned.elements:
            message = decode.decode_line(data[slice(*span)], span[0])
            stamp = RecordStamp()
            if isinstance(message, list):
                stamp.since = agent.stamp(message[0]).at
            if self._covers(stamp, around):
                self.records += 1
                yield from _gaps(word_spans(data, span, KEPT_IN_PAUSE))
        for key, span in members(data):
            if key in _DERIVED and self._covers(RecordStamp(retells=True), around):
                yield from _gaps(word_spans(data, span, KEPT_IN_PAUSE))

    def _covers(self, stamp: RecordStamp, around: _Around) -> bool:
        """Return whether a record must not be stored; remember what it says about the records after
        it."""
        known = _Around(around.agent, around.path, 0)
        known.cwds = around.cwds | ({stamp.cwd} if stamp.cwd else set())
        known.sessions = around.sessions | ({stamp.session_id} if stamp.session_id else set())
        if stamp.cwd and not around.cwds:
            around.cwds.add(stamp.cwd)
        first = around.last if stamp.since is None else stamp.since
        around.first = first if around.first is None else around.first
        around.last = first if stamp.until is None else stamp.until
        if stamp.cwd and self.excluded.covers(stamp.cwd):
            return True
        if not self.pauses:
            return False
        looks_back = stamp.since is None or stamp.retells
        for place in _places(known):
            if self.pauses.covers(first, *place):
                return True
            if stamp.until is not None and self.pauses.overlaps(first, stamp.until, *place):
                return True
            if looks_back and self.pauses.overlaps(around.first, around.last, *place):
                return True
        return False

    def _context(self, source: Source, start: int) -> _Around:
        """Return what the earlier part of the file says about time and place. It is read from the
        file, so it cannot get lost."""
        around = self._around
        if around and (around.agent, around.path, around.end) == (source.agent, source.path, start):
            return around
        known = {source.cwd, self.place(source.agent, source.session_id)}
        if source.parent:
            known.add(self.place(source.agent, source.parent))
        around = _Around(source.agent, source.path, start, cwds={cwd for cwd in known if cwd})
        around.sessions = {name for name in (source.session_id, source.parent) if name}
        path = to_path(source.path)
        if source.framing == "lines" and path.is_file():
            self._read_head(path, around)
            around.last = _time_before(AGENTS[source.agent], path, start) if start else around.first
        self._around = around
        return around

    def _read_head(self, path: Path, around: _Around) -> None:
        """Read when and where the source began."""
        agent = AGENTS[around.agent]
        for line in source_lines(tail.head(path), 0):
            stamp = line.stamp(agent) or RecordStamp()
            around.first = stamp.since if around.first is None else around.first
            if stamp.cwd and not around.cwds:
                around.cwds.add(stamp.cwd)
            if around.first is not None and around.cwds:
                return

    # -- what hooks announced --------------------------------------------------------------------

    def announced(self, line: bytes) -> bool:
        """Return whether a hook should not have written this line: an older version of it, or one
        that had not been told yet."""
        self.pauses.refresh()
        found = next(spool.envelopes(line, 0), None)
        return isinstance(found, spool.Envelope) and self._heard(found)

    def _heard(self, envelope: spool.Envelope) -> bool:
        if "WHYFOR_PROBE" in envelope.env:
            return False
        records = decode.decode_line(envelope.payload, 0)
        payload = records[0] if isinstance(records, list) and records else {}
        cwds = {cwd for cwd in (envelope.cwd, get_str(payload, "cwd")) if cwd}
        ident = get_str(payload, "session_id") or get_str(payload, "sessionId")
        sessions = [(envelope.agent, ident), *spool.named_sessions(envelope.env)]
        if envelope.agent in self.excluded.agents or any(self.excluded.covers(cwd) for cwd in cwds):
            return True
        if self.excluded.by_place and self._names_excluded(payload, envelope.cwd):
            return True
        return any(
            self.pauses.covers(envelope.at, cwd, agent, session)
            for cwd in _each(cwds)
            for agent, session in sessions
        )

    def _names_excluded(self, payload: Any, cwd: str) -> bool:
        """Return whether the call that a hook reported names a file of an excluded project."""
        told = [as_dict(payload).get(name) for name in ("tool_input", "toolArgs", "details")]
        return any(
            self.excluded.covers_file(path, cwd) for path in agent_paths.named_paths(told) if path
        )


def _each(cwds: set[str]) -> set[str | None]:
    """Return the places, or one unknown place: a record without a folder can still fall into a
    time-based pause."""
    return {*cwds} or {None}


def _places(around: _Around) -> list[tuple[str | None, str, str]]:
    """Return where a record may have been written: folder, agent, session."""
    return [
        (cwd, around.agent, session) for cwd in _each(around.cwds) for session in around.sessions
    ]


def _gaps(spans: Iterable[tuple[int, int]]) -> Iterator[Gap]:
    return ((first, last - first) for first, last in spans)


def _time_before(agent: Agent, path: Path, position: int) -> int | None:
    """Return the time of the last record before a position in a file."""
    with tail.open_source(path) as file:
        low = max(0, position - BEFORE)
        file.seek(low)
        lines = list(source_lines(file.read(position - low), low))
    for line in reversed(lines):
        stamp = line.stamp(agent) or RecordStamp()
        at = stamp.until or stamp.since
        if at is not None:
            return at
    return None
