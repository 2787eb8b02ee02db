"""blame: the lines of a file with the turns that wrote them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from whyfor.capture.line_cache import keep_lines
from whyfor.config import Settings
from whyfor.git.blame import BlameOptions, quoted_porcelain, read_porcelain
from whyfor.git.line_changes import read_texts
from whyfor.git.place import GitPlace, name_file_place
from whyfor.model.blame import BlameRow, FileBlame
from whyfor.model.errors import BadInput
from whyfor.model.text import one_line
from whyfor.store.open import reading_local
from whyfor.story.lines.file_blame import BlameTarget, FileBlamer, find_target
from whyfor.story.lines.location import parse_location
from whyfor.story.lines.text_edits import text_lines

__all__ = [
    "BlameOptions",
    "BlameTarget",
    "annotated_porcelain",
    "blame_file",
    "parse_location",
]

PORCELAIN, LINE_PORCELAIN = "--porcelain", "--line-porcelain"
_ASKED = 200  # characters of a request in a tag


def blame_file(settings: Settings, target: BlameTarget, options: BlameOptions) -> FileBlame:
    """Return the lines of a file; raises BadInput and NotFound for a file that cannot be told."""
    with reading_local(settings) as library:
        blamer = FileBlamer(library, name_file_place(target.cwd, target.file))
        found = blamer.blame(target, options)
    keep_lines(settings, blamer.fresh.values())
    return _with_shared(settings, blamer.place, found)


def _with_shared(settings: Settings, place: GitPlace, found: FileBlame) -> FileBlame:
    """Return the lines with what others shared of those that nobody here is known for."""
    if not settings.shares_anything:
        return found
    from whyfor.sync import shared_lines
    from whyfor.sync.places import remote_here

    commits = shared_lines.unknown_commits(found.rows)
    here = remote_here(settings, place) if commits else None
    if here is None:
        return found
    remote, where = here
    shared = shared_lines.fetch_stories(settings, remote, where, commits)
    rows = shared_lines.add_writers(where, found.rows, shared)
    return msgspec.structs.replace(found, rows=rows, notes=[*found.notes, *shared.notes])


def annotated_porcelain(
    settings: Settings, target: BlameTarget, options: BlameOptions, form: str
) -> Iterator[bytes]:
    """Yield what `git blame --porcelain` (or --line-porcelain) prints, with a tag for each thing
    that is known of a line. Raises BadInput for a text that git does not have: only git's own
    answer can be repeated byte for byte."""
    with reading_local(settings) as library:
        blamer = FileBlamer(library, name_file_place(target.cwd, target.file))
        found = find_target(library, target, blamer.folder)
        if found.tree is None or not _is_committed(blamer, found.text, found.tree.blob):
            raise BadInput(
                f"{found.path} has lines that are not committed",
                "Name a revision (whyfor blame --porcelain FILE HEAD), or use --json.",
            )
        arguments = options.arguments()
        data = quoted_porcelain(found.folder, found.tree.commit, found.path, arguments, form)
        lines = blamer.with_writers(list(read_porcelain(data)))
    keep_lines(settings, blamer.fresh.values())
    told = _with_shared(settings, blamer.place, FileBlame(found.path, found.tree.commit, lines))
    yield from _annotated(data, {row.line: row for row in told.rows})


def _is_committed(blamer: FileBlamer, text: str | None, blob: str) -> bool:
    if text is None:
        return True
    kept = read_texts(blamer.place, [blob]).get(blob)
    return kept is not None and text_lines(kept) == text_lines(text)


def _annotated(data: bytes, rows: dict[int, BlameRow]) -> Iterator[bytes]:
    """Put the tags before `filename`, or before the line itself where git repeats no details."""
    number = 0
    waiting = False
    for raw in data.split(b"\n")[:-1]:
        if waiting and raw.startswith((b"filename ", b"\t")):
            yield from _tags(rows[number])
            waiting = False
        elif not waiting and not raw.startswith((b"\t", b"filename ")):
            number = int(raw.split(b" ")[2])
            waiting = True
        yield raw + b"\n"


def _tags(row: BlameRow) -> Iterator[bytes]:
    who = row.who
    told = {
        "agent": who.agent,
        "session": who.session_id,
        "turn": who.turn,
        "call": who.writer.call if who.writer else None,
        "model": who.model,
        "evidence": who.evidence,
        "from": who.person,
        "asked": one_line(who.asked.text)[:_ASKED] if who.asked else None,
    }
    for name, value in told.items():
        if value:
            yield f"whyfor-{name} {one_line(str(value))}\n".encode()
