"""What a person or an agent says about notes: kept in the journal, and taken out of it again."""

from __future__ import annotations

import msgspec

from whyfor.capture.compare import require_agreement
from whyfor.capture.forget import PendingForget, begin_forget, finish_forget
from whyfor.capture.recover import writing
from whyfor.config import Settings
from whyfor.git.place import GitPlace
from whyfor.locks import LOCK_WAIT
from whyfor.model.errors import NotFound
from whyfor.model.memory import NoteStatement
from whyfor.model.times import wall_clock
from whyfor.recall.block_files import publish_blocks
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import Entry, ForgottenEntry, Journal, MemoryEntry
from whyfor.store.open import journal
from whyfor.store.protocol import Store
from whyfor.store.tombstones import merge_forgotten
from whyfor.story import repositories


def record_note(settings: Settings, statement: NoteStatement) -> None:
    """Keep a statement, in the journal and in the database."""
    with writing(settings, LOCK_WAIT) as store:
        _record(store, journal(settings), statement)
        publish_blocks(settings, store, _project_of(store, statement.key))


def _record(store: Store, record: Journal, statement: NoteStatement) -> None:
    last = max((each.at for each in store.memory.said(statement.key)), default=0)
    statement = msgspec.structs.replace(statement, at=max(statement.at, last + 1))
    with store.transaction(record):
        record.add(MemoryEntry(statement))
        store.memory.state(statement)


def erase_note(settings: Settings, gone: NoteStatement) -> bool:
    """Take all that was said about a note out of the journal and the database, to the last byte;
    only that it is gone is kept. Returns False if an open reader keeps deleted bytes in use; the
    next ingest removes them."""
    with writing(settings, LOCK_WAIT) as store:
        record = journal(settings)
        project = _project_of(store, gone.key)
        written = bool(store.memory.said(gone.key))
        _record(store, record, gone)
        finished = True
        if written:
            require_agreement(store, record, FolderBlobs(settings.segments))
            finished = _rewrite(settings, store, record, gone.key)
        publish_blocks(settings, store, project)
        return finished


def _project_of(store: Store, key: str) -> list[int]:
    """Return the number of a note's project; none if it has none, or the key is not of a note."""
    try:
        project = store.memory.observation(key).project
    except NotFound:
        return []
    known = store.projects.find(project) if project else None
    return [known[0]] if known else []


def know_project(settings: Settings, folder: GitPlace) -> str:
    """Return the identity of the project in a folder; one that no session ran in becomes known."""
    with writing(settings, LOCK_WAIT) as store:
        return repositories.ensure_project(store, journal(settings), folder, wall_clock())


def _rewrite(settings: Settings, store: Store, record: Journal, key: str) -> bool:
    former = ForgottenEntry(0)
    entries: list[Entry] = []
    for entry in record.entries():
        if isinstance(entry, ForgottenEntry):
            former = merge_forgotten(former, entry)
        elif not (isinstance(entry, MemoryEntry) and _is_text_of(key, entry.statement)):
            entries.append(entry)
    at = max(wall_clock(), former.at + 1)
    pending = PendingForget(at=at, number=record.end().number)
    begin_forget(settings, pending, [*entries, merge_forgotten(former, ForgottenEntry(at))])
    return finish_forget(settings, store)


def _is_text_of(key: str, said: NoteStatement) -> bool:
    return said.key == key and said.action != "forget"
