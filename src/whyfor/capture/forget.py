"""Forgetting on disk: write a marker, replace the journal in one step, then update everything else.

Before the journal is replaced, nothing has changed. After that, the journal says what is forgotten,
and the marker says what remains to be done. `finish_forget` does it: called by forget itself, or,
if that process died, by the next one that takes the ingest lock (see recover.py). Each step may be
repeated.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from whyfor.capture import spool
from whyfor.capture.block_folder import drop_blocks
from whyfor.capture.checkout_list import STORIES, publish_stories
from whyfor.capture.compare import final_segments, require_agreement
from whyfor.capture.rebuild import Rebuild
from whyfor.config import Settings
from whyfor.files import replace, sync
from whyfor.model.checkpoints import Checkpoint, SeenCommit
from whyfor.model.paths import to_path
from whyfor.model.sessions import SessionName
from whyfor.store.address import parse_address
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import (
    CheckpointEntry,
    Entry,
    ForgottenEntry,
    IssueEntry,
    Journal,
    MemoryEntry,
    NoCheckpointEntry,
    NoteEntry,
    OverrideEntry,
    SegmentEntry,
    TaskEntry,
)
from whyfor.store.protocol import Store
from whyfor.store.tombstones import FORGET_MARKER

_LEFTOVERS = (  # copies left by a crash or a repair, and error logs, which may quote anything
    "whyfor.db.damaged-*",
    "rebuild.db*",
    "journal.jsonl.damaged-*",
    ".journal.jsonl.*",
    "hook/.stories.*",
    "hook/errors.log",
)


class PendingForget(msgspec.Struct):
    """The content of the marker: names, numbers and places; no forgotten text."""

    at: int = 0  # of the journal's entry; if the journal lacks it, the forget never began
    number: int = -1  # how the former journal ended: a database that ends there was not updated yet
    sessions: list[SessionName] = []  # to delete
    again: list[SessionName] = []  # to read again from what is left of them
    unplaced: list[SessionName] = []  # of those, the ones whose folder is cleared
    commits: list[str] = []  # whose checkpoint changes or is deleted
    titles: list[int] = []  # keys of messages whose legacy titles are deleted
    signals: list[int] = []  # rows
    spool: dict[str, list[tuple[int, int]]] = {}  # places in the files hooks write to


def begin_forget(settings: Settings, pending: PendingForget, entries: Iterable[Entry]) -> None:
    """Replace the journal by these entries and leave the marker. Needs the ingest lock.

    The segments that the entries name are already on disk.
    """
    replace(settings.home / FORGET_MARKER, msgspec.json.encode(pending))
    sync(settings.home)  # the marker must exist before the journal changes
    Journal(settings.journal).rewrite(entries)


def finish_forget(settings: Settings, store: Store) -> bool:
    """Do what the marker says. Needs the ingest lock. Return False if an open reader keeps deleted
    bytes in use; the next call removes them."""
    update_database(settings, store)
    return _remove_bytes(settings, store)


# -- the database --------------------------------------------------------------------------------


def update_database(settings: Settings, store: Store) -> None:
    """Update the database to the new journal if it still matches the old one; any other database is
    left to recover.py."""
    journal = Journal(settings.journal)
    pending = _read_marker(settings.home)
    mark = store.journal_end()
    if mark is None or mark.number != pending.number:
        return
    entries = list(journal.entries())
    if _last_forget(entries) != pending.at:
        return
    store.forget.overwrite_deleted()
    with store.transaction():
        replay_forget(Rebuild(store, FolderBlobs(settings.segments), journal), entries, pending)
        store.save_journal_end(journal.end())


def replay_forget(rebuild: Rebuild, entries: Sequence[Entry], pending: PendingForget) -> None:
    """Delete what is forgotten from the database, and read the affected sessions again from the
    segments that the entries list, in the caller's transaction."""
    facet = rebuild.store.forget
    _replay_sessions(rebuild, entries, pending)
    facet.keep_notes((e.commit, e.at) for e in entries if isinstance(e, NoteEntry))
    rebuild.store.memory.keep_said(e.statement for e in entries if isinstance(e, MemoryEntry))
    tasks = rebuild.store.tasks
    tasks.keep_said(e.statement for e in entries if isinstance(e, TaskEntry))
    tasks.keep_issues(e.issue for e in entries if isinstance(e, IssueEntry))
    facet.keep_overrides(
        (e.commit, e.agent, e.session_id) for e in entries if isinstance(e, OverrideEntry)
    )
    facet.drop_hints(set(pending.sessions))
    for entry in entries:
        if isinstance(entry, ForgottenEntry):
            rebuild.replay(entry)
    _replay_checkpoints(rebuild.store, entries, pending.commits)
    rebuild.store.feed.begin_anew()  # subscribers still show what is gone now


