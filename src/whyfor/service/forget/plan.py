"""What is to be forgotten, found in the truth: one pass over the journal that says what it is to
be instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.base import Framing, RecordReader, SourceShape
from whyfor.capture import decode, spool
from whyfor.capture.filters.forgotten import Span, TextPattern, lines, messages, narrowed, strings
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.errors import StoreError
from whyfor.model.findings import Sink
from whyfor.model.gaps import holes
from whyfor.model.paths import to_text
from whyfor.model.signals import Signal
from whyfor.model.sources import UnparsedRecord
from whyfor.store.address import Address, parse
from whyfor.store.blobs import Blobs
from whyfor.store.journal import (
    AliasEntry,
    CheckpointEntry,
    Entry,
    ForgottenEntry,
    Journal,
    MergedEntry,
    MovedEntry,
    NoteEntry,
    OverrideEntry,
    PlaceEntry,
    SegmentEntry,
)
from whyfor.store.protocol import StoreWriter
from whyfor.store.sqlite.forget import Tombstones

_UUID = re.compile(rb'"uuid"\s*:\s*"([\w-]{1,64})"')
_FEW = 20
Name = tuple[str, str]  # agent and session id
Progress = Callable[[int], None]


class ForgetRequest(msgspec.Struct):
    """What somebody wants forgotten; subagents are named with their sessions."""

    sessions: set[Name] = set()
    commits: set[str] = set()
    events: dict[Name, set[int]] = {}  # by session, keys of events whose records go
    words: dict[Name, list[TextPattern]] = {}  # by session, how what those events said begins
    titles: bool = False  # whether there are legacy titles at all
    # keys of messages of these sessions that some file has such a title for
    leaves: set[int] = set()
    needle: TextPattern | None = None
    signals_before: int | None = None
    new_salt: bool = False  # the one that digests were made with is lost for good


class SourceRewrite:
    """One source on its way through the journal, which may call it by several paths."""

    def __init__(self, entry: SegmentEntry) -> None:
        self.agent, self.path = entry.agent, entry.path
        self.session_id, self.parent = entry.session_id, entry.parent
        self.framing, self.sidecar, self.cwd = entry.framing, entry.sidecar, entry.cwd
        self.entries: list[SegmentEntry] = []
        self.gone = False
        self.touched = False
        self._reader: tuple[int, RecordReader] | None = None

    @property
    def name(self) -> Name:
        return self.agent, self.session_id

    @property
    def shape(self) -> SourceShape:
        return SourceShape(
            cast(Framing, self.framing), self.session_id, self.parent, self.sidecar, self.cwd
        )

    def reader(self, generation: int) -> RecordReader:
        """As ingest read it, one record after the other."""
        if self._reader is None or self._reader[0] != generation:
            self._reader = generation, AGENTS[self.agent].reader(self.shape, {})
        return self._reader[1]


class ForgetPlan:
    """The journal as it is to be, but for checkpoints, and what goes. Without `write` nothing is
    put anywhere."""

    def __init__(
        self,
        wish: ForgetRequest,
        blobs: Blobs,
        writer: StoreWriter,
        stones: Tombstones,
        *,
        write: bool,
    ) -> None:
        self.wish, self.blobs, self.writer, self.stones, self.write = (
            wish,
            blobs,
            writer,
            stones,
            write,
        )
        self.entries: list[tuple[Entry, SourceRewrite | None]] = []
        self.tracks: list[SourceRewrite] = []
        self.signals: list[Signal] = []  # rows that go
        self.spool: dict[str, list[Span]] = {}  # places in the files hooks write to
        self.records = self.bytes = self.notes = 0
        self.commits: set[str] = set()  # that notes or checkpoints go of, or change
        self.elsewhere: set[str] = set()  # names that hold the text and are no records
        self.leaves: set[int] = set()  # keys of messages whose titles go
        self.hidden: dict[str, set[str]] = {}
        self.strings: set[str] = set()
        self.former = ForgottenEntry(0)
        self._by_path: dict[Name, SourceRewrite] = {}
        # objects that hold more than one segment → which of the entries
        self._shared: dict[str, list[int]] = {}
        self._stale: set[str] = set()  # objects that hold something that goes
        # Of a few sessions a line of a hook's says so in plain bytes; git's need not.
        plain = len(wish.sessions) <= _FEW and wish.needle is None and wish.signals_before is None
        self._idents = [ident.encode() for _, ident in wish.sessions] if plain else None

    def read(self, journal: Journal, progress: Progress | None = None) -> None:
        for entry in journal.entries():
            if isinstance(entry, SegmentEntry):
                self._segment(entry)
                if progress:
                    progress(entry.end - entry.start)
            elif isinstance(entry, MovedEntry):
                self._moved(entry)
            elif isinstance(entry, ForgottenEntry):
                self.former = merge_forgotten(self.former, entry)
            elif isinstance(entry, MergedEntry):
                continue  # every segment is named by the address it has now
            elif not self._goes(entry):
                self.entries.append((entry, None))
        if self.write:
            self._settle()

    def _moved(self, entry: MovedEntry) -> None:
        track = self._by_path.pop((entry.agent, entry.path), None)
        if track is not None:
            track.path = entry.to
            self._by_path[entry.agent, entry.to] = track
        if track is None or not track.gone:
            self.entries.append((entry, None))

    def _goes(self, entry: Entry) -> bool:
        """What people said: of a commit or a session that is forgotten, or with the text in it."""
        wish = self.wish
        if isinstance(entry, OverrideEntry):
            return entry.commit in wish.commits or (entry.agent, entry.session_id) in wish.sessions
        if isinstance(entry, NoteEntry):
            gone = entry.commit in wish.commits or self._says(entry.note)
            self.notes += gone
            self.commits |= {entry.commit} if gone else set()
            return gone
        if isinstance(entry, CheckpointEntry):
            parts = {(part.agent, part.session_id) for part in entry.checkpoint.parts}
            if parts & wish.sessions or entry.checkpoint.commit in wish.commits:
                self.commits.add(entry.checkpoint.commit)
            if self._says(of_git(entry.checkpoint)):
                self.elsewhere.add(f"commit {entry.checkpoint.commit[:10]} itself, in git")
        if isinstance(entry, PlaceEntry | AliasEntry) and self._says(entry):
            self.elsewhere.add(f"the project {entry.project.identity}")
        return False

    def _says(self, value: object) -> bool:
        return self.wish.needle is not None and self.wish.needle.stands_in(
            msgspec.json.encode(value)
        )

    # -- segments --------------------------------------------------------------------------------

    def _segment(self, entry: SegmentEntry) -> None:
        key = (entry.agent, entry.path)
        track = self._by_path.get(key)
        if track is None:
            track = self._by_path[key] = SourceRewrite(entry)
            self.tracks.append(track)
        before = entry.digest
        if entry.agent == spool.HOOK:
            entry = self._announced(track, entry)
        elif self._is_forgotten(track):
            track.gone = True
            self._stale.add(parse(before).object)
            self.bytes += 0 if entry.partial else entry.end - entry.start
            if self.wish.titles:
                self._untitle(track, entry)
            return
        elif self.wish.needle or self.wish.leaves or track.name in self.wish.events:
            entry = self._narrowed(track, entry)
        if self._says(entry.path):
            self.elsewhere.add(f"the name of {entry.path}")
        if entry.digest != before:
            self._stale.add(parse(before).object)
        if parse(before).size is not None:
            self._shared.setdefault(parse(before).object, []).append(len(self.entries))
        track.entries.append(entry)
        self.entries.append((entry, track))

    def _settle(self) -> None:
        """What stays of an object with something in it that goes, in another object; only its
        place is new."""
        self._stale |= {name for name in self._shared if self._holds_text(name)}
        for name in self._stale & self._shared.keys():
            stays: dict[str, bytes] = {}
            for number in self._shared[name]:
                address = self._at(number).digest
                with suppress(StoreError):  # it is lost already; doctor names it
                    stays[address] = self.blobs.get(address)
            digest, start = self.blobs.put(b"".join(stays.values())), 0
            moved: dict[str, str] = {}
            for address, data in stays.items():
                moved[address] = str(Address(digest, start, len(data)))
                start += len(data)
            for number in self._shared[name]:
                address = self._at(number).digest
                settled = msgspec.structs.replace(
                    self._at(number), digest=moved.get(address, address)
                )
                self.entries[number] = settled, self.entries[number][1]
        for track in self.tracks:
            track.entries.clear()
        for entry, owner in self.entries:
            if owner is not None and isinstance(entry, SegmentEntry):
                owner.entries.append(entry)

    def _holds_text(self, name: str) -> bool:
        """Whatever the journal says is in it: no object that stays holds the text."""
        try:
            return self.wish.needle is not None and self.wish.needle.stands_in(self.blobs.get(name))
        except StoreError:
            return False

    def _at(self, number: int) -> SegmentEntry:
        return cast(SegmentEntry, self.entries[number][0])

    def _is_forgotten(self, track: SourceRewrite) -> bool:
        parent = track.parent is not None and (track.agent, track.parent) in self.wish.sessions
        return track.name in self.wish.sessions or parent

    def _narrowed(self, track: SourceRewrite, entry: SegmentEntry) -> SegmentEntry:
        try:
            kept = self.blobs.get(entry.digest)
        except StoreError:
            return entry  # there is nothing to forget; doctor names it
        spans = [
            *self._with_text(track, kept, torn=entry.partial),
            *self._with_events(track, entry, kept),
            *(self._with_titles(track, kept) if self.wish.leaves else ()),
        ]
        if not spans:
            return entry
        track.touched = True
        data, gaps = narrowed(kept, entry.start, entry.gaps, spans)
        if not entry.partial:
            self.bytes += len(kept) - len(data)
        return msgspec.structs.replace(entry, digest=self._put(data), gaps=gaps)

    def _put(self, data: bytes) -> str:
        return self.blobs.put(data) if self.write else ""

    def _with_text(self, track: SourceRewrite, kept: bytes, *, torn: bool) -> Iterator[Span]:
        """Strings that hold it; where it stands in none, the whole record."""
        needle = self.wish.needle
        if needle is None or not needle.stands_in(kept):
            return
        if track.framing == "blob":
            yield self._whole(track, kept)
            return
        records = [((0, len(kept)), kept)] if track.framing == "document" else list(lines(kept))
        for (first, last), record in records:
            if not needle.stands_in(record):
                continue
            held = [(span, text) for span, text in strings(record) if needle.said_in(text)]
            rest, _ = narrowed(record, 0, (), [span for span, _ in held])
            if needle.stands_in(rest):
                held = []
            self.records += 1
            self.strings |= {self.stones.string(text) for _, text in held}
            yield from ((first + low, first + high) for (low, high), _ in held)
            if not held:
                self._hide(track, record, torn=torn)
                yield first, last

    def _whole(self, track: SourceRewrite, kept: bytes) -> Span:
        self.records += 1
        self._hide(track, kept)
        return 0, len(kept)

    def _hide(self, track: SourceRewrite, record: bytes, *, torn: bool = False) -> None:
        session = f"{track.agent}:{track.session_id}"
        name = (
            self.stones.torn(session, record, len(record))
            if torn
            else self.stones.line(session, record)
        )
        self.hidden.setdefault(session, set()).add(name)

    def _untitle(self, track: SourceRewrite, entry: SegmentEntry) -> None:
        """Titles that a forgotten file gave to messages, its own or others'."""
        try:
            kept = self.blobs.get(entry.digest)
        except StoreError:
            return
        for _, keys in _titles(track, kept):
            self.leaves |= keys

    def _with_titles(self, track: SourceRewrite, kept: bytes) -> Iterator[Span]:
        """Titles that another file gives to messages of a forgotten session."""
        for (first, last), keys in _titles(track, kept):
            if keys & self.wish.leaves:
                self.leaves |= keys
                self.records += 1
                self._hide(track, kept[first:last].rstrip(b"\r\n"))
                yield first, last

    def _with_events(
        self, track: SourceRewrite, entry: SegmentEntry, kept: bytes
    ) -> Iterator[Span]:
        """Records that told one of the events."""
        wanted = self.wish.events.get(track.name)
        if not wanted:
            return
        reader = track.reader(entry.generation)
        if track.framing == "blob":
            name = track.path.replace("\\", "/").rsplit("/", 1)[-1]
            if (
                self._told(
                    reader, {"name": name, "text": kept.decode("utf-8", "replace")}, 0, kept, track
                )
                & wanted
            ):
                yield self._whole(track, kept)
        elif track.framing == "document":
            yield from self._in_document(track, kept, wanted)
        else:
            yield from self._in_lines(track, reader, entry, kept, wanted)

    def _in_lines(
        self,
        track: SourceRewrite,
        reader: RecordReader,
        entry: SegmentEntry,
        kept: bytes,
        wanted: set[int],
    ) -> Iterator[Span]:
        offsets = dict(_offsets(entry, kept))
        for (first, last), record in lines(kept):
            found = decode.records(record, 0)
            told: set[int] = set()
            for index, each in enumerate([] if isinstance(found, UnparsedRecord) else found):
                told |= self._told(reader, each, offsets[first] + index, record, track)
            if told & wanted or (not told and self._retold(track, record)):
                self.records += 1
                self._hide(track, record)
                yield first, last

    def _retold(self, track: SourceRewrite, record: bytes) -> bool:
        """A line that tells no event, but what the events said: the last prompt, a queue, a
        snapshot."""
        return any(needle.stands_in(record) for needle in self.wish.words.get(track.name, ()))

    def _in_document(self, track: SourceRewrite, kept: bytes, wanted: set[int]) -> Iterator[Span]:
        """Words of a session that is one document: it stays one."""
        reader = track.reader(-1)
        for message, words in messages(track.agent, kept):
            found = decode.records(message, 0)
            for record in [] if isinstance(found, UnparsedRecord) else found:
                if self._told(reader, record, 0, b"", track) & wanted:
                    self.records += 1
                    self._hide(track, message)
                    yield from words

    def _told(
        self,
        reader: RecordReader,
        record: dict[str, object],
        offset: int,
        line: bytes,
        track: SourceRewrite,
    ) -> set[int]:
        sink = Sink(track.session_id, track.parent)
        reader.read(record, offset, line, sink)
        return {event.key for bucket in sink.buckets.values() for event in bucket.events}

    # -- hooks -----------------------------------------------------------------------------------

    def _announced(self, track: SourceRewrite, entry: SegmentEntry) -> SegmentEntry:
        """What hooks said of forgotten sessions is blanked in place: the file is ours, and its
        places stay."""
        try:
            kept = self.blobs.get(entry.digest)
        except StoreError:
            return entry
        offsets = dict(_offsets(entry, kept))
        data = bytearray(kept)
        for (first, last), line in lines(kept):
            if self._unheard(line):
                data[first : first + len(line)] = b" " * len(line)
                self.records += not entry.partial
                self.bytes += 0 if entry.partial else len(line)
                self.spool.setdefault(track.path, []).append(
                    (offsets[first], offsets[first] + last - first)
                )
        if data == kept:
            return entry
        track.touched = True
        return msgspec.structs.replace(entry, digest=self._put(bytes(data)))

    def look_in_spool(self, home: Path, positions: Mapping[str, int]) -> None:
        """What hooks said since the last ingest."""
        for path in spool.files(home):
            with path.open("rb") as file:
                start = file.seek(positions.get(to_text(path), 0))
                data = file.read()
            for (first, last), line in lines(data):
                if self._unheard(line):
                    self.records += 1
                    self.bytes += len(line)
                    self.spool.setdefault(to_text(path), []).append((start + first, start + last))

    def _unheard(self, line: bytes) -> bool:
        wish = self.wish
        if (
            self._idents is not None
            and b'"git"' not in line
            and not any(ident in line for ident in self._idents)
        ):
            return False
        found = next(iter(spool.envelopes(line, 0)))
        held = wish.needle is not None and wish.needle.stands_in(line)
        if isinstance(found, UnparsedRecord):
            return held or any(ident.encode() in line for _, ident in wish.sessions)
        signal = spool.signal(found, self.writer.session_around)
        old = wish.signals_before is not None and found.at < wish.signals_before
        named = (
            signal.session_id is not None
            and (signal.session_agent, signal.session_id) in wish.sessions
        )
        if held or old or named:
            self.signals.append(signal)
            return True
        return False


