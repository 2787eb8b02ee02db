"""Which bytes of a source were written in a pause, or where nothing may be recorded: decided
record by record."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from whyfor.agents import paths as agent_paths
from whyfor.agents.base import MAX_DECODED, as_dict, as_list, as_str
from whyfor.capture import decode, spool, tail
from whyfor.capture.filters.excluded import Excluded
from whyfor.capture.filters.pauses import Pauses
from whyfor.model.gaps import Gap, joined
from whyfor.model.paths import to_path
from whyfor.model.sources import Source
from whyfor.model.times import parse_iso

BEFORE = 256 << 10  # bytes that are looked through for the time of the record before
_KEPT = frozenset(
    (
        "id",
        "type",
        "role",
        "timestamp",
        "sessionId",
        "projectHash",
        "startTime",
        "lastUpdated",
        "callId",
    )
)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*:)?', re.S)
_LISTS = ("messages", "timeline", "chatMessages", "items")
# Records by which an agent tells itself again what was said long before: a summary, a history
# written anew, a title.
_RETELL = frozenset(
    ("compacted", "session.compaction_complete", "session.title_changed", "summary", "session")
)


_NOTHING = msgspec.Raw(b"null")


class _Stub(msgspec.Struct):
    """What of a record tells when and where it was written, whatever the agent; the rest is not
    decoded."""

    type: Any = None
    timestamp: Any = None
    cwd: Any = None
    sessionId: Any = None
    startTime: Any = None
    isCompactSummary: Any = None
    toolCalls: msgspec.Raw = _NOTHING
    payload: msgspec.Raw = _NOTHING
    data: msgspec.Raw = _NOTHING
    row: msgspec.Raw = _NOTHING
    changes: msgspec.Raw = msgspec.field(name="$set", default=_NOTHING)


_stub = msgspec.json.Decoder(_Stub)
_Known = Callable[[str, str], str | None]  # the folder a stored session began in


class _When(msgspec.Struct):
    """Of one record."""

    first: int | None = None
    # where a record has two times: when it was begun and when it was last changed
    last: int | None = None
    cwd: str | None = None
    session_id: str | None = None
    retells: bool = False
    torn: bool = False  # no record


class _Around(msgspec.Struct):
    """What is known from the records before."""

    source: tuple[str, str]
    end: int  # of what was looked at
    first: int | None = None  # time in the source
    last: int | None = None
    cwds: set[str] = set()
    sessions: set[str] = set()


class PauseFilter:
    """Asked by ingest about every run of bytes before it is stored."""

    def __init__(self, pauses: Pauses, excluded: Excluded) -> None:
        self.pauses = pauses
        self.excluded = excluded
        self.place: _Known = lambda _agent, _session_id: None
        self.records = 0  # withheld so far
        self._around: _Around | None = None

    def __bool__(self) -> bool:
        return bool(self.pauses) or self.excluded.by_place or bool(self.excluded.agents)

    def gaps(self, source: Source, data: bytes, start: int) -> list[Gap]:
        """What of these bytes, which begin at this place of their source, must not be kept."""
        self.pauses.refresh()
        if not self or source.agent == spool.HOOK:  # the spool was cleared of it before it is read
            return []
        around = self._context(source, start)
        if source.framing == "blob" or source.sidecar:
            return [(start, len(data))] if self._beside(source, around) else []
        if source.framing == "document":
            return joined(self._document(source, data, around))
        found = joined(self._lines(source, data, start, around))
        around.end = start + len(data)
        return found

    # -- lines -----------------------------------------------------------------------------------

    def _lines(self, source: Source, data: bytes, start: int, around: _Around) -> Iterator[Gap]:
        at = 0
        while at < len(data):
            end = data.find(b"\n", at) + 1 or len(data)
            line = data[at:end]
            when = told(line)
            if when.torn and line[-1:] != b"\n":
                when.last = time.time_ns() // 1_000_000  # it is being written now
            if not line.isspace() and self._goes(source.agent, when, around):
                self.records += line[-1:] == b"\n"
                yield start + at, end - at
            at = end

    def _goes(self, agent: str, when: _When, around: _Around) -> bool:
        """And remember what it says about the records that follow."""
        cwds = around.cwds | ({when.cwd} if when.cwd else set())
        sessions = around.sessions | ({when.session_id} if when.session_id else set())
        if when.cwd and not around.cwds:
            around.cwds.add(when.cwd)
        first = when.first if when.first is not None else around.last
        around.first = first if around.first is None else around.first
        around.last = when.last if when.last is not None else first
        if when.cwd and self.excluded.covers(when.cwd):
            return True
        if not self.pauses:
            return False
        timeless = when.first is None
        return any(
            self.pauses.covers(first, cwd, agent, session)
            or (
                when.last is not None
                and self.pauses.overlaps(first, when.last, cwd, agent, session)
            )
            or (
                (timeless or when.retells)
                and self.pauses.overlaps(around.first, around.last, cwd, agent, session)
            )
            for cwd in _each(cwds)
            for session in sessions
        )

    def _context(self, source: Source, start: int) -> _Around:
        """What stands before in the file itself: no state of ours could be lost that way."""
        key = (source.agent, source.path)
        if self._around and self._around.source == key and self._around.end == start:
            return self._around
        known = {source.cwd, self.place(source.agent, source.session_id)}
        if source.parent:
            known.add(self.place(source.agent, source.parent))
        around = _Around(key, start, cwds={cwd for cwd in known if cwd})
        around.sessions = {name for name in (source.session_id, source.parent) if name}
        path = to_path(source.path)
        if source.framing == "lines" and path.is_file():
            for line in tail.head(path).splitlines():
                when = told(line)
                around.first = when.first if around.first is None else around.first
                if when.cwd and not around.cwds:
                    around.cwds.add(when.cwd)
                if around.first is not None and around.cwds:
                    break
            around.last = _time_before(path, start) if start else around.first
        self._around = around
        return around

    # -- other shapes ----------------------------------------------------------------------------

    def _beside(self, source: Source, around: _Around) -> bool:
        """A file without times in it was written when its file says."""
        try:
            at = to_path(source.path).stat().st_mtime_ns // 1_000_000
        except OSError:
            at = None
        return any(
            self.pauses.covers(at, cwd, source.agent, session)
            for cwd in _each(around.cwds)
            for session in around.sessions
        )

    def _document(self, source: Source, data: bytes, around: _Around) -> Iterator[Gap]:
        """The words of each message that goes; all of them if it cannot be told apart."""
        if not any(
            self.pauses.overlaps(None, None, cwd, source.agent, session)
            for cwd in _each(around.cwds)
            for session in around.sessions
        ):
            return
        # a character per byte: structure is ASCII, and only times are understood
        text = data.decode("latin-1")
        try:
            members = list(_members(text))
        except (ValueError, RecursionError):
            yield 0, len(data)
            return
        begun = next(
            (parse_iso(_value(text, *m[1:])) for m in members if m[0] == "startTime"), None
        )
        around.first = around.last = begun
        for name, low, high in members:
            if name not in _LISTS:
                continue
            for first, end in _elements(text, low, high):
                when = _When(parse_iso(as_dict(_value(text, first, end)).get("timestamp")))
                if self._goes(source.agent, when, around):
                    self.records += 1
                    yield from _words(text, first, end)
        for name, low, high in members:
            if name in ("summary", "title") and self._goes(
                source.agent, _When(retells=True), around
            ):
                yield from _words(text, low, high)

    def announced(self, line: bytes) -> bool:
        """Whether a hook wrote this that did not know better: of an older version, or before it
        was told."""
        self.pauses.refresh()
        found = next(spool.envelopes(line, 0), None)
        return isinstance(found, spool.Envelope) and self._heard(found)

    def _heard(self, envelope: spool.Envelope) -> bool:
        if "WHYFOR_PROBE" in envelope.env:
            return False
        records = decode.records(envelope.payload, 0)
        payload = records[0] if isinstance(records, list) and records else {}
        cwds = {cwd for cwd in (envelope.cwd, as_str(payload.get("cwd"))) if cwd}
        ident = as_str(payload.get("session_id")) or as_str(payload.get("sessionId"))
        sessions = [(envelope.agent, ident), *spool.named(envelope.env)]
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
        """Whether the call that a hook announced names a file of an excluded project."""
        told = [as_dict(payload).get(name) for name in ("tool_input", "toolArgs", "details")]
        return any(
            self.excluded.covers_file(path, cwd) for path in agent_paths.named_paths(told) if path
        )


def _each(cwds: set[str]) -> set[str | None]:
    """A record of nowhere in particular is still of some time."""
    return {*cwds} or {None}


# -- when and where ------------------------------------------------------------------------------


def told(line: bytes) -> _When:
    """Of a line that is no record, nothing: it is taken for a part of the one before."""
    if decode.too_large(line, 0, MAX_DECODED):
        return _When(torn=True)
    try:
        stub = _stub.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _When(torn=True)
    when = _When(
        parse_iso(stub.timestamp) or parse_iso(stub.startTime),
        session_id=as_str(stub.sessionId) or None,
    )
    when.cwd = as_str(stub.cwd) or None
    when.retells = bool(stub.isCompactSummary) or stub.type in _RETELL
    if stub.type in ("session_meta", "turn_context"):
        when.cwd = as_str(_decoded(stub.payload).get("cwd")) or when.cwd
    elif as_str(stub.type).startswith("session."):
        when.cwd = as_str(as_dict(_decoded(stub.data).get("context")).get("cwd")) or when.cwd
    elif row := _decoded(stub.row):
        when.first, when.last = (
            parse_iso(row.get("time_created")),
            parse_iso(row.get("time_updated")),
        )
        when.cwd = as_str(row.get("directory")) or None
    elif calls := [
        parse_iso(as_dict(call).get("timestamp")) for call in as_list(_value_of(stub.toolCalls))
    ]:
        # written again with what came of it
        when.last = max((at for at in calls if at is not None), default=None)
    elif changes := _decoded(stub.changes):
        when.first = parse_iso(changes.get("lastUpdated"))
        when.retells = bool(changes.keys() & {"messages", "summary"})
    return when


def _decoded(raw: msgspec.Raw) -> dict[str, Any]:
    return as_dict(_value_of(raw))


def _value_of(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _time_before(path: Path, position: int) -> int | None:
    """When the last record before a place in a file was written."""
    with tail.opened(path) as file:
        low = max(0, position - BEFORE)
        file.seek(low)
        lines = file.read(position - low).splitlines()
    return next(
        (at for when in map(told, reversed(lines)) if (at := when.last or when.first) is not None),
        None,
    )


# -- documents -----------------------------------------------------------------------------------

_BLANK = re.compile(r"[\s,:]*")


def _raw(text: str, at: int = 0) -> tuple[Any, int]:
    """The value that begins here, and where it ends."""
    from json import JSONDecoder  # here: sessions that are one document are rare

    return JSONDecoder(strict=False).raw_decode(text, at)


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """The members of the object a document is: name, and where the value stands."""
    at = text.index("{") + 1
    while text[at := _BLANK.match(text, at).end()] != "}":  # type: ignore[union-attr]
        name, at = _raw(text, at)
        low = _BLANK.match(text, at).end()  # type: ignore[union-attr]
        _, at = _raw(text, low)
        yield name, low, at


def _elements(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    at = low + 1
    while text[low] == "[" and (at := _BLANK.match(text, at).end()) < high - 1:  # type: ignore[union-attr]
        first = at
        _, at = _raw(text, first)
        yield first, at


def _value(text: str, low: int, high: int) -> Any:
    return _raw(text[low:high])[0]


def _words(text: str, low: int, high: int) -> Iterator[Gap]:
    """The strings in a value, less its names, ids and times: what is left is its shape."""
    key = ""
    for match in _STRING.finditer(text, low, high):
        if match[2]:
            key = match[1]
        elif match[1] and key not in _KEPT:
            yield match.start(1), len(match[1])
