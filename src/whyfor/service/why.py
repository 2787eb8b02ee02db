"""why: which turn put a line there, what was asked and said; and who removed a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whyfor.capture.line_cache import keep_lines
from whyfor.config import Settings
from whyfor.git.place import GitPlace, name_file_place, name_place
from whyfor.model.blame import BlameRow
from whyfor.model.errors import BadInput
from whyfor.model.why import GoneText, LineReason
from whyfor.store.open import reading_local
from whyfor.story.lines.file_blame import BlameTarget
from whyfor.story.lines.location import parse_location
from whyfor.story.lines.reasons import ReasonReader

if TYPE_CHECKING:  # most people share nothing, and never pay for it
    from whyfor.sync.shared_lines import SharedLines


def explain_lines(
    settings: Settings, cwd: Path, location: str, revision: str | None = None
) -> list[LineReason]:
    """Return why the lines of FILE:LINE or FILE:A-B are there. Raises BadInput if no line is
    named, and what blame raises."""
    place = parse_location(location, cwd)
    if place.first is None or place.last is None:
        raise BadInput(
            f"{location} names no line", f"Write FILE:LINE. The whole file: whyfor blame {location}"
        )
    with reading_local(settings) as library:
        reader = ReasonReader(library, name_file_place(cwd, place.file))
        found = reader.reasons(BlameTarget(place.file, cwd, revision), place.first, place.last)
    keep_lines(settings, reader.blamer.fresh.values())
    rows = [row for reason in found for row in reason.rows]
    shared = _shared(settings, reader.place, rows)
    if shared is None:
        return found
    from whyfor.sync.shared_lines import add_reasons

    where, lines = shared
    return add_reasons(where, found, lines)


def _shared(
    settings: Settings, place: GitPlace, rows: list[BlameRow]
) -> tuple[GitPlace, SharedLines] | None:
    """Return what others shared of lines that nobody here is known for; None if nothing is."""
    if not settings.shares_anything:
        return None
    from whyfor.sync.places import remote_here
    from whyfor.sync.shared_lines import fetch_stories, unknown_commits

    commits = unknown_commits(rows)
    here = remote_here(settings, place) if commits else None
    if here is None:
        return None
    remote, where = here
    return where, fetch_stories(settings, remote, where, commits)


def explain_gone(settings: Settings, cwd: Path, text: str, file: str | None = None) -> GoneText:
    """Return who removed a text last. Raises NotFound if no commit did."""
    if not text.strip() or "\n" in text:
        raise BadInput("nothing to look for", "Give a part of a line: whyfor why --gone 'retry('")
    with reading_local(settings) as library:
        target = BlameTarget(file, cwd) if file is not None else None
        place = name_file_place(cwd, file) if file is not None else name_place(cwd)
        found = ReasonReader(library, place).gone(text, target)
    line = BlameRow(0, found.text, found.commit, found.path, 0, "", "", 0, "", found.who)
    shared = _shared(settings, place, [line])
    if shared is None:
        return found
    from whyfor.sync.shared_lines import add_gone

    where, lines = shared
    return add_gone(where, found, text, target, lines)
