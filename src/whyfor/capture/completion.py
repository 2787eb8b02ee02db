"""Complete a damaged journal from the database. Pure: entries in, entries out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import msgspec

from whyfor.capture.compare import final_segments, segment_key
from whyfor.capture.rebuild import final_sources
from whyfor.model.memory import statement_id
from whyfor.model.tasks import said_id
from whyfor.store.journal import (
    AliasEntry,
    CheckpointEntry,
    Entry,
    ForgottenEntry,
    IssueEntry,
    MemoryEntry,
    MergedEntry,
    MovedEntry,
    NoCheckpointEntry,
    NoteEntry,
    OverrideEntry,
    PauseEntry,
    PlaceEntry,
    SegmentEntry,
    TaskEntry,
)

Source = tuple[str, str]  # agent and path


def complete_entries(
    kept: Sequence[Entry], known: Sequence[Entry], has: Callable[[str], bool], *, newer: bool
) -> list[Entry]:
    """Return the journal's entries together with those that only the database has, in a valid
    order.

    Folders that the journal does not mention come first, because a session gets its folder's
    project when it is read. Segments go before anything seen later; other entries go at the end.
    Every segment gets the current path of its file, so entries about moves are dropped. A segment
    whose object does not exist (`has`) is left out; a segment of the journal with an outdated
    address gets the database's. With `newer`, the database is at least as new as the journal and
    wins where they differ. What either knows to be forgotten is not added.
    """
    gone = _forgotten([*kept, *known])
    known = [entry for entry in known if not _is_gone(entry, gone)]
    segments = [entry for entry in known if isinstance(entry, SegmentEntry)]
    whole = _with_addresses(_settled(kept, segments), segments, has)
    told = final_segments(whole)
    missing: list[SegmentEntry | PlaceEntry] = [
        entry for entry in segments if segment_key(entry) not in told and has(entry.digest)
    ]
    others = _missing_facts(whole, known, newer=newer)
    placed = {entry.cwd for entry in whole if isinstance(entry, PlaceEntry)}
    places = [entry for entry in others if isinstance(entry, PlaceEntry)]
    missing += [entry for entry in places if entry.cwd in placed]
    found: list[Entry] = [entry for entry in places if entry.cwd not in placed]
    found += _interleave(whole, missing)
    found += [entry for entry in others if not isinstance(entry, PlaceEntry)]
    return found


def _forgotten(entries: Iterable[Entry]) -> set[str]:
    """Return the names of forgotten sessions (agent:id) and commits."""
    found: set[str] = set()
    for entry in entries:
        if isinstance(entry, ForgottenEntry):
            found.update(entry.sessions, entry.commits)
    return found


def _is_gone(entry: Entry, gone: set[str]) -> bool:
    match entry:
        case SegmentEntry():
            return (
                f"{entry.agent}:{entry.session_id}" in gone
                or f"{entry.agent}:{entry.parent}" in gone
            )
        case OverrideEntry():
            return entry.commit in gone or f"{entry.agent}:{entry.session_id}" in gone
        case NoteEntry():
            return entry.commit in gone
        case MemoryEntry() | TaskEntry():
            return f"{entry.statement.agent}:{entry.statement.session_id}" in gone
        case CheckpointEntry():
            return entry.checkpoint.commit in gone
        case _:
            return False


# -- segments ------------------------------------------------------------------------------------


def _settled(kept: Sequence[Entry], segments: Iterable[SegmentEntry]) -> list[Entry]:
    """Return the entries with current paths, without those about moves and merges."""
    sources = final_sources(kept)
    moved = _lost_moves(kept, sources, segments)
    found: list[Entry] = []
    for number, entry in enumerate(kept):
        if isinstance(entry, MovedEntry | MergedEntry):
            continue
        if isinstance(entry, SegmentEntry):
            source = sources[number]
            path = moved.get(source, source[1])
            entry = msgspec.structs.replace(entry, path=path)
        found.append(entry)
    return found


def _lost_moves(
    kept: Sequence[Entry], sources: dict[int, Source], segments: Iterable[SegmentEntry]
) -> dict[Source, str]:
    """Return the current paths of sources whose move is missing in the journal: the database has
    their segments under another path."""
    by_source: dict[Source, set[str]] = {}  # objects of each source the database knows
    for segment in segments:
        by_source.setdefault(segment.source, set()).add(segment.digest)
    unknown: dict[Source, set[str]] = {}  # objects of each source it does not
    for number, source in sources.items():
        entry = kept[number]
        if source not in by_source and isinstance(entry, SegmentEntry):
            unknown.setdefault(source, set()).add(entry.digest)
    found: dict[Source, str] = {}
    for source, digests in unknown.items():
        for (agent, path), held in by_source.items():
            if agent == source[0] and digests <= held:
                found[source] = path
                break
    return found


def _with_addresses(
    kept: Iterable[Entry], segments: Iterable[SegmentEntry], has: Callable[[str], bool]
) -> list[Entry]:
    """Replace addresses of objects that no longer exist by the database's; the journal's entry
    about the merge may be lost."""
    addresses = {_bytes_of(entry): entry.digest for entry in segments}
    found: list[Entry] = []
    for entry in kept:
        if isinstance(entry, SegmentEntry) and not has(entry.digest):
            address = addresses.get(_bytes_of(entry), entry.digest)
            entry = msgspec.structs.replace(entry, digest=address)
        found.append(entry)
    return found


def _bytes_of(entry: SegmentEntry) -> Hashable:
    """Return a key for the bytes that an entry is about."""
    return *entry.source, *entry.place, entry.end


def _interleave(kept: list[Entry], missing: Iterable[SegmentEntry | PlaceEntry]) -> list[Entry]:
    """Put each missing entry before the first one that was seen later, or that follows it in the
    same file."""
    waiting = _Waiting(missing)
    found: list[Entry] = []
    for entry in kept:
        if isinstance(entry, SegmentEntry):
            found += waiting.before_in_file(entry)
        if isinstance(entry, SegmentEntry | PlaceEntry):
            found += waiting.before_time(entry.observed_at)
        found.append(entry)
    return [*found, *waiting.rest()]


class _Waiting:
    """The missing entries by time and by file; each is returned once."""

    def __init__(self, missing: Iterable[SegmentEntry | PlaceEntry]) -> None:
        self._by_time = deque(sorted(missing, key=_seen))
        self._by_file: dict[Source, deque[SegmentEntry]] = {}
        for entry in self._by_time:
            if isinstance(entry, SegmentEntry):
                self._by_file.setdefault(entry.source, deque()).append(entry)
        self._given: set[int] = set()

    def before_in_file(self, entry: SegmentEntry) -> Iterator[Entry]:
        """Yield the entries that come before a segment of the same file."""
        listed = self._by_file.get(entry.source, deque())
        here = entry.place
        while listed and listed[0].place < here:
            yield from self._give(listed.popleft())

    def before_time(self, observed_at: int) -> Iterator[Entry]:
        """Yield the entries seen before a time; a place also if it was seen at that time."""
        while self._by_time and _seen(self._by_time[0]) < (observed_at, True, 0, 0):
            yield from self._give(self._by_time.popleft())

    def rest(self) -> Iterator[Entry]:
        for entry in self._by_time:
            yield from self._give(entry)

    def _give(self, entry: SegmentEntry | PlaceEntry) -> Iterator[Entry]:
        if id(entry) not in self._given:
            self._given.add(id(entry))
            yield entry


def _seen(entry: SegmentEntry | PlaceEntry) -> tuple[int, bool, int, int]:
    """Return the sort key: by time, a place before the segment that it was learnt from."""
    if isinstance(entry, PlaceEntry):
        return entry.observed_at, False, 0, 0
    return entry.observed_at, True, *entry.place


# -- the rest ------------------------------------------------------------------------------------


def _missing_facts(kept: Iterable[Entry], known: Iterable[Entry], *, newer: bool) -> list[Entry]:
    """Return the places, commits, pauses and forgotten things that the database has and the journal
    lacks."""
    told: dict[Hashable, Entry] = {}
    forgotten: set[str] = set()
    for entry in kept:
        told[_subject(entry)] = entry
        if isinstance(entry, ForgottenEntry):
            forgotten |= _names(entry)
    found: list[Entry] = []
    for entry in known:
        if isinstance(entry, SegmentEntry):
            continue
        if isinstance(entry, ForgottenEntry):
            if not _names(entry) <= forgotten:
                found.append(entry)
            continue
        said = told.get(_subject(entry))
        if said is None or (newer and not _same(said, entry)):
            found.append(entry)
    return found


def _subject(entry: Entry) -> Hashable:
    """Return what an entry is about. Of two entries with the same subject, the later counts."""
    match entry:
        case PlaceEntry():
            return "place", entry.cwd
        case AliasEntry():
            return "alias", entry.path
        case CheckpointEntry():
            return "checkpoint", entry.checkpoint.commit
        case NoCheckpointEntry():
            return "checkpoint", entry.commit
        case OverrideEntry():
            return "override", entry.commit, entry.agent, entry.session_id
        case NoteEntry():
            return "note", entry.commit, entry.at
        case MemoryEntry():
            return "memory", *statement_id(entry.statement)
        case TaskEntry():
            return "task", *said_id(entry.statement)
        case IssueEntry():
            return "issue", entry.issue.project, entry.issue.key
        case PauseEntry():
            return "pause", entry.id
        case _:
            return None


def _same(said: Entry, entry: Entry) -> bool:
    """Compare two entries. Projects of a folder are compared by identity only; their other fields
    may have been learnt elsewhere."""
    if isinstance(said, PlaceEntry | AliasEntry) and isinstance(entry, PlaceEntry | AliasEntry):
        return said.project.identity == entry.project.identity
    return said == entry


def _names(entry: ForgottenEntry) -> set[str]:
    records = {
        f"{session}/{digest}" for session, listed in entry.records.items() for digest in listed
    }
    return {*entry.sessions, *entry.commits, *entry.strings, *records}
