"""Ingest: discover, tail, store the bytes, then what they mean. Safe to kill at any moment, safe
to repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.base import Agent, Rows, SourceShape
from whyfor.capture import session_cwd, spool, tail
from whyfor.capture.compact import SegmentCompactor
from whyfor.capture.discover import FoundFile, sniff
from whyfor.capture.filters.excluded import Excluded
from whyfor.capture.filters.forgotten import Forgotten
from whyfor.capture.filters.gate import CaptureGate
from whyfor.capture.filters.paused import PauseFilter
from whyfor.capture.filters.pauses import Pauses
from whyfor.capture.parse import SegmentParser
from whyfor.capture.recordings import remove_forgotten, remove_stored
from whyfor.capture.unreadable import (
    PartFailed,
    Unreadable,
    UnreadableFiles,
    reason_of,
    stops_everything,
)
from whyfor.config import Exclude
from whyfor.model.errors import NotFound, StoreFault
from whyfor.model.findings import Record
from whyfor.model.ids import fold
from whyfor.model.paths import to_path, to_text
from whyfor.model.sources import Source
from whyfor.store.blobs import Blobs
from whyfor.store.journal import Journal, MovedEntry, SegmentEntry
from whyfor.store.protocol import Store
from whyfor.store.tombstones import Tombstones

BATCH_BYTES = 48 << 20
BATCH_FILES = 500
SIDECAR_PATIENCE = 86_400_000_000_000  # ns a result waits for the call it answers


class IngestCounts(msgspec.Struct):
    """What one run did."""

    files: int = 0
    new_records: int = 0
    unrecognised: int = 0
    excluded: set[tuple[str, str]] = set()  # sessions of excluded projects and agents
    # sessions that may be of such a project: they do not say where they ran
    unplaced: set[tuple[str, str]] = set()
    unreadable: list[Unreadable] = []
    # of the unreadable, those that the database failed on: it may be damaged
    database_errors: int = 0


Progress = Callable[[int], None]  # how many bytes are behind us now


class Job(msgspec.Struct, frozen=True):
    """One file to read: its path, and what reads it. It may be done again if what came after it
    failed."""

    path: Path
    work: Callable[[Progress | None], None]
    listed: bool = True  # an agent's file, not the spool's: it counts among the files there are


class Ingest:
    """One run under the ingest lock."""

    def __init__(  # noqa: PLR0913 - what one ingest works with
        self,
        store: Store,
        blobs: Blobs,
        journal: Journal,
        now: Callable[[], int],
        forgotten: Tombstones | None = None,
        paused: PauseFilter | None = None,
        sources: dict[tuple[str, str], Source] | None = None,
    ) -> None:
        self.store = store
        self.forgotten = forgotten or Tombstones()
        self.blobs = blobs
        self.journal = journal
        self.now = now
        self.paused = (
            PauseFilter(Pauses(None, []), Excluded(Exclude())) if paused is None else paused
        )
        self._prepare()
        # of a run that nobody wrote after
        self.sources = self.writer.sources() if sources is None else sources
        self.remembered = UnreadableFiles(journal.path.parent)
        self.counts = IngestCounts()
        self._by_name: dict[tuple[str, str], list[tuple[str, str]]] | None = None  # keys of sources
        self._withheld = self.paused.records
        self._stored: dict[int, Source] = {}  # by this batch
        self._batch: list[Job] = []  # what was read since the last commit
        self._job: Job | None = None
        self._touches = 0  # so far
        # sources that were changed since the last commit
        self._touched: dict[tuple[str, str], None] = {}
        self._skipped: set[str] = set()  # sessions of databases that cannot be read
        self._again = False  # the file that was read alone is to be read once more
        self._alone = False  # each file is committed by itself, to know which one fails
        self._batch_records = 0
        self._batch_bytes = 0
        self._batch_files = 0

    def _prepare(self) -> None:
        """Make anew all that remembers what this batch did."""
        self.writer = self.store.capture.writer()
        self.paused.place = self.writer.whereabouts
        self.absorber = SegmentParser(self.writer, self.journal, self.now)
        self.gate = CaptureGate(self.writer, self.paused, Forgotten(self.forgotten))
        self.merging = SegmentCompactor(self.writer, self.blobs, self.journal)

    def run(
        self,
        found: Iterable[FoundFile],
        unreadable: list[Unreadable],
        progress: Progress | None = None,
        spooled: Iterable[Path] = (),
    ) -> IngestCounts:
        """Read the spool, then the files, packed ones last; what cannot be read is counted and
        the rest goes on."""
        self.counts.unreadable = unreadable
        try:
            for path in spooled:
                self._attempt(Job(path, partial(self._drain, path), listed=False), None)
            for item in sorted(found, key=_is_packed):
                self.counts.files += 1
                self._attempt(Job(item.path, partial(self._visit, item)), progress)
            self._finish()
        except BaseException:
            self._abandon()
            raise
        self.remembered.save()
        return self.counts

    # -- what fails ------------------------------------------------------------------------------

    def _attempt(self, job: Job, progress: Progress | None) -> None:
        """Read a file. Whatever fails in it is counted, and nothing of it stays; the rest of the
        batch does."""
        before = (self._touches, self.store.total_changes())
        self._job = job
        self._batch.append(job)
        try:
            job.work(progress)
            if self._alone:
                self._commit()
        except Exception as error:
            if self._stops(error, job.path):
                raise
            if before != (self._touches, self.store.total_changes()):
                self._recover(job, error)
                return
            self._count_failure(job, error)
        finally:
            self._job = None
        if before == (self._touches, self.store.total_changes()):
            self._batch.remove(job)  # it did nothing that could be taken back

    def _recover(self, job: Job, error: Exception) -> None:
        """Take back the batch, and read what was in it again, file by file."""
        batch = self._batch
        self._set_back()
        if self._alone:
            self._count_failure(job, error)
            self._again = isinstance(error, PartFailed)  # its other sessions
        elif len(batch) == 1 and not isinstance(error, PartFailed):
            self._count_failure(job, error)
        else:
            self._read_alone(batch)

    def _read_alone(self, jobs: list[Job]) -> None:
        """Read these with a commit after each of them."""
        self._alone = True
        for job in jobs:
            self._again = True
            while self._again:
                self._again = False
                self._attempt(job, None)
        self._alone = False
        self._batch = []

    def _stops(self, error: Exception, path: Path) -> bool:
        return stops_everything(error, path, self.journal.path.parent)

    def _finish(self) -> None:
        try:
            self._commit()
        except Exception as error:
            if self._stops(error, Path()):
                raise
            batch = self._batch
            self._set_back()
            self._read_alone(batch)

    def _set_back(self) -> None:
        """As after the last commit."""
        self._abandon()
        self._prepare()
        for key in self._touched:
            self.sources.pop(key, None)
            if (source := self.writer.source(*key)) is not None:
                self.sources[key] = source
        self.paused.records = self._withheld
        self._clear_batch()

    def _count_failure(self, job: Job, error: Exception) -> None:
        if isinstance(error, FileNotFoundError) and error.filename == str(job.path):
            self.counts.files -= job.listed  # gone since it was listed: what was stored of it stays
            self.remembered.remove(to_text(job.path))
            return
        path = to_text(job.path)
        if isinstance(error, PartFailed):
            path, error = error.path, error.error
            self._skipped.add(path)
        self.counts.database_errors += isinstance(error, StoreFault)
        self.counts.unreadable.append(Unreadable(path, reason_of(error)))
        self.remembered.add(path, error, _stat(job.path))

    # -- one file --------------------------------------------------------------------------------

    def _drain(self, path: Path, progress: Progress | None) -> None:
        """What hooks announced since; a file that has long been stored whole is not needed any
        more."""
        source = self.sources.get((spool.HOOK, to_text(path))) or spool.source(path)
        now = tail.stat(path)
        if not tail.unchanged(source, now):
            if self.forgotten.sessions:
                spool.blank(
                    path, source.position, self.forgotten.sessions, self.writer.session_around
                )
            if self.paused:
                spool.erase(path, source.position, self.paused.announced)
            self._read(source, path, tail.stat(path), progress)
        elif (
            source.position + source.tail == now.size
            and self.now() - now.mtime // 1_000_000 > spool.KEPT
        ):
            path.unlink()
        self.remembered.remove(to_text(path))

    def _visit(self, found: FoundFile, progress: Progress | None) -> None:
        now = tail.stat(found.path)
        source = self._known(found)
        if (
            source is not None
            and tail.unchanged(source, now)
            and not (found.given and self._is_forgotten(source))
        ):
            if progress:
                progress(now.size)
            remove_stored(source, found.path, self.journal.path.parent, now.size)
            return
        name = to_text(found.path)
        if (why := self.remembered.refusal(name, now)) is not None:
            self.counts.unreadable.append(Unreadable(name, why))
            return
        if source is None and (source := self._meet(found, now)) is None:
            return
        if found.given and self._is_forgotten(source):
            raise NotFound(f"{name} is of a session that was forgotten", "It stays forgotten.")
        if self._is_forgotten(source):
            self._pass_by(source, now)
            remove_forgotten(source, found.path, self.journal.path.parent)
        elif not self._is_excluded(source, found.path):
            self._read(source, found.path, now, progress)
        self.remembered.remove(name)

    def _is_forgotten(self, source: Source) -> bool:
        return self.forgotten.covers(source.agent, source.session_id, source.parent)

    def _pass_by(self, source: Source, now: tail.Stat) -> None:
        """A forgotten session's file is not read; what it looks like is kept, so that it is not
        opened again."""
        self._begin()
        self._touch(source)
        source.inode, source.size, source.mtime = now.inode, now.size, now.mtime
        self.writer.save_source(source)
        self.sources[source.agent, source.path] = source

    def _touch(self, source: Source) -> None:
        """It is about to change, or to become known: if the batch fails, it is as it was before."""
        self._touches += 1
        self._touched[source.agent, source.path] = None

    def _is_excluded(self, source: Source, path: Path) -> bool:
        """Decided before anything is stored; while a session's folder is not known, it waits."""
        excluded, name = self.paused.excluded, (source.agent, source.parent or source.session_id)
        if source.agent in excluded.agents:
            self.counts.excluded.add(name)
            return True
        if not excluded.by_place or source.framing == "rows":  # rows are judged session by session
            return False
        place = self.writer.whereabouts(source.agent, source.session_id)
        if place is None and not source.sidecar:
            place = session_cwd.of_file(source, path)
        return self._judged(name, place or self.writer.whereabouts(*name))

    def _judged(self, name: tuple[str, str], place: str | None) -> bool:
        if place is None:
            self.counts.unplaced.add(name)
        elif self.paused.excluded.covers(place):
            self.counts.excluded.add(name)
        else:
            return False
        return True

    def _known(self, found: FoundFile) -> Source | None:
        path = to_text(found.path)
        own = self.sources.get((found.agent.name, path))
        if own is not None:
            return own
        return next((s for name in AGENTS if (s := self.sources.get((name, path)))), None)

    def _meet(self, found: FoundFile, now: tail.Stat) -> Source | None:
        """A path not seen before: something new, or a known file that moved."""
        recognised = sniff(found, self.now())
        if recognised is None:
            if found.given:
                raise NotFound(
                    f"{to_text(found.path)} is not a session of any agent known here",
                    f"Agents: {', '.join(AGENTS)}.",
                )
            self.counts.unrecognised += bool(now.size)
            return None
        agent, shape = recognised
        if shape.sidecar == "result" and self._too_early(agent, shape, found.path, now):
            return None
        if moved := self._moved(agent, found.path, now):
            return moved
        return _source(agent, to_text(found.path), shape)

    def _too_early(self, agent: Agent, shape: SourceShape, path: Path, now: tail.Stat) -> bool:
        """Its call is not in the transcript yet: wait, so that it lands in the right turn."""
        fresh = self.now() * 1_000_000 - now.mtime < SIDECAR_PATIENCE
        return fresh and not self.writer.has_event(
            agent.name, shape.session_id, fold(path.name.rsplit(".", 1)[0])
        )

    def _moved(self, agent: Agent, path: Path, now: tail.Stat) -> Source | None:
        if self._by_name is None:
            self._by_name = {}
            for key in self.sources:
                self._by_name.setdefault((key[0], _stem(key[1])), []).append(key)
        for key in self._by_name.get((agent.name, _stem(to_text(path))), []):
            source = self.sources.get(key)
            if source is None or self._is_forgotten(source):
                continue
            if source.framing != "lines" or to_path(source.path).exists() or path.suffix == ".zst":
                continue
            if tail.verdict(source, path, now, self.writer.gaps(source)) == "grown":
                self._begin()
                self._touch(source)
                self.journal.add(MovedEntry(agent.name, source.path, to_text(path)))
                del self.sources[source.agent, source.path]
                source.path = to_text(path)
                self._touch(source)
                self.sources[source.agent, source.path] = source
                return source
        return None

    def _read(self, source: Source, path: Path, now: tail.Stat, progress: Progress | None) -> None:
        self._begin()
        self.writer.load_state(source)
        if source.framing == "rows":
            self._touch(source)
            self._read_rows(AGENTS[source.agent], source, path)
        else:
            source = self._read_file(source, path, now, progress)
        source.inode, source.size, source.mtime = now.inode, now.size, now.mtime
        if source.framing == "rows" and self.paused.excluded.by_place:
            source.mtime = 0  # some of its sessions may be wanted later: look again next time
        if source.framing == "rows" and any(
            name.startswith(f"{source.path}#") for name in self._skipped
        ):
            source.mtime = 0
        self.writer.save_source(source)
        self.writer.settle(source.agent, source.session_id)
        self.sources[source.agent, source.path] = source
        self._batch_files += 1
        self._maybe_commit()

    def _read_file(
        self, source: Source, path: Path, now: tail.Stat, progress: Progress | None
    ) -> Source:
        """Read on, or anew if it is another file by now; returns the source that was read."""
        judged = tail.verdict(source, path, now, self.writer.gaps(source))
        self._touch(source)
        if judged == "replaced":
            source = self._restart(source, path)
            self._touch(source)
        if judged == "same" or self._is_forgotten(source):
            return source
        if source.framing != "lines":
            return self._read_document(source, path, now, progress)
        for chunk in _chunks(source, path):
            self._store(source, chunk)
            if progress:
                progress(len(chunk.data))
            if self._full() and not tail.is_rewritten(source, path):
                self._mark(source, path)
                self._commit()
                self._begin()
        source.head_hash, source.end_hash = tail.fingerprints(
            path, source, self.writer.gaps(source)
        )
        return source

    def _read_document(
        self, source: Source, path: Path, now: tail.Stat, progress: Progress | None
    ) -> Source:
        """Read a file that is written as a whole. What it looked like is told by the bytes that
        were read: it may be another by now."""
        with tail.open_source(path) as file:
            data = tail.whole(file, now.size)
        digest = self._store(source, tail.Chunk(0, data, False))
        if progress:
            progress(len(data))
        source.head_hash, source.end_hash = "", digest
        return source

    def _mark(self, source: Source, path: Path) -> None:
        """Remember what the file looks like up to here, before a batch ends: that is how it is
        known again."""
        source.head_hash, source.end_hash = tail.fingerprints(
            path, source, self.writer.gaps(source)
        )
        self.writer.save_source(source)

    def _restart(self, source: Source, path: Path) -> Source:
        """The same session written anew is a new generation; another session in its place is
        another source."""
        recognised = (
            None
            if source.agent == spool.HOOK
            else sniff(FoundFile(AGENTS[source.agent], path), self.now())
        )
        if recognised is None or recognised[1].session_id == source.session_id:
            self.writer.restart(source, source.generation + 1)
            return source
        # no file is called so: it stands for what the file held before
        aside = f"{source.path}#{source.id}"
        self.journal.add(MovedEntry(source.agent, source.path, aside))
        source.path = aside
        self._touch(source)
        self.writer.save_source(source)
        self.sources[source.agent, aside] = source
        return _source(recognised[0], to_text(path), recognised[1])

    def _store(self, source: Source, chunk: tail.Chunk, position: Record | None = None) -> str:
        """Store the bytes first, then what they mean; return the digest of the bytes."""
        kept = self.gate.kept(source, chunk)
        digest = self.blobs.put(kept.data)
        self.merging.finished(source, kept.data, digest)
        entry = SegmentEntry(
            agent=source.agent,
            path=source.path,
            generation=source.generation,
            start=chunk.start,
            end=chunk.start + len(chunk.data),
            digest=digest,
            observed_at=self.now(),
            framing=source.framing,
            session_id=source.session_id,
            parent=source.parent,
            sidecar=source.sidecar,
            cwd=source.cwd,
            partial=chunk.partial,
            position=position,
            gaps=kept.gaps,
            hiding=kept.hiding,
        )
        before = source.records
        self.absorber.absorb(source, entry, kept.data, kept.decoded)
        # after the places it made known, so that a rebuild meets them in this order
        self.journal.add(entry)
        self._batch_records += source.records - before
        self._batch_bytes += len(chunk.data)
        self._stored[source.id] = source
        return digest

    def _read_rows(self, agent: Agent, source: Source, path: Path) -> None:
        """A database: each of its sessions is a source of its own, whose records are rows."""
        prefix = f"{source.path}#"
        own = {s.session_id: s for s in self.sources.values() if s.path.startswith(prefix)}
        for known in own.values():
            self.writer.load_state(known)
        positions = {ident: known.state.get("rows", {}) for ident, known in own.items()}
        for rows in agent.rows(path, positions):
            name = prefix + rows.session_id
            if name in self._skipped or self.forgotten.covers(
                agent.name, rows.session_id, rows.parent
            ):
                continue
            try:
                self._read_session(agent, own, name, rows)
            except Exception as error:
                if self._stops(error, path):
                    raise
                raise PartFailed(name, error) from error
            if self._alone:
                self._commit()
            else:
                self._maybe_commit()
            self._begin()

    def _read_session(self, agent: Agent, own: dict[str, Source], path: str, rows: Rows) -> None:
        if rows.error is not None:
            raise rows.error
        session = own.get(rows.session_id)
        if session is None:
            shape = SourceShape("lines", rows.session_id, rows.parent)
            session = own[rows.session_id] = _source(agent, path, shape)
        if self.paused and session.cwd is None:
            session.cwd = session_cwd.of_lines(session, rows.lines)
        name = (agent.name, rows.parent or rows.session_id)
        if self.paused.excluded.by_place and self._judged(name, session.cwd):
            return
        self._touch(session)
        self._store(session, tail.Chunk(session.position, rows.lines, False), rows.position)
        self.writer.save_source(session)
        self.sources[session.agent, session.path] = session
        self.remembered.remove(path)

    # -- batches ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.store.begin()

    def _full(self) -> bool:
        return self._batch_bytes >= BATCH_BYTES or self._batch_files >= BATCH_FILES

    def _maybe_commit(self) -> None:
        if self._full():
            self._commit()

    def _commit(self) -> None:
        """Segments and journal are safe on disk before the database says that they are there."""
        if not self.store.in_transaction:
            return
        self.writer.finish()
        for source in self._stored.values():
            self.merging.merge(source)
        self.blobs.flush()
        self.store.commit(self.journal)
        self.blobs.remove(self.merging.replaced)
        self.merging.replaced.clear()
        self.counts.new_records += self._batch_records
        self._withheld = self.paused.records
        self._clear_batch()
        if self._job is not None:
            self._batch.append(self._job)  # the rest of it is still to come

    def _clear_batch(self) -> None:
        self._batch = []
        self._stored.clear()
        self._touched.clear()
        self._batch_records = self._batch_bytes = self._batch_files = 0

    def _abandon(self) -> None:
        self.store.rollback()
        self.journal.forget_pending()


def _source(agent: Agent, path: str, shape: SourceShape) -> Source:
    return Source(
        id=0,
        agent=agent.name,
        path=path,
        session_id=shape.session_id,
        framing=shape.framing,
        parent=shape.parent,
        sidecar=shape.sidecar,
        cwd=shape.cwd,
        state={},
    )


def _chunks(source: Source, path: Path) -> Iterator[tail.Chunk]:
    with tail.open_source(path) as file:
        yield from tail.chunks(file, source.position)


def _stem(path: str) -> str:
    return Path(path).name.removesuffix(".zst")


def _is_packed(found: FoundFile) -> bool:
    return found.path.suffix == ".zst"


def _stat(path: Path) -> tail.Stat | None:
    try:
        return tail.stat(path)
    except OSError:
        return None
