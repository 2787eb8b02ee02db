"""Stories as machines send them: redacted segments, of which whoever receives them makes the events
itself. A team server does, and a laptop that keeps a copy of what others shared.

A machine plans (what is missing?), sends objects, and commits. Each step may be repeated, and cut
off anywhere: objects come first and are named by their content, rows come last and all at once.
What is sent under a newer generation replaces everything that came of the older one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import get_args

import msgspec
from msgspec.structs import replace

from whyfor.agents import AGENTS
from whyfor.agents.base import Framing
from whyfor.capture.parse import SegmentParser
from whyfor.model.checkpoints import ChangedFile, Checkpoint, Note, Part
from whyfor.model.errors import BadInput, NotFound, OutdatedUpload
from whyfor.model.sessions import Project, Session
from whyfor.model.sources import Source
from whyfor.model.sync import (
    CommitAnswer,
    ReceivedUpload,
    Retraction,
    SessionUpload,
    StoryUpload,
    UploadedSegment,
    UploadPlan,
)
from whyfor.store.blobs import Blobs
from whyfor.store.journal import NoteEntry, SegmentEntry
from whyfor.store.protocol import SharedStore, StoreWriter
from whyfor.sync.written_lines import without_parts

OBJECT_MAX = 64 << 20  # bytes of one object, unpacked
_SESSION_MAX = 256 << 20  # bytes
_NAME_MAX = 4096  # characters
_PARTS_MAX = 1_000
_FILES_MAX = 20_000
_WRITTEN_MAX = 50_000
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MACHINE = re.compile(r"[\w.-]{1,64}")
_SEND_AGAIN = "Send the whole session again under a newer generation."


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
        self.replaced: list[str] = []  # sessions (agent:id) whose older records were replaced

    def plan(self, upload: SessionUpload) -> UploadPlan:
        """Return which objects are missing. Raises BadInput if the upload makes no sense,
        OutdatedUpload if the server has a newer generation."""
        found = self.compare(upload)
        _check_generation(upload, found.generation)
        return found

    def compare(self, upload: SessionUpload) -> UploadPlan:
        """Return which objects are missing, and what there is, of whatever generation. Raises
        BadInput if the upload makes no sense."""
        check_upload(upload)
        source = self.store.records.writer().source(upload.agent, _path(upload))
        generation = source.generation if source else -1
        wanted = dict.fromkeys(segment.digest for segment in upload.segments)
        missing = tuple(digest for digest in wanted if not self.blobs.has(digest))
        return UploadPlan(missing, generation, self._stored(source) if source else ())

    def _stored(self, source: Source) -> tuple[UploadedSegment, ...]:
        stored = self.store.records.writer().stored_segments(source)
        return tuple(UploadedSegment(each.start, each.end, each.address) for each in stored)

    def commit(self, upload: SessionUpload) -> ReceivedUpload:
        """Store the segments and their events, all or nothing. Raises NotFound if an object was
        not sent, OutdatedUpload if the server has a newer generation or other bytes of this one."""
        if missing := self.plan(upload).missing:
            raise NotFound(f"{len(missing)} objects were not sent", "Send them, then commit again.")
        with self.store.transaction():
            received, dropped = self._store(upload)
            self._remove_objects(dropped)
        return received

    def commit_story(self, story: StoryUpload) -> CommitAnswer:
        """Store a story whole or not at all: the segments of its sources, their events, and what is
        told of its commits. Raises as `commit` does."""
        for checkpoint in story.checkpoints:
            check_story(checkpoint)
        missing = [digest for each in story.sources for digest in self.plan(each).missing]
        if missing:
            raise NotFound(f"{len(missing)} objects were not sent", "Send them, then commit again.")
        dropped: list[str] = []
        events = 0
        with self.store.transaction():
            for upload in story.sources:
                received, gone = self._store(upload)
                events += received.events
                dropped += gone
            stories = self._tell(story)
            self._remove_objects(dropped)
        return CommitAnswer(events, stories)

    def _remove_objects(self, digests: list[str]) -> None:
        """Remove what nothing is made of any more, before the rows are final: if that fails, they
        stay as they were, and whoever sent this sends it again."""
        self.blobs.remove(self.store.removal.unused_digests(digests))

    def retract(self, what: Retraction) -> int:
        """Delete sessions and stories that the same person sent before; return how many there
        were. Stories that nobody tells any more go with their sessions."""
        dropped: list[str] = []
        number = 0
        with self.store.transaction():
            for name in what.sessions:
                agent, _, session_id = name.partition(":")
                found = self.store.sessions.numbers([(agent, session_id)])
                for session in self.store.sessions.by_number(list(found.values())).values():
                    dropped += self._delete(session)
                    number += 1
            for sha in what.commits:
                if self.store.checkpoints.of_commits([sha]):
                    self.store.checkpoints.remove(sha)
                    number += 1
            self._remove_objects(dropped)
        return number

    def _delete(self, session: Session) -> list[str]:
        """Delete a session and its subagents; return the digests of their segments."""
        store = self.store
        stories = store.checkpoints.of_sessions([session.id])
        writer = store.records.writer()
        dropped: list[str] = []
        for source in store.records.sources_of(session):
            dropped += store.removal.drop_segments(source.id)
            known = writer.source(source.agent, source.path)
            if known is not None:
                writer.restart(known, known.generation + 1)
                writer.save_source(known)
        gone = [session, *store.sessions.children([session.session_id])]
        keys, sharing = store.removal.shared_usage([each.id for each in gone])
        for each in gone:
            store.removal.delete_session(each.id)
        names = {each.name for each in gone}
        for sha, checkpoint in stories.items():
            if all(part.name in names for part in checkpoint.parts):
                store.checkpoints.remove(sha)
            elif any(one.session in names for file in checkpoint.files for one in file.written):
                store.checkpoints.save(self._project(), without_parts(checkpoint, names))
        writer.recount(keys, sharing)
        writer.finish()
        return dropped

    # -- what is told of commits -----------------------------------------------------------------

    def _tell(self, story: StoryUpload) -> int:
        """Save checkpoints, and what people said of them and of notes; return how many checkpoints
        are new or changed."""
        changed = 0
        for sent in story.checkpoints:
            checkpoint = self._translated(sent, story)
            known = self.store.checkpoints.of_commits([sent.commit]).get(sent.commit)
            if known != checkpoint:
                self.store.checkpoints.save(self._project(), checkpoint)
                changed += 1
        for said in story.notes:
            note = msgspec.convert(said.note, Note)
            self.store.checkpoints.note(NoteEntry(said.commit, said.by, said.at, note))
        for statement in story.statements:
            self.store.memory.state(statement)
        return changed

    def _project(self) -> int:
        found = self.store.projects.find(self.project.identity)
        if found is not None:
            return found[0]
        writer = self.store.records.writer()
        return writer.learn_place(self.project.identity, self.project, [], self.now())

    def _translated(self, checkpoint: Checkpoint, story: StoryUpload) -> Checkpoint:
        """Return a checkpoint whose parts name the events as they are numbered here."""
        parts = []
        places: dict[str, Callable[[int], int]] = {}
        for part in checkpoint.parts:
            name = (part.agent, part.session_id)
            number = self.store.sessions.numbers([name]).get(name)
            if number is not None:
                seqs = self.store.conversation.keys(number)
                places[part.name] = _placer(story.keys.get(part.name, {}), seqs)
                parts.append(_renumbered(part, places[part.name]))
        files = [_renumbered_file(changed, places) for changed in checkpoint.files]
        return replace(checkpoint, project=self.project.identity, parts=parts, files=files)

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
            self.replaced.append(f"{upload.agent}:{upload.parent or upload.session_id}")
        elif source.id:
            writer.load_state(source)
        stored = writer.stored_segments(source) if source.id else []
        _check_same(upload, [(each.start, each.end, each.address) for each in stored])
        fresh = upload.segments[len(stored) :]
        for segment in fresh:
            self._absorb(parser, source, segment)
        writer.save_source(source)
        if source.parent is None:
            writer.place_session(source.agent, source.session_id, self.project)
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


def _placer(keys: dict[int, int], seqs: dict[int, int]) -> Callable[[int], int]:
    """Return what says which seq an event of a session has here; one that is not here is the
    nearest before it."""
    here = {seq: seqs[key] for seq, key in keys.items() if key in seqs}

    def place(seq: int) -> int:
        if seq in here:
            return here[seq]
        before = [known for known in here if known < seq]
        return here[max(before)] if before else min(seq, max(seqs.values(), default=0))

    return place


def _renumbered_file(
    changed: ChangedFile, places: Mapping[str, Callable[[int], int]]
) -> ChangedFile:
    """Return a file with the seqs that its turns have here; sessions that are not here are left
    out."""
    written = []
    for one in changed.written:
        if not one.session:
            written.append(one)
        elif one.session in places:
            seq = places[one.session](one.seq) if one.seq else 0
            written.append(replace(one, seq=seq))
    return replace(changed, written=tuple(written))


def _renumbered(part: Part, place: Callable[[int], int]) -> Part:
    """Return a part with the seqs that its events have here."""
    pieces = tuple((place(first), place(last)) for first, last in part.pieces)
    first, last = place(part.first), place(part.last)
    return replace(part, first=first, last=max(first, last), cut=place(part.cut), pieces=pieces)


def check_story(checkpoint: Checkpoint) -> None:
    """Raise BadInput if a checkpoint makes no sense."""
    names = [checkpoint.commit, *checkpoint.parents, *checkpoint.squashed_from]
    if not all(_SHA.fullmatch(name) for name in names):
        raise BadInput("a commit is 40 or 64 hexadecimal digits", "This is a bug of the sender.")
    if len(checkpoint.parts) > _PARTS_MAX or len(checkpoint.files) > _FILES_MAX:
        raise BadInput("a story has too many parts or files", "Keep it on your machine.")
    if sum(len(changed.written) for changed in checkpoint.files) > _WRITTEN_MAX:
        raise BadInput("a story has too many turns in its files", "Keep it on your machine.")


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
