"""The Commit page: a commit's story, and its change with the turns that wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from litestar import get
from litestar.params import FromPath, FromQuery
from litestar.response import Template
from markupsafe import Markup

from whyfor.config import Settings
from whyfor.model.checkpoints import Annotation
from whyfor.model.memory import StoredObservation
from whyfor.model.stories import MERGE, undo_command
from whyfor.server.page import Kept, Live, render_page
from whyfor.server.pages.diffs import painted
from whyfor.service.commit import (
    AuthorLabel,
    CommitPage,
    FileView,
    HunkView,
    commit_page,
    diff_rows,
)
from whyfor.service.memory_page import notes_about_files

STEPS = ("Problem", "Solution", "Effect")
OPEN = 400  # lines of diffs that are unfolded to begin with


class DiffLine(msgspec.Struct, frozen=True):
    """A line of a diff, ready for the table."""

    sign: str
    old: int | None
    new: int | None
    code: Markup
    who: AuthorLabel | None
    first: bool


@get("/commits/{sha:str}", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    hub: Live,
    sha: FromPath[str],
    project: FromQuery[str] = "",
    file: FromQuery[int | None] = None,
) -> Template:
    cursor = str(hub.cursor)  # before the look: what comes between is told twice rather than never
    found = commit_page(settings, sha, project=project, only=file)
    note = found.told.annotation
    return render_page(
        "commit.html",
        here="timeline",
        cursor=cursor,
        behind=found,
        told=found.told,
        note=note,
        steps=steps(note) if note else [],
        alternatives=[alternative(text) for text in note.alternatives] if note else [],
        unfolded=unfolded(found, file),
        only=file,
        table=hunk_lines,
        bar=list(bar(found)),
        merge=found.told.reason == MERGE,
        undo=undo_command(found.told.commit.sha),
        when=when,
        remembered=_notes(settings, found),
    )


def _notes(settings: Settings, found: CommitPage) -> list[StoredObservation]:
    """What is remembered about the files that the commit changes."""
    paths = [path for file in found.files for path in (file.path, file.old_path) if path]
    return notes_about_files(settings, found.project.identity, paths) if found.project else []


def when(millis: int) -> str:
    """today 13:53"""
    at, now = datetime.fromtimestamp(millis / 1000), datetime.now()
    day = {0: "today", 1: "yesterday"}.get((now.date() - at.date()).days, f"{at:%Y-%m-%d}")
    return f"{day} {at:%H:%M}"


def steps(note: Annotation) -> list[tuple[str, str]]:
    """Return the steps of an intent: problem, solution, effect; for a derived one: what was asked,
    done and said."""
    parts = [part.strip() for part in note.intent.split("→") if part.strip()]
    if note.by == "derived":
        names: Sequence[str] = (
            ("Asked", "Done", "Said")[: len(parts)] if len(parts) == 3 else ("", "", "")
        )
    else:
        names = STEPS if len(parts) == 3 else ("", "", "")
    return [(names[at] if at < 3 else "", part) for at, part in enumerate(parts)]


def alternative(text: str) -> tuple[str, str]:
    """Return what was considered, and why it was rejected."""
    what, _, why = re.sub(r"\s+[—–-]\s+", ": ", text, count=1).partition(": ")
    return (what, why) if why and len(what) <= 80 else (text, "")


def unfolded(found: CommitPage, only: int | None) -> set[int]:
    """Return which files are open at first: as many as fit, or the one that was asked for."""
    if only is not None:
        return {only}
    opened: set[int] = set()
    left = OPEN
    for file in found.files:
        size = sum(len(hunk.rows) for hunk in file.hunks)
        if size and (size <= left or not opened):
            opened.add(file.number)
            left -= size
    return opened


def bar(found: CommitPage) -> Iterator[tuple[str, int, float, float]]:
    """Return who wrote how many of the added lines: name, lines, position and width of the bar (of
    300)."""
    total = sum(found.counts.values())
    at = 0.0
    last = ("modified", "person", "unknown")
    order = [name for name in found.counts if name not in last] + [*last]
    for name in order:
        if number := found.counts.get(name, 0):
            wide = 300 * number / total
            yield name, number, round(at, 2), round(max(wide - 1, 1), 2)
            at += wide


# -- code ----------------------------------------------------------------------------------------


def hunk_lines(hunk: HunkView, file: FileView) -> list[DiffLine]:
    """Return the lines of a hunk, highlighted, with changed words marked and invisible characters
    shown."""
    codes = painted(diff_rows(hunk), file.path, file.old_path)
    return [
        DiffLine(row.line.sign, row.line.old, row.line.new, code, row.who, row.first)
        for row, code in zip(hunk.rows, codes, strict=True)
    ]


router = [show]
