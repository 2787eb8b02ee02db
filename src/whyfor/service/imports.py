"""import: conversations from elsewhere, and whole homes of Whyfor."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import msgspec

from whyfor.capture.home_archive import is_home_archive, merge_home
from whyfor.capture.staging import StagedFiles, stage
from whyfor.config import Settings
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.progress import Announce
from whyfor.service.ingest import IngestReport, ingest


class ImportReport(msgspec.Struct):
    """What came of an import."""

    files: int = 0
    bytes: int = 0
    conversations: int = 0  # of web chats and notes
    skipped: int = 0  # files that are no transcripts
    sessions: int = 0  # that are new here
    new_records: int = 0
    from_home: bool = False  # it was a whole home
    unreadable: list[str] = []
    seconds: float = 0.0


def import_path(
    settings: Settings,
    given: Path,
    announce: Announce | None = None,
    linking: Announce | None = None,
) -> ImportReport:
    """Read the conversations in a file, a folder or a ZIP archive. What is known already changes
    nothing. Raises NotFound if nothing in it is a conversation."""
    if given.is_file() and zipfile.is_zipfile(given) and is_home_archive(given):
        return _import_home(settings, given, announce)
    staged = stage(settings.imports, given)
    try:
        return _read_staged(settings, staged, announce, linking)
    finally:
        shutil.rmtree(staged.folder, ignore_errors=True)


def _read_staged(
    settings: Settings,
    staged: StagedFiles,
    announce: Announce | None,
    linking: Announce | None,
) -> ImportReport:
    left_out = [f"{Path(one.path).name}: {one.reason}" for one in staged.unreadable]
    if staged.files == 0 and left_out:
        raise BadInput(f"nothing in it could be read: {left_out[0]}", "Copy it again.")
    if staged.files == 0:
        raise NotFound(
            "no conversation was found in it",
            "Agents' transcripts, data exports of ChatGPT and Claude, SpecStory's notes: "
            "docs/import.md",
        )
    before = _sessions(settings)
    found = ingest(settings, [staged.folder], None, announce, linking)
    return ImportReport(
        files=staged.files,
        bytes=staged.bytes,
        conversations=staged.conversations,
        skipped=staged.skipped,
        sessions=found.sessions + found.subagents - before,
        new_records=found.new_records,
        unreadable=left_out + [f"{Path(one.path).name}: {one.reason}" for one in found.unreadable],
        seconds=found.seconds,
    )


def _import_home(settings: Settings, given: Path, announce: Announce | None) -> ImportReport:
    before = _sessions(settings)
    merged = merge_home(settings, given, announce)
    found: IngestReport = ingest(settings)
    return ImportReport(
        files=merged.sources,
        bytes=merged.bytes,
        sessions=found.sessions + found.subagents - before,
        new_records=merged.segments,
        from_home=True,
        unreadable=merged.problems,
        seconds=merged.seconds,
    )


def _sessions(settings: Settings) -> int:
    """Return how many sessions are kept; 0 before the first."""
    from whyfor.store.open import reading

    try:
        with reading(settings) as library:
            totals = library.stats.totals()
    except NotFound:
        return 0
    return totals.sessions + totals.subagents