def _replay_sessions(rebuild: Rebuild, entries: Sequence[Entry], pending: PendingForget) -> None:
    facet = rebuild.store.forget
    gone = rebuild.store.sessions.numbers(pending.sessions)
    again = rebuild.store.sessions.numbers(pending.again)
    keys, others = facet.shared_usage([*gone.values(), *again.values()])
    linked = facet.linked_whole(again.values())
    for number in gone.values():
        facet.delete_session(number)
    for number in again.values():
        facet.empty_session(number)
    for number in rebuild.store.sessions.numbers(pending.unplaced).values():
        facet.clear_folder(number)
    facet.delete_titles(pending.titles)
    facet.delete_signals(pending.signals)
    facet.reset_sources([*pending.sessions, *again])
    rebuild.read_again(entries, set(again))
    facet.renumber_linked(again.values(), linked)
    facet.move_segments(final_segments(entries))
    rebuild.store.capture.writer().recount(keys, [*others, *again.values()])
    rebuild.refresh_fingerprints(spool.HOOK, pending.spool)


def _replay_checkpoints(store: Store, entries: Iterable[Entry], commits: Iterable[str]) -> None:
    last: dict[str, Checkpoint | None] = {}
    for entry in entries:
        if isinstance(entry, CheckpointEntry):
            last[entry.checkpoint.commit] = entry.checkpoint
        elif isinstance(entry, NoCheckpointEntry):
            last[entry.commit] = None
    reasons = store.forget.reasons()
    for sha, before in store.checkpoints.of_commits(commits).items():
        project = store.projects.find(before.project)
        assert project is not None
        after = last.get(sha)
        if after is not None:
            store.checkpoints.save(project[0], after)
            continue
        store.checkpoints.remove(sha)
        seen = SeenCommit(sha, before.authored_at, before.committed_at, reasons.get(sha), None)
        store.checkpoints.saw(project[0], [seen])


# -- every other file of ours --------------------------------------------------------------------


def _remove_bytes(settings: Settings, store: Store) -> bool:
    """Update every other file, then delete the marker; return False if it has to be done again."""
    home = settings.home
    journal = Journal(settings.journal)
    entries = list(journal.entries())
    pending = _read_marker(home)
    if pending.at > _last_forget(entries):  # the journal was never replaced: nothing has changed
        (home / FORGET_MARKER).unlink()
        return True
    _blank_spool(pending.spool)
    for pattern in _LEFTOVERS:
        for path in home.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    facet = store.forget
    whole = facet.scrub(home / "rebuild.db")
    if (home / "hook" / STORIES).exists():
        publish_stories(settings, store)
    drop_blocks(settings)
    for sha in facet.reasons():
        (home / "hook" / "asked" / sha[:7]).unlink(missing_ok=True)
    blobs = FolderBlobs(settings.segments)
    require_agreement(store, journal, blobs)
    blobs.keep_only(
        {parse_address(e.digest).object for e in entries if isinstance(e, SegmentEntry)}
    )
    if whole:
        (home / FORGET_MARKER).unlink(missing_ok=True)
    return whole


def _blank_spool(places: dict[str, list[tuple[int, int]]]) -> None:
    """Blank these places in the spool. It is done in place, because a hook may append at any
    moment."""
    for name, spans in places.items():
        try:
            with to_path(name).open("r+b") as file:
                for first, last in spans:
                    file.seek(first)
                    line = file.read(last - first)
                    file.seek(first)
                    file.write(bytes(10 if byte == 10 else 32 for byte in line))
        except FileNotFoundError:
            continue  # stored long ago


def _read_marker(home: Path) -> PendingForget:
    try:
        return msgspec.json.decode((home / FORGET_MARKER).read_bytes(), type=PendingForget)
    except FileNotFoundError:
        return PendingForget()


def _last_forget(entries: Iterable[Entry]) -> int:
    """Return the time of the last forget in a journal; 0 if there is none."""
    return max((entry.at for entry in entries if isinstance(entry, ForgottenEntry)), default=0)
