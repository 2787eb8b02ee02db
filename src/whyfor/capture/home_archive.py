"""A whole home of Whyfor as one archive: written here, merged there.

The archive holds the journal, the segments, the settings and the definitions of agents, as they
are: nothing is redacted. Merging adds the sources that are not here, continues those that are
shorter here, and leaves the others; then the database is made again.
"""

from __future__ import annotations

import shutil
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from whyfor import __version__
from whyfor.capture.faults import writable
from whyfor.capture.recover import rebuild_database, recover
from whyfor.capture.staging import unpack_archive
from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.locks import LOCK_WAIT, ingest_lock
from whyfor.model.errors import BadInput, NewerStore, NotFound, StoreError
from whyfor.model.progress import Announce
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import (
    Entry,
    ForgottenEntry,
    Journal,
    MergedEntry,
    MovedEntry,
    SegmentEntry,
)
from whyfor.store.tombstones import SALT, Tombstones, read_salt

MANIFEST = "whyfor-home.json"
_FORMAT = 1
_BESIDE = ("config.toml", SALT)  # taken over only by a home that has none


class HomeManifest(msgspec.Struct):
    format: int
    version: str
    made_at: int  # ms


class MergedHome(msgspec.Struct):
    """What came of merging a home into this one."""

    sources: int = 0  # that the archive has
    segments: int = 0  # that were not here
    bytes: int = 0  # of these
    problems: list[str] = []
    seconds: float = 0.0


# -- writing -------------------------------------------------------------------------------------


