"""Recovery: make the journal, the database and the segments agree again after one of them was
damaged or lost.

| what is found | what is done |
|---|---|
| the database is missing or damaged | it is set aside and rebuilt from the journal |
| the database is behind the journal (a crash, a restored backup) | missing entries are replayed |
| the journal is damaged, truncated or missing | it is set aside and completed from the database |
| both are missing, segments exist | the segments are set aside, so that nothing deletes them |
| a forget was killed | it is finished: see forget.py |

Everything here needs the ingest lock. Files that are set aside get a name with `.damaged-` or
`.unlisted-` and the time; nothing is deleted.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from whyfor.config import Settings
from whyfor.locks import ingest_lock
from whyfor.model.errors import CorruptStore, StoreFault, WhyforError
from whyfor.model.progress import Announce
from whyfor.model.stats import StoreTotals
from whyfor.model.text import label, plural
from whyfor.store.address import parse_address
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import Entry, Journal, JournalCheck, JournalMark, SegmentEntry
from whyfor.store.open import (
    install_database,
    open_reader,
    open_store,
    remove_database,
    salvage,
    set_database_aside,
)
from whyfor.store.protocol import RENEW, Store
from whyfor.store.tombstones import FORGET_MARKER

if TYPE_CHECKING:  # an ingest that finds everything as it left it never pays for it
    from whyfor.capture.rebuild import MissingBytes

_REBUILT = "the database was damaged or lost: rebuilt from the journal"
REBUILD_HINT = "Your segments are safe. Rebuild it: whyfor rebuild"


def recover(
    settings: Settings,
    announce: Announce | None = None,
    *,
    thorough: bool = False,
    damaged: bool = False,
) -> list[str]:
    """Make journal, database and segments agree; return one sentence for each repair. Fast if
    nothing has changed since the last write.

    With `thorough`, read the whole journal and compare every segment in any case. With `damaged`,
    treat the database as damaged even if it can be opened.
    """
    unfinished = (settings.home / FORGET_MARKER).exists()
    if unfinished and not damaged:
        _resume_forget(settings)
    done = _make_agree(settings, announce, thorough=thorough, damaged=damaged)
    if unfinished:
        done += _finish_forget(settings, announce)
    return done


def _make_agree(
    settings: Settings, announce: Announce | None, *, thorough: bool, damaged: bool
) -> list[str]:
    if not settings.database.exists() and not settings.journal.exists():
        return _set_segments_aside(settings)
    journal = Journal(settings.journal)
    with _database(settings, damaged=damaged) as store:
        if store is None:
            return _recover_database(settings, journal, announce)
        mark = store.journal_end()
        if not thorough and agrees(store, journal):
            return []
        if mark is None and not settings.journal.exists() and not store.capture.has_segments():
            return []  # a home where nothing was stored yet
        done, rebuild = _recover_journal(settings, journal, store, mark)
        if not done and not rebuild:
            _replay(settings, journal, store, mark)
    if rebuild:
        rebuild_database(settings, announce)
    return done


def _resume_forget(settings: Settings) -> None:
    """If a forget died after it replaced the journal, update the database as well. A damaged
    database is rebuilt later."""
    from whyfor.capture.forget import update_database

    with _database(settings, damaged=False) as store:
        if store is not None:
            with suppress(CorruptStore), sound(settings):
                update_database(settings, store)


def _finish_forget(settings: Settings, announce: Announce | None) -> list[str]:
    """Delete what a killed forget left behind; return the repairs that were needed for it."""
    try:
        _remove_forgotten(settings)
    except CorruptStore:
        rebuild_database(settings, announce, damaged=True)
        _remove_forgotten(settings)
        return [_REBUILT]
    return []


def _remove_forgotten(settings: Settings) -> None:
    from whyfor.capture.forget import finish_forget

    with closing(open_store(settings.database)) as store, sound(settings):
        finish_forget(settings, store)


@contextmanager
def writing(settings: Settings, wait: float) -> Iterator[Store]:
    """Open the store for writing under the ingest lock, in agreement with the journal. Raises Busy
    if others hold the lock for longer than `wait`."""
    with ingest_lock(settings.home, wait):
        recover(settings)
        with closing(open_store(settings.database)) as store:
            yield store


def is_damaged(settings: Settings) -> bool:
    """Return whether SQLite finds damage when it reads the whole database; False if there is no
    database."""
    if not settings.database.exists():
        return False
    try:
        store = open_reader(settings.database)
    except CorruptStore:
        return True
    with closing(store):
        try:
            return not store.is_whole() or bool(store.check())
        except WhyforError:
            return True


@contextmanager
def sound(settings: Settings) -> Iterator[None]:
    """Raise CorruptStore if an unexpected error inside is explained by a damaged database."""
    try:
        yield
    except Exception as error:
        expected = isinstance(error, (WhyforError, OSError)) and not isinstance(error, StoreFault)
        if not expected and is_damaged(settings):
            raise CorruptStore(
                f"the database is damaged: {first_line(error)}", REBUILD_HINT
            ) from error
        raise


@contextmanager
def _database(settings: Settings, *, damaged: bool) -> Iterator[Store | None]:
    """Open the database, migrated to this version; None if it is missing or damaged."""
    store = None
    if settings.database.exists() and not damaged:
        with suppress(CorruptStore):
            store = open_store(settings.database)
    if store is not None and not store.is_whole():
        store.close()
        store = None
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def agrees(store: Store, journal: Journal) -> bool:
    """Return whether the journal has the size and time that this database remembers. Damage that
    changes neither is found by doctor, and before anything is deleted."""
    mark = store.journal_end()
    if mark is None:
        return False
    try:
        found = journal.path.stat()
    except FileNotFoundError:
        return mark.number == 0
    return (found.st_size, found.st_mtime_ns) == (mark.size, mark.mtime)


# -- the database --------------------------------------------------------------------------------


def _recover_database(settings: Settings, journal: Journal, announce: Announce | None) -> list[str]:
    """Rebuild the database from the journal. If the journal is damaged too, complete it from the
    readable part of the database first."""
    done: list[str] = []
    intact = journal.check().whole and settings.journal.exists()
    entries = [] if intact else _salvaged(settings)
    if entries:
        done.append(_complete_journal(settings, journal, entries, newer=True))
    if not settings.journal.exists():
        set_database_aside(settings.database, _stamp())
        return [*done, *_set_segments_aside(settings)]
    rebuild_database(settings, announce, damaged=settings.database.exists())
    return [*done, _REBUILT]


def _salvaged(settings: Settings) -> list[Entry]:
    """Return what can still be read of a damaged database."""
    if not settings.database.exists():
        return []
    with closing(salvage(settings.database)) as store:
        return store.capture.all_entries()


def renew_database(settings: Settings, announce: Announce | None = None) -> None:
    """Make a database again that an older version wrote more into than is stored now; if not all
    of it could be read again, it stays as it is."""
    if not settings.database.exists():
        return
    with closing(open_reader(settings.database)) as known:
        wanted = bool(known.mark(RENEW))
    if wanted and rebuild_database(settings, announce, only_if_whole=True)[0]:
        with closing(open_store(settings.database)) as store, store.transaction():
            store.set_mark(RENEW, 0)


def rebuild_database(
    settings: Settings,
    announce: Announce | None = None,
    *,
    damaged: bool = False,
    only_if_whole: bool = False,
) -> tuple[list[MissingBytes], StoreTotals]:
    """Rebuild the database from journal and segments. Readers use the old one until the new one is
    complete.

    With `damaged`, the old one is set aside instead of overwritten. With `only_if_whole`, nothing
    is changed if bytes are missing.
    """
    from whyfor.capture.rebuild import Rebuild

    fresh = settings.home / "rebuild.db"
    journal = Journal(settings.journal)
    remove_database(fresh)
    progress = announce(journal.bytes()) if announce else None
    store = open_store(fresh)
    try:
        gaps = Rebuild(store, FolderBlobs(settings.segments), journal).run(progress)
        totals = store.stats.totals()
        if gaps and only_if_whole:
            return gaps, totals
        install_database(store, settings.database, _stamp(), damaged=damaged)
    finally:
        store.close()
        remove_database(fresh)
    return gaps, totals


def _replay(settings: Settings, journal: Journal, store: Store, mark: JournalMark | None) -> None:
    """Add to the database what a crash or a restored backup left out."""
    from whyfor.capture.rebuild import Rebuild

    number = mark.number if mark else journal.end().number
    if journal.end().number > number:
        Rebuild(store, FolderBlobs(settings.segments), journal).run_after(number)
    else:
        with store.transaction():
            store.save_journal_end(journal.end())


# -- the journal ---------------------------------------------------------------------------------


def _recover_journal(
    settings: Settings, journal: Journal, store: Store, mark: JournalMark | None
) -> tuple[list[str], bool]:
    """Complete a journal that lost entries the database has. Return what was done, and whether the
    database must be rebuilt too."""
    from whyfor.capture.compare import final_segments, segment_key, split_entries

    check = journal.check()
    if mark is not None and check.first > 1 and mark.number < check.first:
        # It was rewritten after this database was: what the database has beside it was forgotten
        # since.
        return ["the database was older than the journal: rebuilt"], True
    entries, ahead = split_entries(journal, mark)
    told = final_segments(entries)
    known = {segment_key(entry) for entry in store.capture.segment_entries()}
    if _is_sound(journal, check, mark) and known <= told.keys():
        lost = mark is None and bool(told.keys() - known)
        return ([_REBUILT], True) if lost else ([], False)
    newer = mark is None or check.end.number <= mark.number
    after = mark.number if mark else 0
    done = _complete_journal(
        settings, journal, store.capture.all_entries(), newer=newer, after=after
    )
    with store.transaction():
        store.save_journal_end(journal.end())
    return [done], bool(ahead) or bool(told.keys() - known)


def _is_sound(journal: Journal, check: JournalCheck, mark: JournalMark | None) -> bool:
    """Return whether no line of the journal is missing or damaged, including those the database
    remembers."""
    if not check.whole:
        return False
    if mark is None or mark.number == 0:
        return True
    if check.end.number < mark.number:
        return False
    return not mark.checksum or _checksum_of(journal, mark.number) == mark.checksum


def _checksum_of(journal: Journal, number: int) -> str | None:
    for line in journal.lines():
        if line.number == number:
            return line.checksum
    return None


def _complete_journal(
    settings: Settings, journal: Journal, known: list[Entry], *, newer: bool, after: int = 0
) -> str:
    """Set the journal aside and write it again, with the entries that only the database has; return
    what was done.

    With `newer`, the database is at least as new as the journal and wins where they differ. `after`
    is the last number the database remembers.
    """
    from whyfor.capture.completion import complete_entries

    kept = list(journal.entries())
    completed = complete_entries(kept, known, FolderBlobs(settings.segments).has, newer=newer)
    done = "the journal was damaged or lost"
    if settings.journal.exists():
        aside = settings.journal.with_name(f"{settings.journal.name}.damaged-{_stamp()}")
        shutil.copy2(settings.journal, aside)
        done += f" (kept as {aside.name})"
    journal.rewrite(completed, after=max(journal.end().number, after))
    added = max(0, len(completed) - len(kept))
    done += f": {plural(added, 'entry', 'entries')} completed from the database"
    return done + _set_unlisted_aside(settings, completed)


def _set_unlisted_aside(settings: Settings, entries: list[Entry]) -> str:
    """Move segments that nothing lists now out of reach of whatever deletes unlisted segments; a
    damaged journal may have listed them."""
    listed = {
        parse_address(entry.digest).object for entry in entries if isinstance(entry, SegmentEntry)
    }
    blobs = FolderBlobs(settings.segments)
    unlisted = [digest for digest in blobs.digests() if digest not in listed]
    if not unlisted:
        return ""
    aside = _unlisted_folder(settings)
    blobs.move(unlisted, aside)
    return f"; {plural(len(unlisted), 'segment')} that nothing lists now are kept as {aside.name}"


def _unlisted_folder(settings: Settings) -> Path:
    return settings.segments.with_name(f"{settings.segments.name}.unlisted-{_stamp()}")


def _set_segments_aside(settings: Settings) -> list[str]:
    """Rename the segments' directory if neither a journal nor a database exists, so that nothing
    deletes them."""
    if not any(FolderBlobs(settings.segments).digests()):
        return []
    aside = _unlisted_folder(settings)
    settings.segments.rename(aside)
    return [
        f"the journal and the database are gone: the segments are kept as {aside.name}, "
        "and what the agents still have is read again"
    ]


def _stamp() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


def first_line(error: BaseException) -> str:
    return label((str(error).splitlines() or [type(error).__name__])[0])
