"""status and diff: where the work stands, and what lies between two commits."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture.pauses import active_pauses, describe_pause
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.git.run import ask
from whyfor.git.worktree import WorkTreeState, find_changes
from whyfor.live.open_sessions import sessions_here
from whyfor.model.events import EventRef
from whyfor.model.query import Filters
from whyfor.model.reports import LastCapture, OpenWork, Paused, StatusReport
from whyfor.model.sessions import Session
from whyfor.model.sync import REFUSED, WAITS
from whyfor.model.times import wall_clock
from whyfor.store.open import LocalStore, reading_local
from whyfor.story.commit_lookup import checkout_root
from whyfor.story.commit_stories import stories_of
from whyfor.story.repositories import repository_at

RECENT = 30 * 86_400_000


def status(settings: Settings, cwd: Path) -> StatusReport:
    folder = checkout_root(name_place(cwd))
    here = sessions_here(settings, folder if isinstance(folder, Path) else cwd)
    with reading_local(settings) as library:
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
            here.open,
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
            here.last,
        )


class WaitingStories(msgspec.Struct, frozen=True):
    """Stories that wait to be sent to a team."""

    number: int
    since: int
    error: str | None


def waiting_stories(settings: Settings) -> WaitingStories | None:
    """Return what waits to be sent; None if nothing does."""
    with reading_local(settings) as library:
        items = library.outbox.items(states=[WAITS, REFUSED])
    if not items:
        return None
    error = next((item.error for item in items if item.error), None)
    return WaitingStories(len(items), min(item.added_at for item in items), error)


def _recent(library: LocalStore, project: int) -> list[Session]:
    since = wall_clock() - RECENT
    return library.sessions.matching(
        Filters(projects=(project,), since=since), limit=None, subagents=False
    )


def _committed(library: LocalStore, session: Session) -> int:
    """The last event that a commit holds, or that was copied from another session."""
    return max(library.checkpoints.last_linked(session.id), session.own_from - 1)


def _wrote(library: LocalStore, session: Session) -> set[str]:
    """Files it wrote since its last commit, and its subagents with it."""
    last = _committed(library, session)
    committed_at = library.conversation.time_of(EventRef(session.id, last)) or 0
    return library.sessions.files_since(session, last, committed_at)


def _open(library: LocalStore, session: Session, files: set[str]) -> OpenWork | None:
    """The session with the files that are in no commit yet; None if there are none."""
    if not files:
        return None
    last = _committed(library, session)
    prompts = library.conversation.prompts_since(session.id, last)
    return OpenWork(session, prompts, sorted(files))


# -- between two commits -------------------------------------------------------------------------


class CaptureHealth(msgspec.Struct, frozen=True):
    agents: list[LastCapture]
    paused: list[Paused]


def capture_health(settings: Settings) -> CaptureHealth:
    """When each agent was last heard of, and what is paused."""
    with reading_local(settings) as library:
        agents = [
            LastCapture(name, library.sessions.last_ended(name), library.signals.last_heard(name))
            for name in AGENTS
        ]
    return CaptureHealth(agents, [describe_pause(pause) for pause in active_pauses(settings)])
