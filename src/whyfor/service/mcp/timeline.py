"""What happened around a session, a note, a commit, a file or a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from whyfor.git.place import name_place
from whyfor.model.agent_answers import MemoryLine, MemoryLines
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.memory import MemoryFilter
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.model.times import DAY, parse_when
from whyfor.service.mcp.lines import commit_id, note_id, note_line, session_ids
from whyfor.service.mcp.references import (
    CommitRef,
    NoteRef,
    Referenced,
    SessionRef,
    resolve_reference,
)
from whyfor.store.open import OpenStore

_DAYS = (1, 7, 30, 365, 36_500)  # how far is looked ahead, until there is enough
_NOTES = 200
# The project that the agent works in, looked up when it is needed; raises NotFound.
OwnProjects = Callable[[], tuple[int, ...]]


class _Anchor(msgspec.Struct, frozen=True):
    """What the timeline is around: a moment, in a project."""

    at: int
    projects: tuple[int, ...]
    id: str = ""


def timeline_lines(
    store: OpenStore, around: str, limit: int, folder: Path, own: OwnProjects
) -> MemoryLines:
    """Return at most `limit` sessions, notes and commits, oldest first, half of them before the
    anchor. Of a file, the newest that are about it."""
    anchor = _anchor(store, around.strip(), folder, own)
    if anchor is None:
        found = sorted(_of_file(store, around.strip(), limit, own()), key=_moment)[-limit:]
        if not found:
            raise NotFound(
                f"nothing is known of {around!r}",
                "Give an id from recall, a commit, a file, or a time: 2026-05-31, 3d.",
            )
        return MemoryLines(found)
    found = sorted(_near(store, anchor, limit), key=_moment)
    before = [line for line in found if (line.at or 0) <= anchor.at][-limit // 2 :]
    after = [line for line in found if (line.at or 0) > anchor.at][: limit // 2]
    lines = [_marked(line, anchor) for line in (*before, *after)]
    hint = f"Earlier: around {lines[0].id}. Later: around {lines[-1].id}." if lines else "Nothing."
    return MemoryLines(lines, hint=hint)


def _moment(line: MemoryLine) -> tuple[int, str]:
    return line.at or 0, line.id


def _marked(line: MemoryLine, anchor: _Anchor) -> MemoryLine:
    if line.id != anchor.id:
        return line
    return msgspec.structs.replace(line, why=f"(here) {line.why}".strip())


# -- around what -----------------------------------------------------------------------------------


def _anchor(store: OpenStore, around: str, folder: Path, own: OwnProjects) -> _Anchor | None:
    """Return the moment that is meant; None if it may be a file."""
    if not around:
        return _Anchor(time.time_ns() // 1_000_000, own())
    when = _time_of(around)
    if when is not None:
        return _Anchor(when, own())
    try:
        found = resolve_reference(store, around, name_place(folder))
    except (BadInput, NotFound):
        return None
    return _of_reference(store, found, own)


def _time_of(text: str) -> int | None:
    try:
        return parse_when(text, datetime.now().astimezone())
    except BadInput:
        return None


def _of_reference(store: OpenStore, found: Referenced, own: OwnProjects) -> _Anchor:
    if isinstance(found, NoteRef):
        note = found.note
        projects = _project_of(store, note.project, own)
        return _Anchor(note.observation.at or 0, projects, note_id(note.observation.key))
    if isinstance(found, SessionRef):
        session = found.session
        ident = session_ids(store, [session])[session.name]
        projects = _project_of(store, session.project, own)
        return _Anchor(session.started_at or 0, projects, ident)
    return _of_commit(store, found, own)


def _of_commit(store: OpenStore, found: CommitRef, own: OwnProjects) -> _Anchor:
    checkpoint = store.checkpoints.of_commits([found.sha]).get(found.sha)
    if checkpoint is None:
        raise NotFound(
            f"no session is linked to {found.sha[:10]}",
            "Give a time instead: around its date.",
        )
    number = store.checkpoints.project_of(found.sha)
    projects = (number,) if number is not None else own()
    return _Anchor(checkpoint.committed_at, projects, commit_id(found.sha))


def _project_of(store: OpenStore, identity: str | None, own: OwnProjects) -> tuple[int, ...]:
    found = store.projects.find(identity) if identity else None
    return (found[0],) if found else own()


# -- what was near ---------------------------------------------------------------------------------


def _near(store: OpenStore, anchor: _Anchor, limit: int) -> Iterator[MemoryLine]:
    earlier = store.sessions.matching(
        Filters(projects=anchor.projects, until=anchor.at), limit=limit, subagents=False
    )
    sessions = [*earlier, *_later(store, anchor, limit)]
    yield from _lines(store, sessions)
    times = [at for each in sessions for at in (each.started_at, each.ended_at) if at]
    within = Filters(
        projects=anchor.projects, since=min(times, default=0), until=max(times, default=0)
    )
    notes = store.memory.observations(MemoryFilter(within), _NOTES)
    yield from map(note_line, notes)


def _later(store: OpenStore, anchor: _Anchor, limit: int) -> list[Session]:
    """Return the first sessions that began after the anchor."""
    for days in _DAYS:
        until = anchor.at + days * DAY
        within = Filters(projects=anchor.projects, since=anchor.at, until=until)
        found = store.sessions.matching(within, limit=None, subagents=False)
        later = [each for each in found if (each.started_at or 0) > anchor.at]
        if len(later) >= limit:
            break
    return later[-limit:]


def _of_file(
    store: OpenStore, path: str, limit: int, projects: tuple[int, ...]
) -> Iterator[MemoryLine]:
    file = path.removeprefix("./")
    within = Filters(projects=projects, file=file)
    sessions = store.sessions.matching(within, limit=limit, subagents=False)
    yield from _lines(store, sessions, file)
    wanted = MemoryFilter(Filters(projects=projects), file=file)
    yield from map(note_line, store.memory.observations(wanted, limit))


def _lines(
    store: OpenStore, sessions: list[Session], file: str | None = None
) -> Iterator[MemoryLine]:
    """Yield these sessions and the commits that came of them; only commits of a file, if one is
    given."""
    ids = session_ids(store, sessions)
    for session in sessions:
        summary = store.memory.summary(session.id)
        outcome = summary.completed[-1].text if summary and summary.completed else ""
        yield MemoryLine(
            ids[session.name], session.started_at, "session", session.title or "", outcome
        )
    checkpoints = store.checkpoints.of_sessions([session.id for session in sessions])
    for checkpoint in _standing(checkpoints.values()):
        if file is None or _changes(checkpoint, file):
            yield MemoryLine(
                commit_id(checkpoint.commit),
                checkpoint.committed_at,
                "commit",
                checkpoint.subject,
                checkpoint.annotation.intent if checkpoint.annotation else "",
            )


def _standing(checkpoints: Iterable[Checkpoint]) -> Iterator[Checkpoint]:
    return (each for each in checkpoints if not each.superseded_by)


def _changes(checkpoint: Checkpoint, file: str) -> bool:
    return any(f"/{changed.path}".endswith(f"/{file}") for changed in checkpoint.files)