def _titles(track: SourceRewrite, kept: bytes) -> Iterator[tuple[Span, set[int]]]:
    """Lines that give a title to a message, with the keys it may have."""
    if track.framing != "lines" or b'"leafUuid"' not in kept:
        return
    for span, line in lines(kept):
        found = decode.records(line, 0) if b'"leafUuid"' in line else []
        sink = Sink(track.session_id, track.parent)
        for record in [] if isinstance(found, UnparsedRecord) else found:
            AGENTS[track.agent].reader(track.shape, {}).read(record, 0, line, sink)
        if sink.main.leaf_titles:
            yield span, {key for key, _ in sink.main.leaf_titles}


def named_messages(blobs: Blobs, agent: str, digest: str) -> set[int]:
    """By which keys a title may name the messages of a segment."""
    try:
        kept = blobs.get(digest)
    except StoreError:
        return set()
    reader, sink = AGENTS[agent].reader(SourceShape("lines", ""), {}), Sink("")
    for ident in set(_UUID.findall(kept)):
        record = {"type": "summary", "summary": "any", "leafUuid": ident.decode()}
        reader.read(record, 0, b"", sink)
    return {key for key, _ in sink.main.leaf_titles}


def _offsets(entry: SegmentEntry, kept: bytes) -> Iterator[Span]:
    """For each line of the kept bytes, where it stands in the source."""
    missing = holes(entry.start, entry.gaps)
    for (first, _), _ in lines(kept):
        yield first, entry.start + first + sum(size for place, size in missing if place <= first)


def of_git(checkpoint: Checkpoint) -> list[str]:
    """What a checkpoint repeats of its commit."""
    names = [file.path for file in checkpoint.files]
    return [checkpoint.subject, checkpoint.author, checkpoint.email, *names]


def merge_forgotten(one: ForgottenEntry, other: ForgottenEntry) -> ForgottenEntry:
    """Both of them, everything once."""
    records = {name: set(digests) for name, digests in one.records.items()}
    for name, digests in other.records.items():
        records.setdefault(name, set()).update(digests)
    gone = {*one.sessions, *other.sessions}
    return ForgottenEntry(
        at=max(one.at, other.at),
        sessions=sorted(gone),
        commits=sorted({*one.commits, *other.commits}),
        lost=sorted({*one.lost, *other.lost}),
        records={
            name: sorted(digests) for name, digests in sorted(records.items()) if name not in gone
        },
        strings=sorted({*one.strings, *other.strings}),
    )
