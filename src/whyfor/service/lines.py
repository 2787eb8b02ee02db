"""lines: whose the lines are that a commit or a branch adds."""

from __future__ import annotations

from pathlib import Path

from whyfor.capture.line_cache import keep_lines
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.line_counts import RangeCounts
from whyfor.store.open import reading_local
from whyfor.story.lines.range_lines import RangeLines


def count_range_lines(settings: Settings, cwd: Path, revisions: str) -> RangeCounts:
    """Return the added lines of a range by their writers, file by file. Raises BadInput and
    NotFound for revisions that are not there."""
    with reading_local(settings) as library:
        reader = RangeLines(library, name_place(cwd))
        found = reader.counts(revisions)
    keep_lines(settings, reader.blamer.fresh.values())
    return found
