"""The plan of a forget: one pass over the journal says what goes, and what the journal is to be
instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec

from whyfor.capture import spool
from whyfor.capture.filters.forgotten import lines_with_ends, narrowed
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.errors import StoreError
from whyfor.model.paths import to_text
from whyfor.model.signals import Signal
from whyfor.model.sources import UnparsedRecord
from whyfor.model.tasks import TaskIssue
from whyfor.privacy.json_spans import Span
from whyfor.service.forget.records import ForgetRequest, RecordFinder, SourceRewrite, placed_lines
from whyfor.store.address import Address, parse_address
from whyfor.store.blobs import Blobs
from whyfor.store.journal import (
    AliasEntry,
    CheckpointEntry,
    Entry,
    ForgottenEntry,
    IssueEntry,
    Journal,
    MemoryEntry,
    MergedEntry,
    MovedEntry,
    NoteEntry,
    OverrideEntry,
    PlaceEntry,
    SegmentEntry,
    TaskEntry,
)
from whyfor.store.protocol import StoreWriter
from whyfor.store.tombstones import merge_forgotten

_FEW = 20
Progress = Callable[[int], None]


class ForgetPlan(msgspec.Struct):
    """The journal as it is to be, but for its checkpoints, and what goes."""

    request: ForgetRequest
    found: RecordFinder  # records and strings that go
    entries: list[Entry] = []
    sources: list[SourceRewrite] = []
    former: ForgottenEntry = ForgottenEntry(0)  # all that was forgotten before
    signals: list[Signal] = []  # rows that go
    spool: dict[str, list[Span]] = {}  # places in the files hooks write to
    bytes: int = 0
    signals_gone: int = 0  # lines of hooks
    notes: int = 0
    commits: set[str] = set()  # that notes or checkpoints go of, or change
    elsewhere: set[str] = set()  # names that hold the text and are no records

    def touched(self) -> set[tuple[str, str]]:
        """Return the sessions of which some records go and others stay."""
        return {source.name for source in self.sources if source.touched and source.session_id}


class ForgetPlanner:
    """Reads journal, segments and spool, and makes a plan of it. Without `write` no segment is
    put anywhere."""

    def __init__(
        self, finder: RecordFinder, blobs: Blobs, writer: StoreWriter, *, write: bool
    ) -> None:
        self.finder, self.blobs, self.writer, self.write = finder, blobs, writer, write
        self.request: ForgetRequest = finder.request
        self.plan = ForgetPlan(self.request, finder)
        self._by_path: dict[tuple[str, str], SourceRewrite] = {}
        # objects that hold more than one segment → which of the entries
        self._shared: dict[str, list[int]] = {}
        self._stale: set[str] = set()  # objects that hold something that goes
        self._idents = _plain_idents(self.request)

    def read_journal(self, journal: Journal, progress: Progress | None = None) -> None:
        plan = self.plan
        for entry in journal.entries():
            if isinstance(entry, SegmentEntry):
                self._segment(entry)
                if progress:
                    progress(entry.size)
            elif isinstance(entry, MovedEntry):
                self._moved(entry)
            elif isinstance(entry, ForgottenEntry):
                plan.former = merge_forgotten(plan.former, entry)
            elif isinstance(entry, MergedEntry):
                continue  # every segment is named by the address it has now
            elif not self._goes(entry):
                plan.entries.append(entry)
        if self.write:
            self._split_shared()
            self.blobs.flush()

    def read_spool(self, home: Path, positions: Mapping[str, int]) -> None:
        """Find what hooks said since the last ingest."""
        for path in spool.files(home):
            with path.open("rb") as file:
                start = file.seek(positions.get(to_text(path), 0))
                data = file.read()
            for (first, last), line in lines_with_ends(data):
                if self._is_signal_gone(line):
                    self._drop_signal(to_text(path), (start + first, start + last), line)

    # -- entries that hold no bytes --------------------------------------------------------------

    def _moved(self, entry: MovedEntry) -> None:
        source = self._by_path.pop(entry.source, None)
        if source is not None:
            source.path = entry.to
            self._by_path[entry.target] = source
        if source is None or not source.gone:
            self.plan.entries.append(entry)

    def _goes(self, entry: Entry) -> bool:
        """What people said: of a commit or a session that is forgotten, or with the text in it."""
        request, plan = self.request, self.plan
        if isinstance(entry, OverrideEntry):
            named = (entry.agent, entry.session_id) in request.sessions
            return named or entry.commit in request.commits
        if isinstance(entry, NoteEntry):
            gone = entry.commit in request.commits or self._holds_text(entry.note)
            if gone:
                plan.notes += 1
                plan.commits.add(entry.commit)
            return gone
        if isinstance(entry, MemoryEntry | TaskEntry):
            said = entry.statement
            named = (said.agent, said.session_id) in request.sessions
            gone = named or self._holds_text(said)
            plan.notes += gone
            return gone
        if isinstance(entry, IssueEntry):
            return self._issue_goes(entry.issue)
        if isinstance(entry, CheckpointEntry):
            self._look_at_checkpoint(entry.checkpoint)
        elif isinstance(entry, PlaceEntry | AliasEntry) and self._holds_text(entry):
            plan.elsewhere.add(f"the project {entry.project.identity}")
        return False

    def _issue_goes(self, issue: TaskIssue) -> bool:
        """Return whether a tracker's words hold the text; when they are read again, they are known
        by their digests."""
        if not self._holds_text(issue):
            return False
        pattern, finder = self.request.pattern, self.plan.found
        assert pattern is not None
        texts = (issue.title, issue.close_reason, issue.assignee)
        finder.strings |= {
            finder.tombstones.string(text) for text in texts if pattern.said_in(text)
        }
        self.plan.elsewhere.add(f"the task {issue.key} in its tracker")
        return True

    def _look_at_checkpoint(self, checkpoint: Checkpoint) -> None:
        named = {(p.agent, p.session_id) for p in checkpoint.parts} & self.request.sessions
        if named or checkpoint.commit in self.request.commits:
            self.plan.commits.add(checkpoint.commit)
        if self._holds_text(git_texts(checkpoint)):
            self.plan.elsewhere.add(f"commit {checkpoint.commit[:10]} itself, in git")

    def _holds_text(self, value: object) -> bool:
        if self.request.pattern is None:
            return False
        return self.request.pattern.stands_in(msgspec.json.encode(value))

    # -- segments --------------------------------------------------------------------------------

    def _segment(self, entry: SegmentEntry) -> None:
        source = self._source(entry)
        held = parse_address(entry.digest)
        if entry.agent != spool.HOOK and self._is_forgotten(source):
            source.gone = True
            self._stale.add(held.object)
            if not entry.partial:
                self.plan.bytes += entry.size
            if self.finder.has_titles:
                self.finder.drop_titles(source, self._kept(entry) or b"")
            return
        after = self._rewrite(source, entry)
        if self._holds_text(entry.path):
            self.plan.elsewhere.add(f"the name of {entry.path}")
        if after.digest != entry.digest:
            self._stale.add(held.object)
            source.touched = True
        if held.size is not None:
            self._shared.setdefault(held.object, []).append(len(self.plan.entries))
        self.plan.entries.append(after)

    def _source(self, entry: SegmentEntry) -> SourceRewrite:
        source = self._by_path.get(entry.source)
        if source is None:
            source = self._by_path[entry.source] = SourceRewrite(entry)
            self.plan.sources.append(source)
        return source

    def _is_forgotten(self, source: SourceRewrite) -> bool:
        names = {source.name, (source.agent, source.parent or "")}
        return not names.isdisjoint(self.request.sessions)

    def _kept(self, entry: SegmentEntry) -> bytes | None:
        """The bytes of a segment; None if they are lost already, which doctor tells."""
        try:
            return self.blobs.get(entry.digest)
        except StoreError:
            return None

    def _rewrite(self, source: SourceRewrite, entry: SegmentEntry) -> SegmentEntry:
        """The entry less what goes of its bytes."""
        request = self.request
        searched = bool(request.pattern or self.finder.leaves or source.name in request.events)
        if entry.agent != spool.HOOK and not searched:
            return entry
        kept = self._kept(entry)
        if kept is None:
            return entry
        if entry.agent == spool.HOOK:
            return self._blank_signals(source, entry, kept)
        spans = self.finder.spans(source, entry, kept)
        if not spans:
            return entry
        data, gaps = narrowed(kept, entry.start, entry.gaps, spans)
        if not entry.partial:
            self.plan.bytes += len(kept) - len(data)
        return msgspec.structs.replace(entry, digest=self._put(data), gaps=gaps)

    def _put(self, data: bytes) -> str:
        return self.blobs.put(data) if self.write else ""

    def _split_shared(self) -> None:
        """Put what stays of an object with something in it that goes into another object."""
        for name in self._shared:
            if self._object_holds_text(name):
                self._stale.add(name)
        for name in self._stale & self._shared.keys():
            self._move_object(self._shared[name])

    def _move_object(self, numbers: list[int]) -> None:
        entries = self.plan.entries
        segments = {number: cast(SegmentEntry, entries[number]) for number in numbers}
        stays: dict[str, bytes] = {}
        for segment in segments.values():
            with suppress(StoreError):  # it is lost already; doctor names it
                stays[segment.digest] = self.blobs.get(segment.digest)
        digest, start = self.blobs.put(b"".join(stays.values())), 0
        moved: dict[str, str] = {}
        for address, data in stays.items():
            moved[address] = str(Address(digest, start, len(data)))
            start += len(data)
        for number, segment in segments.items():
            address = moved.get(segment.digest, segment.digest)
            entries[number] = msgspec.structs.replace(segment, digest=address)

    def _object_holds_text(self, name: str) -> bool:
        """Whatever the journal says is in it: no object that stays holds the text."""
        if self.request.pattern is None:
            return False
        try:
            return self.request.holds_text(self.blobs.get(name))
        except StoreError:
            return False

    # -- hooks -----------------------------------------------------------------------------------

    def _blank_signals(
        self, source: SourceRewrite, entry: SegmentEntry, kept: bytes
    ) -> SegmentEntry:
        """What hooks said of forgotten sessions is blanked in place: the file is ours, and its
        places stay."""
        data = bytearray(kept)
        for offset, (first, last), line in placed_lines(entry, kept):
            if self._is_signal_gone(line):
                data[first : first + len(line)] = b" " * len(line)
                span = (offset, offset + last - first)
                self._drop_signal(source.path, span, b"" if entry.partial else line)
        if data == kept:
            return entry
        return msgspec.structs.replace(entry, digest=self._put(bytes(data)))

    def _drop_signal(self, path: str, span: Span, line: bytes) -> None:
        self.plan.spool.setdefault(path, []).append(span)
        self.plan.bytes += len(line)
        self.plan.signals_gone += bool(line)

    def _may_concern(self, line: bytes) -> bool:
        """Whether a line has to be read: git's lines name no session in plain bytes."""
        if self._idents is None or b'"git"' in line:
            return True
        return any(ident in line for ident in self._idents)

    def _is_signal_gone(self, line: bytes) -> bool:
        request = self.request
        if not self._may_concern(line):
            return False
        found = next(iter(spool.envelopes(line, 0)))
        held = request.holds_text(line)
        if isinstance(found, UnparsedRecord):
            return held or any(ident.encode() in line for _, ident in request.sessions)
        signal = spool.signal(found, self.writer.session_around)
        old = request.signals_before is not None and found.at < request.signals_before
        named = (signal.session_agent, signal.session_id) in request.sessions
        if held or old or named:
            self.plan.signals.append(signal)
            return True
        return False


def git_texts(checkpoint: Checkpoint) -> list[str]:
    """Return what a checkpoint repeats of its commit."""
    names = [file.path for file in checkpoint.files]
    return [checkpoint.subject, checkpoint.author, checkpoint.email, *names]


def _plain_idents(request: ForgetRequest) -> list[bytes] | None:
    """Of a few sessions a line of an agent's hook says so in plain bytes, which are searched for
    before it is read; None where that is not enough."""
    few = len(request.sessions) <= _FEW
    if not few or request.pattern is not None or request.signals_before is not None:
        return None
    return [ident.encode() for _, ident in request.sessions]
