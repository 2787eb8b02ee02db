"""status and diff: where the work stands, and what lies between two commits."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture.ingest import wall_clock
from whyfor.capture.pauses import active_pauses, describe_pause
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.git.run import ask
from whyfor.git.worktree import WorkTreeState, find_changes
from whyfor.model.events import EventRef
from whyfor.model.query import Filters
from whyfor.model.reports import LastCapture, OpenWork, Paused, StatusReport
from whyfor.model.sessions import Session
from whyfor.store.open import OpenStore, reading
from whyfor.story.commit_lookup import checkout_root
from whyfor.story.commit_stories import stories_of
from whyfor.story.repositories import repository_at

# a session is active if it wrote something in the last half hour and has not said goodbye
ACTIVE = 30 * 60_000
RECENT = 30 * 86_400_000


def status(settings: Settings, cwd: Path) -> StatusReport:
    folder = checkout_root(name_place(cwd))
    with reading(settings) as library:
        sha = ask(folder, "rev-parse", "--verify", "--quiet", "HEAD") if folder else None
        head = stories_of(library, folder, [sha])[0] if folder and sha else None
        repository = repository_at(library, folder) if folder else None
        sessions = _recent(library, repository.id) if repository else []
        wrote = {session.id: _wrote(library, session) for session in sessions}
        state = WorkTreeState(frozenset(), {})
        if isinstance(folder, Path):  # a bare repository has no files
            state = find_changes(folder, sha, {path for paths in wrote.values() for path in paths})
        return StatusReport(
            head,
            [session for session in sessions if _active(library, session)],
            [
                found
                for session in sessions
                if (found := _open(library, session, wrote[session.id] & state.changed))
            ],
            [
                LastCapture(
                    name, library.sessions.last_ended(name), library.signals.last_heard(name)
                )
                for name in AGENTS
            ],
            [describe_pause(pause) for pause in active_pauses(settings)],
            state.unread,
        )


def _recent(library: OpenStore, project: int) -> list[Session]:
    since = wall_clock() - RECENT
    return library.sessions.matching(
        Filters(projects=(project,), since=since), limit=None, subagents=False
    )


def _active(library: OpenStore, session: Session) -> bool:
    if session.ended_at is None or wall_clock() - session.ended_at > ACTIVE:
        return False
    goodbye = library.signals.ended_at(session.agent, session.session_id)
    return goodbye is None or goodbye < session.ended_at


def _wrote(library: OpenStore, session: Session) -> set[str]:
    """Files it wrote since its last commit, and its subagents with it."""
    last = library.checkpoints.last_linked(session.id)
    committed_at = library.conversation.time_of(EventRef(session.id, last)) or 0
    return library.sessions.files_since(session, last, committed_at)


def _open(library: OpenStore, session: Session, files: set[str]) -> OpenWork | None:
    """The session with the files that are in no commit yet; None if there are none."""
    if not files:
        return None
    last = library.checkpoints.last_linked(session.id)
    prompts = library.conversation.prompts_since(session.id, last)
    return OpenWork(session, prompts, sorted(files))


# -- between two commits -------------------------------------------------------------------------


class CaptureHealth(msgspec.Struct, frozen=True):
    agents: list[LastCapture]
    paused: list[Paused]


def capture_health(settings: Settings) -> CaptureHealth:
    """When each agent was last heard of, and what is paused."""
    with reading(settings) as library:
        agents = [
            LastCapture(name, library.sessions.last_ended(name), library.signals.last_heard(name))
            for name in AGENTS
        ]
    return CaptureHealth(agents, [describe_pause(pause) for pause in active_pauses(settings)])
