"""Sessions as machines send them: redacted segments, of which the server makes the events itself.

A machine plans (what is missing?), sends objects, and commits. Each step may be repeated, and cut
off anywhere: objects come first and are named by their content, rows come last and all at once.
What is sent under a newer generation replaces everything that came of the older one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import get_args

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.base import Framing
from whyfor.capture.parse import SegmentParser
from whyfor.model.errors import BadInput, NotFound, OutdatedUpload
from whyfor.model.sessions import Project, Session
from whyfor.model.sources import Source
from whyfor.store.blobs import Blobs
from whyfor.store.journal import SegmentEntry
from whyfor.store.protocol import SharedStore, StoreWriter

OBJECT_MAX = 64 << 20  # bytes of one object, unpacked
_SESSION_MAX = 256 << 20  # bytes
_NAME_MAX = 4096  # characters
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MACHINE = re.compile(r"[\w.-]{1,64}")
_SEND_AGAIN = "Send the whole session again under a newer generation."


class UploadedSegment(msgspec.Struct, frozen=True):
    """Redacted bytes [start, end) of a source, whole records only."""

    start: int
    end: int
    digest: str  # SHA-256 of these bytes


class SessionUpload(msgspec.Struct, frozen=True):
    """One source of a session: its transcript, a subagent's, or a file beside it."""

    machine: str
    agent: str
    session_id: str
    path: str
    framing: str
    generation: int  # rises when what was sent before is to be replaced
    segments: tuple[UploadedSegment, ...]
    parent: str | None = None
    sidecar: str | None = None
    cwd: str | None = None


class UploadPlan(msgspec.Struct, frozen=True):
    """What a machine has to send before it can commit."""

    missing: tuple[str, ...]  # digests, each once
    generation: int  # that the server has; -1 if it has none


class ReceivedUpload(msgspec.Struct, frozen=True):
    """What came of a commit; nothing if it was repeated."""

    segments: int  # that were new
    events: int
    replaced: bool  # an older generation is gone


class ReceivedParser(SegmentParser):
    """Reads segments as an ingest does. Wherever a session ran on somebody's machine, it belongs
    to the project that it was sent to."""

    def __init__(self, writer: StoreWriter, project: Project, now: Callable[[], int]) -> None:
        super().__init__(writer, None, now)
        self.project = project

    def locate(self, cwd: str, remote: str | None = None) -> None:  # noqa: ARG002 - as its base
        if self.writer.place(cwd) is None:
            self.writer.learn_place(cwd, self.project, [], self.now())


class UploadReceiver:
    """Takes what one person sends to one project."""

    def __init__(
        self, store: SharedStore, blobs: Blobs, project: Project, now: Callable[[], int]
    ) -> None:
        self.store = store
        self.blobs = blobs
        self.project = project
        self.now = now

    def plan(self, upload: SessionUpload) -> UploadPlan:
        """Return which objects are missing. Raises BadInput if the upload makes no sense,
        OutdatedUpload if the server has a newer generation."""
        check_upload(upload)
        source = self.store.records.writer().source(upload.agent, _path(upload))
        generation = source.generation if source else -1
        _check_generation(upload, generation)
        wanted = dict.fromkeys(segment.digest for segment in upload.segments)
        missing = tuple(digest for digest in wanted if not self.blobs.has(digest))
        return UploadPlan(missing, generation)

    def commit(self, upload: SessionUpload) -> ReceivedUpload:
        """Store the segments and their events, all or nothing. Raises NotFound if an object was
        not sent, OutdatedUpload if the server has a newer generation or other bytes of this one."""
        if missing := self.plan(upload).missing:
            raise NotFound(f"{len(missing)} objects were not sent", "Send them, then commit again.")
        with self.store.transaction():
            received, dropped = self._store(upload)
        self.blobs.remove(self.store.removal.unused_digests(dropped))
        return received

    def _store(self, upload: SessionUpload) -> tuple[ReceivedUpload, list[str]]:
        writer = self.store.records.writer()
        parser = ReceivedParser(writer, self.project, self.now)
        source = writer.source(upload.agent, _path(upload)) or _new_source(upload)
        _check_generation(upload, source.generation if source.id else -1)
        dropped: list[str] = []
        replaced = bool(source.id) and upload.generation > source.generation
        before = self._length(upload)
        if replaced:
            before = 0
            dropped = self._retract(source, upload, parser)
        elif source.id:
            writer.load_state(source)
        stored = writer.stored_segments(source) if source.id else []
        _check_same(upload, [(each.start, each.end, each.address) for each in stored])
        fresh = upload.segments[len(stored) :]
        for segment in fresh:
            self._absorb(parser, source, segment)
        writer.save_source(source)
        writer.settle(source.agent, source.session_id)
        writer.finish()
        return ReceivedUpload(len(fresh), self._length(upload) - before, replaced), dropped

    def _absorb(self, parser: ReceivedParser, source: Source, segment: UploadedSegment) -> None:
        data = self.blobs.get(segment.digest)
        if len(data) != segment.end - segment.start:
            raise BadInput("a segment has another size than was said", _SEND_AGAIN)
        if source.framing == "lines" and not data.endswith(b"\n"):
            raise BadInput("a segment ends inside a record", "Cut segments after a line.")
        entry = SegmentEntry(
            *(source.agent, source.path, source.generation, segment.start, segment.end),
            *(segment.digest, self.now(), source.framing, source.session_id),
            *(source.parent, source.sidecar, source.cwd),
        )
        parser.absorb(source, entry, data)

    def _retract(self, source: Source, upload: SessionUpload, parser: ReceivedParser) -> list[str]:
        """Delete all that came of a source; what else tells of its session is read again. Return
        the digests of its segments."""
        store, writer = self.store, parser.writer
        session = self._session(upload)
        sessions = [session, *store.sessions.children([session.session_id])] if session else []
        numbers = [each.id for each in sessions]
        keys, sharing = store.removal.shared_usage(numbers)
        for number in numbers:
            store.removal.empty_session(number)
        dropped = store.removal.drop_segments(source.id)
        writer.restart(source, upload.generation)
        others = store.records.sources_of(session) if session else []
        for other in others:
            if other.id != source.id:
                self._read_again(other, parser)
        writer.recount(keys, sharing)
        return dropped

    def _read_again(self, known: Source, parser: ReceivedParser) -> None:
        writer = parser.writer
        source = writer.source(known.agent, known.path)
        if source is None:
            return
        writer.load_state(source)
        stored = writer.stored_segments(source)
        writer.restart(source, source.generation)
        for each in stored:
            self._absorb(parser, source, UploadedSegment(each.start, each.end, each.address))
        writer.save_source(source)

    def _session(self, upload: SessionUpload) -> Session | None:
        name = (upload.agent, upload.session_id)
        number = self.store.sessions.numbers([name]).get(name)
        return self.store.sessions.by_number([number])[number] if number is not None else None

    def _length(self, upload: SessionUpload) -> int:
        """Return how many events the session of an upload has."""
        name = (upload.agent, upload.session_id)
        number = self.store.sessions.numbers([name]).get(name)
        return self.store.sessions.last_seqs([number]).get(number, 0) if number else 0


