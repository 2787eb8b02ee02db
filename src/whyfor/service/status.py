"""status and diff: where the work stands, and what lies between two commits."""

from __future__ import annotations

from pathlib import Path

from whyfor.agents import AGENTS
from whyfor.capture.ingest import wall_clock
from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.place import name_place
from whyfor.git.run import ask
from whyfor.git.worktree import WorkTreeState, find_changes
from whyfor.model.events import EventRef
from whyfor.model.query import Filters
from whyfor.model.reports import CommitRange, LastCapture, OpenWork, StatusReport
from whyfor.model.sessions import Session
from whyfor.model.stories import StoryLine
from whyfor.service.log import full_story, inside, required, stories_of, top
from whyfor.service.pause import active_pauses, describe_pause
from whyfor.store.open import OpenStore, reading
from whyfor.story.repositories import repository_at

# a session is active if it wrote something in the last half hour and has not said goodbye
ACTIVE = 30 * 60_000
RECENT = 30 * 86_400_000


def status(settings: Settings, cwd: Path) -> StatusReport:
    folder = top(name_place(cwd))
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


def between(settings: Settings, cwd: Path, old: str, new: str) -> CommitRange:
    folder = inside(name_place(cwd))
    with reading(settings) as library:
        first, last = required(library, old, folder), required(library, new, folder)
        found = history.commits(folder, [f"{first}..{last}"])
        stories = stories_of(library, folder, [commit.sha for commit in reversed(found)])
        sessions: dict[int, tuple[Session, int]] = {}
        spans: list[tuple[int, int, int]] = []
        prompts: dict[tuple[str, int], StoryLine] = {}
        for one in stories:
            story = full_story(library, folder, one)
            for part in one.checkpoint.parts if one.checkpoint else []:
                session = story.sessions[part.name]
                before = sessions.get(session.id, (session, 0))[1]
                sessions[session.id] = (session, before + part.new_messages)
                spans.append((session.id, part.first, part.last))
            for said in story.said:
                if said.by == "person":
                    prompts[said.session_id, said.seq] = said
        return CommitRange(
            stories,
            list(sessions.values()),
            sum(number for _, number in sessions.values()),
            library.checkpoints.spent(_disjoint(spans)),
            sorted(prompts.values(), key=lambda said: (said.created_at or 0, said.seq)),
        )


def _disjoint(spans: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Copies of a commit share a range; nothing is counted twice."""
    found: list[tuple[int, int, int]] = []
    for session, first, last in sorted(set(spans)):
        if found and found[-1][0] == session and first <= found[-1][2]:
            if last <= found[-1][2]:
                continue
            first = found[-1][2] + 1
        found.append((session, first, last))
    return found
