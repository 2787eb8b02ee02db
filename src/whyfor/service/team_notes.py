"""Notes from the sessions of others. The next session is told none of them unless a person read it
and took it over, one by one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import cast

from whyfor.config import Settings
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.memory import NoteStatement, ObservationType, StoredObservation
from whyfor.model.sync import Remote
from whyfor.model.times import wall_clock
from whyfor.model.wire.memory import WireNote
from whyfor.recall.note_statements import record_note
from whyfor.service.statements import author
from whyfor.store.open import reading_local
from whyfor.sync.places import remote_here
from whyfor.sync.team_reader import TeamReader

_PAGES = 10  # of 100 notes that are looked through
_LONGEST = 2_000  # characters of a note
_SHORTEST = 4  # characters of an id


def team_notes(settings: Settings, cwd: Path, limit: int = 50) -> list[WireNote]:
    """Return notes that others shared on this repository and nobody took over here, newest first.
    Raises NotFound if it is shared with no server, RemoteFault if that does not answer."""
    remote = _remote(settings, cwd)
    with reading_local(settings) as store:
        found = []
        for note in _listed(settings, remote):
            own = store.sessions.numbers([(note.agent, note.session_id)])
            known = store.memory.said(note.id)
            if not own and not known and note.type != "command":
                found.append(note)
    return found[:limit]


def accept_note(settings: Settings, cwd: Path, note_id: str) -> StoredObservation:
    """Take a note of somebody else over, as one's own, with their name; sessions to come may be
    told it. Raises BadInput if an agent asks: only a person may."""
    if author(settings) != "person":
        raise BadInput("only a person can take over notes of others", "Tell the user its id.")
    if len(note_id) < _SHORTEST:
        raise BadInput(f"{note_id!r} is too short", "List them: whyfor memory team")
    remote = _remote(settings, cwd)
    fitting = [note for note in _listed(settings, remote) if note.id.startswith(note_id)]
    if len(fitting) != 1:
        raise NotFound(f"no note of the team begins with {note_id!r}", "See: whyfor memory team")
    note = fitting[0]
    words = (note.narrative or note.title)[:_LONGEST]
    statement = NoteStatement(
        key=note.id,
        at=wall_clock(),
        by="person",
        action="write",
        text=f"{words} (from {note.person or 'the team'})",
        type=cast(ObservationType, note.type),
        files=tuple(note.files_written),
        commit=note.commit,
        project=remote.project,
        branch=note.branch,
    )
    record_note(settings, statement)
    with reading_local(settings) as store:
        return store.memory.observation(note.id)


def _listed(settings: Settings, remote: Remote) -> list[WireNote]:
    found: list[WireNote] = []
    with closing(TeamReader(settings, remote)) as reader:
        after = None
        for _ in range(_PAGES):
            page = reader.notes(after)
            found += page.items
            after = page.next
            if after is None:
                break
    return found


def _remote(settings: Settings, cwd: Path) -> Remote:
    here = remote_here(settings, cwd) if settings.shares_anything else None
    if here is None or not here[0].team_project:
        raise NotFound("this repository is shared with no server", "See: whyfor remote status")
    return here[0]
