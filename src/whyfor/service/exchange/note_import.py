"""notes import: what git-ai's notes say of lines, as evidence beside our own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.git.identity import identify
from whyfor.git.line_changes import LineChange, read_line_changes
from whyfor.git.notes import has_other_writer, noted_commits, read_note
from whyfor.git.place import name_place
from whyfor.model.errors import BadInput, NotFound
from whyfor.service.exchange.git_ai import MARK
from whyfor.story.commit_lookup import require_checkout
from whyfor.story.lines.imported_notes import LineNotes, NotedRange, NotedWriter, notes_file

_NOTE_MAX = 8 << 20  # characters
_NOTES_MAX = 100_000
_RANGES_MAX = 10_000  # of one entry
_ENTRY = re.compile(r"  (\S+) ([\d,-]+)")
_SPAN = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")
_REF = re.compile(r"refs/notes/[\w./-]+")


class NoteImport(msgspec.Struct):
    """What came of an import."""

    commits: int = 0  # with a note that was understood
    lines: int = 0  # that were taken over
    refused: int = 0  # lines that the note claims and the commit does not add
    unread: list[str] = []  # commits whose note is not git-ai's, or damaged
    gone: int = 0  # commits that git does not have


class ClaimedFile(msgspec.Struct, frozen=True):
    """What a note says of one file: keys and the lines they claim."""

    path: str
    claims: list[tuple[str, list[tuple[int, int]]]]


def import_notes(settings: Settings, cwd: Path, ref: str) -> NoteImport:
    """Take over what the notes under a ref say of lines. Imported again, the result is the same.
    Raises BadInput for a name that is no ref of notes, NotFound if it has none."""
    if not _REF.fullmatch(ref) or ".." in ref:
        raise BadInput(f"{ref} is no ref of notes", "Name one such as refs/notes/ai.")
    folder = require_checkout(name_place(cwd))
    shas = list(noted_commits(folder, ref))
    if not shas:
        raise NotFound(
            f"there are no notes under {ref}", f"Fetch them: git fetch origin {ref}:{ref}"
        )
    if len(shas) > _NOTES_MAX:
        raise BadInput(f"{ref} has {len(shas):,} notes", f"At most {_NOTES_MAX:,} are read.")
    report = NoteImport()
    notes = LineNotes()
    taking = NoteTaking(notes, report)
    changes = dict(read_line_changes(folder, shas))
    for sha in shas:
        if sha not in changes:
            report.gone += 1
            continue
        text = read_note(folder, ref, sha)
        if text is not None and has_other_writer(text, MARK):
            taking.take(sha, text, changes[sha])
    path = notes_file(settings.home, identify(str(folder)).identity)
    make_folders(path.parent)
    replace(path, msgspec.json.encode(notes))
    return report


class NoteTaking:
    """Puts what notes say into one list of writers and ranges."""

    def __init__(self, notes: LineNotes, report: NoteImport) -> None:
        self.notes = notes
        self.report = report
        self._places: dict[NotedWriter, int] = {}

    def take(self, sha: str, text: str, changes: list[LineChange]) -> None:
        """Add the lines of one commit: only those that it adds."""
        try:
            files, told = parse_note(text)
        except ValueError:
            self.report.unread.append(sha)
            return
        self.report.commits += 1
        added = {change.path: change.added_lines for change in changes}
        for file in files:
            for key, spans in file.claims:
                writer = note_writer(key, told)
                if writer is not None:
                    self._add(sha, file.path, writer, spans, added.get(file.path, set()))

    def _add(
        self,
        sha: str,
        path: str,
        writer: NotedWriter,
        spans: list[tuple[int, int]],
        added: set[int],
    ) -> None:
        place = self._places.setdefault(writer, len(self._places))
        if place == len(self.notes.writers):
            self.notes.writers.append(writer)
        for first, last in spans:
            wanted = range(first, min(last, first + _NOTE_MAX) + 1)
            lines = [line for line in wanted if line in added]
            self.report.refused += len(wanted) - len(lines)
            self.report.lines += len(lines)
            ranges = self.notes.commits.setdefault(sha, {}).setdefault(path, [])
            ranges += [NotedRange(one, other, place) for one, other in _runs(lines)]


def parse_note(text: str) -> tuple[list[ClaimedFile], dict[str, object]]:
    """Return the files of a note, and what it says of the keys. Raises ValueError if it is not in
    git-ai's layout."""
    if len(text) > _NOTE_MAX:
        raise ValueError("the note is too long")
    head, sign, body = text.partition("\n---\n")
    if not sign:
        head, sign, body = "", text[:4].strip().removesuffix("\n"), text[4:]
        sign = sign if sign == "---" else ""
    if not sign:
        raise ValueError("the note has no metadata")
    try:
        told = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    if not isinstance(told, dict) or not str(told.get("schema_version", "")).startswith(
        "authorship/"
    ):
        raise ValueError("the note has no schema")
    return list(_claimed_files(head)), told


def _claimed_files(head: str) -> Iterator[ClaimedFile]:
    path = ""
    claims: list[tuple[str, list[tuple[int, int]]]] = []
    for line in head.split("\n"):
        entry = _ENTRY.fullmatch(line)
        if entry:
            claims.append((entry[1], list(_spans(entry[2]))))
            continue
        if path and claims:
            yield ClaimedFile(path, claims)
        path, claims = line.strip('"') if line.startswith('"') else line, []
    if path and claims:
        yield ClaimedFile(path, claims)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for part in text.split(",")[:_RANGES_MAX]:
        found = _SPAN.fullmatch(part)
        if found:
            yield int(found[1]), int(found[2] or found[1])


def note_writer(key: str, told: dict[str, object]) -> NotedWriter | None:
    """Return who a key stands for: a session (`s_…::t_…`), a person (`h_…`), or a prompt of an
    older version; None if the note does not say."""
    if key.startswith("h_"):
        return NotedWriter() if key in _table(told, "humans") else None
    session = key.partition("::")[0]
    found = _table(told, "sessions").get(session) or _table(told, "prompts").get(session)
    agent = found.get("agent_id") if isinstance(found, dict) else None
    if not isinstance(agent, dict):
        return None
    names = [agent.get(name) for name in ("tool", "id", "model")]
    tool, ident, model = (name if isinstance(name, str) else "" for name in names)
    return NotedWriter(tool, ident, model or None) if tool else None


def _table(told: dict[str, object], name: str) -> dict[str, object]:
    found = told.get(name)
    return found if isinstance(found, dict) else {}


def _runs(lines: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the runs of numbers that follow one another."""
    for index, line in enumerate(lines):
        if index == 0 or line != lines[index - 1] + 1:
            first = line
        if index + 1 == len(lines) or lines[index + 1] != line + 1:
            yield first, line