def write_home(settings: Settings, target: Path, announce: Announce | None = None) -> int:
    """Write the home into an archive, for its owner alone; return its size. Raises NotFound if
    nothing is kept yet."""
    if not settings.journal.exists():
        raise NotFound("nothing is kept yet", "Read what your agents wrote: whyfor ingest")
    with writable(settings), ingest_lock(settings.home, LOCK_WAIT):
        recover(settings, None)
        files = list(_files(settings))
        progress = announce(sum(path.stat().st_size for _, path in files)) if announce else None
        partial = target.with_name(f"{target.name}.partial")
        partial.touch(mode=0o600)
        try:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
                made = HomeManifest(_FORMAT, __version__, time.time_ns() // 1_000_000)
                archive.writestr(MANIFEST, msgspec.json.encode(made))
                for name, path in files:
                    archive.write(path, name)
                    if progress:
                        progress(path.stat().st_size)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    return target.stat().st_size


def _files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yield what is in an archive: names and files."""
    yield settings.journal.name, settings.journal
    for name in _BESIDE:
        if (settings.home / name).is_file():
            yield name, settings.home / name
    for folder in ("agents", settings.segments.name):
        for path in sorted((settings.home / folder).rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(settings.home).as_posix(), path


# -- merging -------------------------------------------------------------------------------------


def is_home_archive(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def merge_home(settings: Settings, path: Path, announce: Announce | None = None) -> MergedHome:
    """Add what an archive holds to this home, and make the database again. Raises BadInput if it
    is damaged, NewerStore if a newer program wrote it."""
    begun = time.monotonic()
    make_folders(settings.home)
    with writable(settings), ingest_lock(settings.home, LOCK_WAIT):
        recover(settings, None)
        folder = settings.imports / "home"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        try:
            unpack_archive(path, folder)
            _check_manifest(folder / MANIFEST)
            _take_settings(settings.home, folder)
            merging = HomeMerge(settings, folder)
            merged = merging.run()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if merging.is_changed:
            rebuild_database(settings, announce)
    merged.seconds = round(time.monotonic() - begun, 3)
    return merged


def _check_manifest(path: Path) -> None:
    try:
        made = msgspec.json.decode(path.read_bytes(), type=HomeManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise BadInput(f"the archive is damaged: {error}", "Export it again.") from None
    if made.format > _FORMAT:
        raise NewerStore(
            f"Whyfor {made.version} wrote the archive, in a format this version does not know",
            "Upgrade Whyfor: pip install --upgrade whyfor",
        )


def _take_settings(home: Path, folder: Path) -> None:
    """Take the settings and the definitions that this home does not have."""
    given = [folder / name for name in _BESIDE]
    given += sorted((folder / "agents").glob("*.toml"))
    for path in given:
        target = home / path.relative_to(folder)
        if path.is_file() and not target.exists():
            make_folders(target.parent)
            replace(target, path.read_bytes())


class HomeMerge:
    """Adds the entries of another journal to ours."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.journal = Journal(settings.journal)
        self.blobs = FolderBlobs(settings.segments)
        self.other_journal = Journal(folder / settings.journal.name)
        self.other_blobs = FolderBlobs(folder / settings.segments.name)
        self.same_salt = read_salt(settings.home) == read_salt(folder)
        self.ours = HomeContent(self.journal)
        self.merged = MergedHome()
        self.is_changed = False

    def run(self) -> MergedHome:
        theirs = HomeContent(self.other_journal)
        forgotten = self.ours.tombstones
        self.merged.sources = len(theirs.sources)
        for entry in theirs.others:
            self._add_other(entry)
        for source, segments in theirs.sources.items():
            first = segments[0]
            if not forgotten.covers(first.agent, first.session_id, first.parent):
                self._add_source(self.ours.sources.get(source, []), segments)
        self.blobs.flush()
        self.journal.flush()
        return self.merged

    def _add_other(self, entry: Entry) -> None:
        if isinstance(entry, ForgottenEntry) and not self.same_salt:
            # digests that another salt made would be known by nobody here
            entry = msgspec.structs.replace(entry, records={}, strings=[])
        if msgspec.json.encode(entry) not in self.ours.bodies:
            self.journal.add(entry)
            self.is_changed = True

    def _add_source(self, ours: list[SegmentEntry], theirs: list[SegmentEntry]) -> None:
        """Add what the other home has of a source beyond ours; of two that differ, ours stays."""
        whole = [entry for entry in ours if not entry.partial]
        generation = whole[-1].generation if whole else -1
        reach = whole[-1].end if whole else 0
        for entry in theirs:
            is_known = entry.generation < generation or entry.end <= reach
            if whole and (is_known or entry.partial):
                continue
            is_next = entry.start == reach or (entry.start < reach and not entry.gaps)
            if whole and not (entry.generation == generation and is_next):
                what = f"{entry.path}: other bytes are kept of it here; ours stay"
                self.merged.problems.append(what)
                return
            if not self._add_segment(entry, reach if whole else entry.start):
                return
            reach = entry.end

    def _add_segment(self, entry: SegmentEntry, start: int) -> bool:
        """Copy a segment, from a place in it on; return whether its bytes were there."""
        try:
            content = self.other_blobs.get(entry.digest)[start - entry.start :]
        except (StoreError, OSError) as error:
            self.merged.problems.append(f"{entry.path}: {error}")
            return False
        digest = self.blobs.put(content)
        self.journal.add(msgspec.structs.replace(entry, digest=digest, start=start))
        self.merged.segments += 1
        self.merged.bytes += len(content)
        self.is_changed = True
        return True


class HomeContent:
    """What a journal holds: segments by source, in order, and everything else."""

    def __init__(self, journal: Journal) -> None:
        self.sources: dict[tuple[str, str], list[SegmentEntry]] = {}
        self.others: list[Entry] = []
        self.tombstones = Tombstones()
        for entry in journal.entries():
            self._take(entry)
        self.bodies = {msgspec.json.encode(entry) for entry in self.others}

    def _take(self, entry: Entry) -> None:
        if isinstance(entry, SegmentEntry):
            self.sources.setdefault(entry.source, []).append(entry)
        elif isinstance(entry, MovedEntry):
            # what is kept under the new name is all that counts: names differ between machines
            self.sources[entry.target] = [
                msgspec.structs.replace(each, path=entry.to)
                for each in self.sources.pop(entry.source, [])
            ]
        elif not isinstance(entry, MergedEntry):  # addresses of segments are followed already
            self.others.append(entry)
            if isinstance(entry, ForgottenEntry):
                names = (name.partition(":") for name in entry.sessions)
                self.tombstones.sessions |= {(agent, ident) for agent, _, ident in names}
