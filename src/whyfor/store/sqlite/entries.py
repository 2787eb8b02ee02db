"""The content of the database as journal entries, to complete a journal that lost lines.

The database is made from the journal, so it can restore most of it. Only the order between sources
is lost; it follows from when each segment was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from whyfor.model.errors import StoreError
from whyfor.model.sessions import Project
from whyfor.store.journal import (
    AliasEntry,
    CheckpointEntry,
    Entry,
    ForgottenEntry,
    IssueEntry,
    MemoryEntry,
    NoteEntry,
    OverrideEntry,
    PauseEntry,
    PlaceEntry,
    SegmentEntry,
    TaskEntry,
)
from whyfor.store.sql.checkpoints import SqlCheckpoints
from whyfor.store.sql.database import StoreDatabase, fetch
from whyfor.store.sql.memory import SqlMemory
from whyfor.store.sql.segments import decode_gaps
from whyfor.store.sql.tasks import SqlTasks

_SEGMENT = (
    *(
        "agent",
        "path",
        "generation",
        "start",
        "end",
        "digest",
        "observed_at",
        "framing",
        "session_id",
        "parent",
    ),
    *("sidecar", "cwd"),
)
_PROJECT = "p.identity, p.evidence, p.name, p.remote, p.root_commit, p.path"


def segment_entries(db: StoreDatabase) -> list[SegmentEntry]:
    """Return every segment of every source, in the order they were seen."""
    rows = fetch(
        db,
        "SELECT o.id, o.agent, o.path, g.generation, g.start, g.stop, g.digest, g.observed_at, "
        "o.framing, "
        "o.session_id, o.parent, o.sidecar, o.cwd, g.partial, g.gaps FROM segments g "
        "JOIN sources o ON o.id=g.source_id ORDER BY g.observed_at, o.id, g.generation, g.start",
    )
    last = {row[0]: number for number, row in enumerate(rows)}  # of each source
    states = _states(db)
    hidden = {
        source: msgspec.json.decode(body)
        for source, body in fetch(db, "SELECT source_id, body FROM hiding")
    }
    found: list[SegmentEntry] = []
    for number, (source, *values, partial, gaps) in enumerate(rows):
        fields = dict(zip(_SEGMENT, values, strict=True))
        fields["partial"] = bool(partial)
        fields["gaps"] = decode_gaps(gaps)
        if last[source] == number:
            fields["position"] = states.get(source)
            fields["hiding"] = hidden.get(source)
        found.append(SegmentEntry(**fields))
    return found


def _states(db: StoreDatabase) -> dict[int, dict[str, Any]]:
    """Return, for sources that are sessions in an agent's database, how far each was read."""
    rows = fetch(db, "SELECT id, state FROM sources WHERE state LIKE '%\"rows\"%'")
    decoded = ((source, msgspec.json.decode(state)) for source, state in rows)
    return {
        source: state["rows"] for source, state in decoded if isinstance(state.get("rows"), dict)
    }


def place_entries(db: StoreDatabase) -> list[PlaceEntry]:
    rows = fetch(
        db,
        f"SELECT l.cwd, l.observed_at, {_PROJECT} FROM places l JOIN projects p ON "
        "p.id=l.project_id "
        "ORDER BY l.observed_at",
    )
    return [PlaceEntry(cwd, Project(*project), observed_at) for cwd, observed_at, *project in rows]


def alias_entries(db: StoreDatabase) -> list[AliasEntry]:
    rows = fetch(
        db,
        f"SELECT a.path, a.at, {_PROJECT} FROM aliases a JOIN projects p ON p.identity=a.identity "
        "ORDER BY a.at",
    )
    return [AliasEntry(path, Project(*project), at) for path, at, *project in rows]


def checkpoint_entries(db: StoreDatabase) -> list[CheckpointEntry]:
    return [CheckpointEntry(checkpoint) for checkpoint in SqlCheckpoints(db).all().values()]


def said_entries(db: StoreDatabase) -> list[OverrideEntry | NoteEntry]:
    return SqlCheckpoints(db).all_said()


def memory_entries(db: StoreDatabase) -> list[MemoryEntry]:
    return [MemoryEntry(statement) for statement in SqlMemory(db).all_said()]


def task_entries(db: StoreDatabase) -> list[TaskEntry | IssueEntry]:
    tasks = SqlTasks(db)
    said = [TaskEntry(statement) for statement in tasks.said()]
    return [*said, *(IssueEntry(issue) for issue in tasks.issues())]


def pause_entries(db: StoreDatabase) -> list[PauseEntry]:
    rows = fetch(db, "SELECT body FROM pauses ORDER BY id")
    return [msgspec.json.decode(body, type=PauseEntry) for (body,) in rows]


def forgotten_entries(db: StoreDatabase) -> list[ForgottenEntry]:
    """Return one entry with everything that was ever forgotten; none if nothing was."""
    names: dict[str, list[str]] = {"session": [], "commit": [], "lost": [], "string": []}
    records: dict[str, list[str]] = {}
    rows = fetch(db, "SELECT kind, name FROM forgotten")
    for kind, name in rows:
        if kind == "record":
            session, _, digest = name.rpartition("/")
            records.setdefault(session, []).append(digest)
        else:
            names[kind].append(name)
    if not rows:
        return []
    at = SqlCheckpoints(db).mark("forgotten")
    return [
        ForgottenEntry(
            at, names["session"], names["commit"], names["lost"], records, names["string"]
        )
    ]


_OTHERS: tuple[Callable[[StoreDatabase], Iterable[Entry]], ...] = (
    place_entries,
    alias_entries,
    checkpoint_entries,
    said_entries,
    memory_entries,
    task_entries,
    pause_entries,
    forgotten_entries,
)


def all_entries(db: StoreDatabase) -> list[Entry]:
    """Return everything that can be read; unreadable parts of a damaged database are left out."""
    found: list[Entry] = []
    for read in (segment_entries, *_OTHERS):
        try:
            found += read(db)
        except (StoreError, msgspec.MsgspecError, TypeError, ValueError, KeyError):
            continue
    return found
