"""why: which turn put a line there, what was asked and said; and who removed a text."""

from __future__ import annotations

from pathlib import Path

from whyfor.capture.line_cache import keep_lines
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.errors import BadInput
from whyfor.model.why import GoneText, LineReason
from whyfor.store.open import reading
from whyfor.story.lines.file_blame import BlameTarget
from whyfor.story.lines.location import parse_location
from whyfor.story.lines.reasons import ReasonReader


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
    with reading(settings) as library:
        reader = ReasonReader(library, name_place(cwd))
        found = reader.reasons(BlameTarget(place.file, cwd, revision), place.first, place.last)
    keep_lines(settings, reader.blamer.fresh.values())
    return found


def explain_gone(settings: Settings, cwd: Path, text: str, file: str | None = None) -> GoneText:
    """Return who removed a text last. Raises NotFound if no commit did."""
    if not text.strip() or "\n" in text:
        raise BadInput("nothing to look for", "Give a part of a line: whyfor why --gone 'retry('")
    with reading(settings) as library:
        target = BlameTarget(file, cwd) if file is not None else None
        return ReasonReader(library, name_place(cwd)).gone(text, target)