def check_upload(upload: SessionUpload) -> None:
    """Raise BadInput if an upload makes no sense."""
    if upload.agent not in AGENTS:
        raise BadInput(f"no agent is called {upload.agent[:40]!r}", "Upgrade the server.")
    if upload.framing not in get_args(Framing):
        raise BadInput(f"no source is made of {upload.framing[:40]!r}", "Upgrade the server.")
    names = (upload.session_id, upload.path, upload.parent, upload.sidecar, upload.cwd)
    if not upload.session_id or any(len(name or "") > _NAME_MAX for name in names):
        raise BadInput("a name is empty or too long", "This is a bug of the sender.")
    if not _MACHINE.fullmatch(upload.machine):
        raise BadInput("a machine's name has letters, digits, dots and dashes", "Rename it.")
    if upload.generation < 0:
        raise BadInput("a generation is 0 or more", "This is a bug of the sender.")
    _check_segments(upload.segments)


def _check_segments(segments: tuple[UploadedSegment, ...]) -> None:
    position = 0
    for segment in segments:
        size = segment.end - segment.start
        if segment.start != position or not 0 < size <= OBJECT_MAX:
            raise BadInput("segments are not one after the other", "This is a bug of the sender.")
        if not _DIGEST.fullmatch(segment.digest):
            raise BadInput("a digest is 64 hexadecimal digits", "This is a bug of the sender.")
        position = segment.end
    if position > _SESSION_MAX:
        raise BadInput(f"a source has at most {_SESSION_MAX >> 20} MB", "Keep it on your machine.")


def _check_generation(upload: SessionUpload, known: int) -> None:
    if upload.generation < known:
        raise OutdatedUpload(
            f"generation {upload.generation} was replaced by {known}", "Plan the upload again."
        )


def _check_same(upload: SessionUpload, stored: list[tuple[int, int, str]]) -> None:
    """A generation only grows; fewer segments than are stored are an upload that came late."""
    sent = [(each.start, each.end, each.digest) for each in upload.segments]
    common = min(len(sent), len(stored))
    if sent[:common] != stored[:common]:
        raise OutdatedUpload("other bytes were sent before under this generation", _SEND_AGAIN)


def _path(upload: SessionUpload) -> str:
    return f"{upload.machine}:{upload.path}"


def _new_source(upload: SessionUpload) -> Source:
    return Source(
        *(0, upload.agent, _path(upload), upload.session_id, upload.framing),
        *(upload.parent, upload.sidecar, upload.cwd, upload.generation),
        state={},
    )
