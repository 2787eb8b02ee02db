"""Lines that another tool's notes tell of, taken over by `whyfor notes import`.

They are kept in one file for each project, which the same command makes again from git. A line
that our own records tell of exactly keeps what they say.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.model.blame import LineWho
from whyfor.model.lines import AGENT, PERSON

FOLDER = "line-notes"
NOTE = "note"  # the evidence


class NotedRange(msgspec.Struct, frozen=True, array_like=True):
    """Lines of a commit, and who wrote them by the note."""

    first: int
    last: int
    writer: int  # its place among the writers


class NotedWriter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session of an agent, or a person."""

    agent: str = ""  # empty: a person
    session_id: str = ""
    model: str | None = None

    def as_who(self) -> LineWho:
        kind = AGENT if self.agent else PERSON
        return LineWho(kind, NOTE, self.agent, self.session_id, self.model)


class LineNotes(msgspec.Struct):
    """All that notes say of the lines of one project."""

    writers: list[NotedWriter] = []
    commits: dict[str, dict[str, list[NotedRange]]] = {}  # by commit and path

    def who(self, sha: str, path: str, line: int) -> LineWho | None:
        """Return who wrote a line of a commit; None if no note tells."""
        for each in self.commits.get(sha, {}).get(path, ()):
            if each.first <= line <= each.last:
                return self.writers[each.writer].as_who()
        return None


def notes_file(home: Path, project: str) -> Path:
    """Return where the notes of a project are kept."""
    from hashlib import sha256  # here: OpenSSL takes longer to load than most runs take

    name = sha256(project.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return home / FOLDER / f"{name}.json"


def load_line_notes(home: Path, project: str) -> LineNotes:
    """Return the notes that were imported; none if there are none, or they cannot be read."""
    try:
        data = notes_file(home, project).read_bytes()
        return msgspec.json.decode(data, type=LineNotes)
    except (OSError, msgspec.DecodeError):
        return LineNotes()


def has_line_notes(home: Path) -> bool:
    """Whether notes of any project were imported: one look, for most people have none."""
    return (home / FOLDER).is_dir()
