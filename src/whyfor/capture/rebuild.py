"""Rebuild the database from the journal and the segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from whyfor.capture import tail
from whyfor.capture.parse import SegmentParser
from whyfor.capture.unreadable import reason_of, stops_everything
from whyfor.model.errors import StoreError
from whyfor.model.paths import to_path
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.store.blobs import Blobs
from whyfor.store.journal import (
    AliasEntry,
    CheckpointEntry,
    Entry,
    ForgottenEntry,
    IssueEntry,
    Journal,
    MemoryEntry,
    MovedEntry,
    NoCheckpointEntry,
    NoteEntry,
    OverrideEntry,
    PauseEntry,
    PlaceEntry,
    SegmentEntry,
    TaskEntry,
)
from whyfor.store.protocol import Store

BATCH_BYTES = 48 << 20


class MissingBytes(msgspec.Struct, frozen=True):
    """Bytes that the journal lists but whose segment cannot be read."""

    path: str
    start: int
    end: int
    reason: str


class Rebuild:
    """Replays the journal into a database."""

    def __init__(self, store: Store, blobs: Blobs, journal: Journal) -> None:
        self.store = store
        self.blobs = blobs
        self.journal = journal
        self.writer = store.capture.writer()
        self.checkpoints = store.checkpoints
        self.absorber = SegmentParser(self.writer, None, lambda: 0)
        self.sources: dict[tuple[str, str], Source] = {}
        self.edges: dict[int, tail.Edges] = {}
        self.gaps: list[MissingBytes] = []
        # sources of a database that is not empty, not replayed into yet
        self._known: dict[tuple[str, str], Source] = {}
        self._pending = 0

    def run(self, progress: Callable[[int], None] | None = None) -> list[MissingBytes]:
        end = self.journal.end()
        self.store.begin()
        again = retold_entries(self.journal.entries())
        for number, entry in enumerate(self.journal.entries()):
            if number not in again:
                self.replay(entry)
            if isinstance(entry, SegmentEntry):
                self._pending += entry.size
                if progress:
                    progress(entry.size)
            if self._pending >= BATCH_BYTES:
                self._commit()
                self.store.begin()
        for source in self.sources.values():
            self._close(source)
        self.store.save_journal_end(end)
        self._commit()
        return self.gaps

    def run_after(self, number: int) -> None:
        """Replay the journal's entries after a number into a database that has all entries before
        it.

        It uses one transaction, because usually the database is only a little behind.
        """
        end = self.journal.end()
        entries = [entry for _, entry in self.journal.numbered_entries(number)]
        again = retold_entries(entries)
        with self.store.transaction():
            self._known = self.writer.sources()
            for place, entry in enumerate(entries):
                if place not in again and not self._is_stored(entry):
                    self.replay(entry)
            for source in self.sources.values():
                self.edges[source.id] = self._stored_edges(source)
                self._close(source)
            self.store.save_journal_end(end)
            self.writer.finish()

    def _is_stored(self, entry: Entry) -> bool:
        """Return whether the database already has these bytes."""
        if not isinstance(entry, SegmentEntry):
            return False
        source = self.sources.get(entry.source) or self._known.get(entry.source)
        if source is None:
            return False
        return (entry.generation, entry.end) <= (source.generation, source.position)

    def _stored_edges(self, source: Source) -> tail.Edges:
        """Return the fingerprints of a file, computed from its stored segments."""
        edges = tail.Edges()
        whole = tail.is_rewritten(source, to_path(source.path))
        for stored in self.writer.stored_segments(source):
            try:
                data = self.blobs.get(stored.address)
            except StoreError:
                continue  # doctor names it
            edges.add(data, stored.start, stored.end, stored.gaps, whole=whole)
        return edges

    def read_again(self, entries: Sequence[Entry], sessions: set[tuple[str, str]]) -> None:
        """Read these sessions again from the segments that the entries list, inside the caller's
        transaction. Their sources and sessions have been emptied before."""
        known = self.writer.sources()
        titles = self.store.forget.titles()
        pieces = list(_segments_of(entries, sessions))
        again = retold_entries(pieces)
        for number, entry in enumerate(pieces):
            key = entry.source
            if key in known and key not in self.sources:
                source = self.sources[key] = known[key]
                source.generation, source.cwd, source.state = entry.generation, entry.cwd, {}
            if number not in again:
                self._segment(entry)
        for source in self.sources.values():
            self._close(source)
        # Of several titles for a message the last one read counts, and it may be in another source.
        self.store.forget.put_titles(titles)
        self.writer.finish()

    def refresh_fingerprints(self, agent: str, paths: Iterable[str]) -> None:
        """Compute the fingerprints of these sources again from what is stored of them now."""
        for path in paths:
            source = self.writer.source(agent, path)
            if source is not None:
                self.writer.load_state(source)
                self.edges[source.id] = self._stored_edges(source)
                self._close(source)

    def _commit(self) -> None:
        self.writer.finish()
        self.store.commit()
        self._pending = 0

    def replay(self, entry: Entry) -> None:
        if isinstance(entry, SegmentEntry):
            self._segment(entry)
        elif isinstance(entry, MovedEntry):
            self._recall(entry.source)
            if source := self.sources.pop(entry.source, None):
                source.path = entry.to
                self.writer.save_source(source)
                self.sources[entry.target] = source
        elif isinstance(entry, PlaceEntry):
            self.writer.learn_place(entry.cwd, entry.project, entry.former, entry.observed_at)
        else:
            self._told(entry)

    def _told(self, entry: Entry) -> None:
        match entry:
            case CheckpointEntry(checkpoint):
                if known := self.store.projects.find(checkpoint.project):
                    self.checkpoints.save(known[0], checkpoint)
            case NoCheckpointEntry(commit):
                self.checkpoints.remove(commit)
            case OverrideEntry():
                self.checkpoints.override(entry)
            case NoteEntry():
                self.checkpoints.note(entry)
            case MemoryEntry(statement):
                self.store.memory.state(statement)
            case TaskEntry(statement):
                self.store.tasks.state(statement)
            case IssueEntry(issue):
                self.store.tasks.save_issue(issue)
            case AliasEntry():
                self.writer.adopt(entry.path, entry.project)
                self.store.projects.save_alias(entry)
            case PauseEntry():
                self.store.capture.save_pause(entry)
            case ForgottenEntry():
                self.store.forget.save_tombstones(entry)
                self.store.set_mark("forgotten", entry.at)

    def _segment(self, entry: SegmentEntry) -> None:
        source = self._source(entry)
        try:
            data = self.blobs.get(entry.digest)
        except StoreError as error:
            self.gaps.append(MissingBytes(entry.path, entry.start, entry.end, error.message))
            source.error = error.message
            self.writer.save_source(source)
            source.position = source.position if entry.partial else entry.end
            return
        if source.framing == "lines" and entry.start > source.position:
            self.gaps.append(
                MissingBytes(
                    entry.path, source.position, entry.start, "the journal has no entry for them"
                )
            )
        before, state = msgspec.structs.astuple(source), msgspec.json.encode(source.state)
        try:
            with self.writer.attempt():
                self.absorber.absorb(source, entry, data)
        except Exception as error:
            if stops_everything(error, to_path(source.path), self.journal.path.parent):
                raise
            for name, value in zip(source.__struct_fields__, before, strict=True):
                setattr(source, name, value)
            source.state = msgspec.json.decode(state)
            self._pass_over(source, entry, reason_of(error))
        # rows of a database have no fingerprints
        if not entry.partial and entry.position is None:
            whole = tail.is_rewritten(source, to_path(source.path))
            edges = self.edges.setdefault(source.id, tail.Edges())
            edges.add(data, entry.start, entry.end, entry.gaps, whole=whole)

    def _pass_over(self, source: Source, entry: SegmentEntry, why: str) -> None:
        """Note a segment that cannot be read, and continue with the next."""
        self.gaps.append(MissingBytes(entry.path, entry.start, entry.end, why))
        source.error = why
        self.writer.save_source(source)
        self.writer.add_segment(source, entry)
        if entry.hiding is not None:
            self.writer.hide(source, entry.hiding)
        if entry.partial:
            source.tail = entry.size
            return
        problem = UnparsedRecord(entry.start, entry.size, why)
        self.writer.add_problems(source, [problem], {})
        source.unparsed += 1
        source.position, source.tail = entry.end, 0
        if entry.position is not None:
            source.state["rows"] = entry.position

    def _source(self, entry: SegmentEntry) -> Source:
        self._recall(entry.source)
        source = self.sources.get(entry.source)
        if source is None:
            source = self.sources[entry.source] = Source(
                id=0,
                agent=entry.agent,
                path=entry.path,
                session_id=entry.session_id,
                framing=entry.framing,
                parent=entry.parent,
                sidecar=entry.sidecar,
                cwd=entry.cwd,
                generation=entry.generation,
                state={},
            )
        if entry.generation > source.generation:
            self.writer.restart(source, entry.generation)
            self.edges.pop(source.id, None)
        return source

    def _recall(self, key: tuple[str, str]) -> None:
        """Continue with a source as the database knows it."""
        source = self._known.pop(key, None)
        if source is not None:
            self.writer.load_state(source)
            self.sources[key] = source

    def _close(self, source: Source) -> None:
        edges = self.edges.get(source.id)
        if edges is not None:
            whole = tail.is_rewritten(source, to_path(source.path))
            source.head_hash, source.end_hash = edges.fingerprints(whole=whole)
        self.writer.save_source(source)
        self.writer.settle(source.agent, source.session_id)


def retold_entries(entries: Iterable[Entry]) -> set[int]:
    """Return the positions of entries whose bytes a later entry stores again: their ingest died
    before the database committed.

    An unfinished line that is stored again when it is finished does not count.
    """
    told: dict[tuple[str, str], list[tuple[int, SegmentEntry]]] = {}
    again: set[int] = set()
    for number, entry in enumerate(entries):
        if isinstance(entry, MovedEntry) and entry.source in told:
            told[entry.target] = told.pop(entry.source)
        elif isinstance(entry, SegmentEntry):
            before = told.setdefault(entry.source, [])
            while before and before[-1][1].place >= entry.place:
                earlier, former = before.pop()
                finished = former.partial and former.place == entry.place
                if not finished:
                    again.add(earlier)
            before.append((number, entry))
    return again


def final_sources(entries: Sequence[Entry]) -> dict[int, tuple[str, str]]:
    """Return, for each segment entry by its position in the list, its agent and the current path of
    its file."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, entry in enumerate(entries):
        if isinstance(entry, MovedEntry):
            moved = numbers.pop(entry.source, [])
            if moved:
                numbers.setdefault(entry.target, []).extend(moved)
        elif isinstance(entry, SegmentEntry):
            numbers.setdefault(entry.source, []).append(number)
    return {number: source for source, listed in numbers.items() for number in listed}


def _segments_of(
    entries: Sequence[Entry], sessions: set[tuple[str, str]]
) -> Iterator[SegmentEntry]:
    """Yield the segments of these sessions and their subagents in order, with the current paths of
    their files."""
    paths = final_sources(entries)
    for number, entry in enumerate(entries):
        if not isinstance(entry, SegmentEntry):
            continue
        if {(entry.agent, entry.session_id), (entry.agent, entry.parent)} & sessions:
            yield msgspec.structs.replace(entry, path=paths[number][1])
