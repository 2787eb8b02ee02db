"""What the pages and the API show, page by page: sessions, events, projects, a project's
commits, capture per agent.

A cursor is opaque to clients and stays right while new things come: it names the last thing
seen, not a number of rows.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.identity import has_commit
from whyfor.git.place import GitPlace
from whyfor.git.run import ask
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.paths import to_path, to_text
from whyfor.model.reports import LastCapture, Paused
from whyfor.model.sessions import Project, Session
from whyfor.model.status import LiveStatus, Status, Summary
from whyfor.model.stories import CommitStory, FullStory
from whyfor.model.turns import Turn
from whyfor.service.log import full_story, stories_of
from whyfor.service.pause import active_pauses, describe_pause
from whyfor.service.sessions import SessionFilter, understand
from whyfor.store.open import OpenStore, reading
from whyfor.story.recent_turns import recent_turns
from whyfor.story.repositories import ALL, repository_of
from whyfor.story.summary import summary
from whyfor.story.tokens import turns_of

EVENTS_BYTES = 4 << 20  # of text and data in one page of events; one event at least
_SCANNED = 2000  # commits one page of a timeline looks at, if filters leave few
_STEP = 100
_AT_REST = Status("idle", "nothing was heard of it lately", "low")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_Whole = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=100_000_000)]
_Value = TypeVar("_Value")


class SessionPage(msgspec.Struct, frozen=True):
    items: list[Session]
    next: str | None


class EventPage(msgspec.Struct, frozen=True):
    session: Session
    items: list[StoredEvent]
    more: bool  # there are events after the last of these


class ProjectSummary(msgspec.Struct, frozen=True):
    """A project, how much is known of it, and whether its repository can be asked."""

    project: Project
    sessions: int
    last_at: int | None
    folder: str | None


class CommitFilter(msgspec.Struct, frozen=True):
    """Of a project's commits."""

    branch: str | None = None  # none: where HEAD is; "*": all of them
    author: str | None = None  # part of a name or an address
    agent: str | None = None
    tag: str | None = None
    story: bool | None = None
    since: int | None = None
    until: int | None = None

    def fits(self, story: CommitStory) -> bool:
        commit, checkpoint = story.commit, story.checkpoint
        parts = checkpoint.parts if checkpoint else []
        note = checkpoint.annotation if checkpoint else None
        return (
            (not self.author or self.author.lower() in f"{commit.author} {commit.email}".lower())
            and (not self.agent or any(part.agent == self.agent for part in parts))
            and (not self.tag or (note is not None and note.tag == self.tag))
            and (self.story is None or bool(parts) == self.story)
            and (self.since is None or commit.committed_at >= self.since)
            and (self.until is None or commit.committed_at <= self.until)
        )


class TimelinePage(msgspec.Struct, frozen=True):
    project: Project
    folder: str
    branches: list[str]
    items: list[CommitStory]
    sessions: dict[str, Session]  # of the stories, by agent:id
    next: str | None


class CaptureHealth(msgspec.Struct, frozen=True):
    agents: list[LastCapture]
    paused: list[Paused]


# -- sessions ------------------------------------------------------------------------------------


def session_page(
    settings: Settings,
    where: SessionFilter,
    *,
    limit: int,
    after: str | None = None,
    subagents: bool = False,
) -> SessionPage:
    """Newest first."""
    before = _opened(after, tuple[_Whole, _Whole]) if after else None
    with reading(settings) as library:
        filters = understand(library, where)
        found = library.sessions.page(filters, before, limit + 1, subagents=subagents)
    more = len(found) > limit
    return SessionPage(
        [session for _, session in found[:limit]], _sealed(found[limit - 1][0]) if more else None
    )


def one_session(settings: Settings, agent: str, session_id: str) -> tuple[Session, list[Session]]:
    """A session and its subagents."""
    with reading(settings) as library:
        session = _session(library, agent, session_id)
        children = library.sessions.children([session.session_id])
    return session, [child for child in children if child.agent == agent]


def event_page(
    settings: Settings, agent: str, session_id: str, *, after: int, limit: int
) -> EventPage:
    """Events after a seq, in order, as many as fit."""
    with reading(settings) as library:
        session = _session(library, agent, session_id)
        found: list[StoredEvent] = []
        size = 0
        for event in library.conversation.events(session.id, after + 1):
            size += len(event.text) + len(msgspec.json.encode(event.data))
            if len(found) >= limit or (found and size > EVENTS_BYTES):
                return EventPage(session, found, more=True)
            found.append(event)
        return EventPage(session, found, more=False)


def turn_page(
    settings: Settings, agent: str, session_id: str, *, after: int, limit: int
) -> tuple[list[Turn], bool]:
    """Turns after one, and whether there are more."""
    with reading(settings) as library:
        session = _session(library, agent, session_id)
        found = [
            turn
            for turn in turns_of(library, session, library.conversation.events(session.id))
            if turn.turn > after
        ]
    return found[:limit], len(found) > limit


def summary_of(
    settings: Settings, agent: str, session_id: str, standings: Iterable[LiveStatus]
) -> Summary:
    """A session's last turns in three lines: as it stands, if anybody attends to it."""
    with reading(settings) as library:
        session = _session(library, agent, session_id)
        standing = next((each for each in standings if each.session.id == session.id), None)
        if standing and standing.summary:
            return standing.summary
        found, _ = recent_turns(library, session.id)
    return summary(found, standing.status if standing else _AT_REST)


def _session(library: OpenStore, agent: str, session_id: str) -> Session:
    if agent not in AGENTS:
        raise NotFound(f"no such agent: {agent[:40]!r}", f"Agents: {', '.join(AGENTS)}.")
    return library.sessions.find(session_id, agent)


# -- projects and their commits ------------------------------------------------------------------


def projects(settings: Settings) -> list[ProjectSummary]:
    """The one that was worked in last comes first."""
    with reading(settings) as library:
        known = library.projects.known()
        active = library.projects.active()
        found = []
        for number, project in known:
            sessions, last = active.get(number, (0, None))
            there = project.path if project.path and to_path(project.path).is_dir() else None
            found.append(ProjectSummary(project, sessions, last, there))
    return sorted(found, key=lambda item: (-(item.last_at or 0), item.project.identity))


def timeline(
    settings: Settings, identity: str, which: CommitFilter, *, limit: int, after: str | None = None
) -> TimelinePage:
    """A project's commits and their stories, newest first."""
    with reading(settings) as library:
        project, folder = _repository(library, identity)
        tip, skip = _opened(after, tuple[str, _Count]) if after else (_tip(folder, which.branch), 0)
        found: list[CommitStory] = []
        scanned = 0
        done = not tip
        while not done and len(found) < limit and scanned < _SCANNED:
            listed = _commits(folder, tip, skip, _STEP)
            done = len(listed) < _STEP
            for one in stories_of(library, folder, [commit.sha for commit in listed]):
                skip, scanned = skip + 1, scanned + 1
                if which.fits(one):
                    found.append(one)
                if len(found) >= limit:
                    done = done and one.commit.sha == listed[-1].sha
                    break
        names = {
            part.name: part for one in found if one.checkpoint for part in one.checkpoint.parts
        }
        sessions = {
            name: library.sessions.find(part.session_id, part.agent) for name, part in names.items()
        }
        more = None if done else _sealed((tip, skip))
        return TimelinePage(project, to_text(folder), _branches(folder), found, sessions, more)


def story_of(settings: Settings, sha: str) -> tuple[FullStory, GitPlace | None]:
    """The story of a commit by its whole hash, and where git can be asked about it."""
    if not _SHA.fullmatch(sha):
        raise NotFound(f"{sha[:64]!r} is not the whole hash of a commit", "See: whyfor log")
    with reading(settings) as library:
        folder = _folder(library, sha)
        nowhere = settings.home  # no repository: what was kept is told
        told_of = stories_of(library, folder or nowhere, [sha])[0]
        return full_story(library, folder or nowhere, told_of), folder


def _folder(library: OpenStore, sha: str) -> GitPlace | None:
    """Where git knows a commit: in its project; or in any, if nobody has looked at it yet."""
    number = library.checkpoints.project_of(sha)
    if number is not None:
        repository = repository_of(library, number)
        return repository.folder if repository else None
    return next(
        (folder for folder in _folders(library) if folder.is_dir() and has_commit(folder, sha)),
        None,
    )


def _folders(library: OpenStore) -> Iterator[Path]:
    """A folder of each project that git can be asked in. A submodule's path is its git folder:
    its places then."""
    places = library.projects.places()
    for number, project in library.projects.known():
        if project.path and (to_path(project.path) / ".git").exists():
            yield to_path(project.path)
        else:
            yield from (to_path(cwd) for cwd, of in places.items() if of == number)


def _repository(library: OpenStore, identity: str) -> tuple[Project, GitPlace]:
    for number, project in library.projects.known():
        if project.identity == identity:
            found = repository_of(library, number)
            if found is None:
                raise NotFound(
                    f"{project.name} is not on this machine any more",
                    "If it has moved: whyfor projects --help",
                )
            return project, found.folder
    raise NotFound(
        f"no project is called {identity[:200]!r}", "See which there are: whyfor projects"
    )


def _tip(folder: GitPlace, branch: str | None) -> str:
    """The commit a list begins with, so that all its pages are of the same list; empty if there
    is none yet."""
    if branch == "*":
        return "*"
    if branch is not None and branch not in _branches(folder):
        raise NotFound(f"no branch is called {branch[:200]!r}", "See: git branch")
    name = "HEAD" if branch is None else f"refs/heads/{branch}"
    return (
        ask(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        or ""
    )


def _commits(folder: GitPlace, tip: str, skip: int, number: int) -> list[history.Commit]:
    """Newest first."""
    if tip != "*" and not _SHA.fullmatch(tip):
        raise BadInput("not a cursor of this list", "Begin again without one.")
    revisions = [*(ALL if tip == "*" else [tip]), f"--skip={skip}"]
    return history.commits(folder, revisions, limit=number)[::-1]


def _branches(folder: GitPlace) -> list[str]:
    listed = ask(
        folder,
        "for-each-ref",
        "--format=%(refname:lstrip=2)",
        "--sort=-committerdate",
        "refs/heads",
    )
    return (listed or "").splitlines()


# -- capture -------------------------------------------------------------------------------------


def capture(settings: Settings) -> CaptureHealth:
    """When each agent was last heard of, and what is paused."""
    with reading(settings) as library:
        agents = [
            LastCapture(name, library.sessions.last_ended(name), library.signals.last_heard(name))
            for name in AGENTS
        ]
    return CaptureHealth(agents, [describe_pause(pause) for pause in active_pauses(settings)])


# -- cursors -------------------------------------------------------------------------------------


def _sealed(value: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")


def _opened(text: str, kind: type[_Value]) -> _Value:
    try:
        return msgspec.json.decode(
            base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind
        )
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise BadInput("not a cursor of this list", "Begin again without one.") from None
