"""The commits of a project with their stories, page by page, and one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.identity import has_commit
from whyfor.git.place import GitPlace, name_place
from whyfor.git.run import ask
from whyfor.model.cursor import open_cursor, seal_cursor
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.listing import ListFilter
from whyfor.model.paths import to_path, to_text
from whyfor.model.sessions import Project, Session
from whyfor.model.stories import CommitFilter, CommitStory, FullStory, stored_commit
from whyfor.store.open import OpenStore, local_store, reading
from whyfor.story.commit_lookup import checkout_root
from whyfor.story.commit_stories import full_story, stories_of
from whyfor.story.repositories import ALL, repository_of
from whyfor.story.story_budget import stories_within
from whyfor.story.tasks.board import with_task

_SCANNED = 2000  # commits one page of a timeline looks at, if filters leave few


_STEP = 100
_BRANCHES = 300  # of a team's sessions


_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


_Count = Annotated[int, msgspec.Meta(ge=0, le=100_000_000)]


class TimelinePage(msgspec.Struct, frozen=True):
    project: Project
    folder: str
    branches: list[str]
    items: list[CommitStory]
    sessions: dict[str, Session]  # of the stories, by agent:id
    next: str | None


def page_of_commits(
    settings: Settings, identity: str, which: CommitFilter, *, limit: int, after: str | None = None
) -> TimelinePage:
    """A project's commits and their stories, newest first."""
    with reading(settings) as library:
        which = with_task(library, which)
        if local_store(library) is None:
            return _shared_page(library, identity, which, limit, after)
        project, folder = _repository(library, identity)
        if after:
            tip, skip = open_cursor(after, tuple[str, _Count])
        else:
            tip, skip = _tip(folder, which.branch), 0
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
        more = None if done else seal_cursor((tip, skip))
        sessions = _sessions_of(library, found)
        return TimelinePage(project, to_text(folder), _branches(folder), found, sessions, more)


def _sessions_of(library: OpenStore, stories: list[CommitStory]) -> dict[str, Session]:
    names = {part.name: part for one in stories if one.checkpoint for part in one.checkpoint.parts}
    return {
        name: library.sessions.find(part.session_id, part.agent) for name, part in names.items()
    }


def _shared_page(
    library: OpenStore, identity: str, which: CommitFilter, limit: int, after: str | None
) -> TimelinePage:
    """The same on a team server: the commits that stories were shared of. A branch is one that
    their sessions were on: a server has no repository."""
    known = library.projects.find(identity)
    if known is None:
        raise NotFound(f"no project is called {identity[:200]!r}", "It is `team:` and its number.")
    number, project = known
    (skip,) = open_cursor(after, tuple[_Count]) if after else (0,)
    newest = library.checkpoints.kept_since(number, which.since or 0, _SCANNED)
    kept = library.checkpoints.of_commits(newest)
    commits = [stored_commit(kept[sha]) for sha in newest if sha in kept]
    if which.branch not in (None, "*"):
        marks = library.checkpoints.known(kept)
        on = {sha for sha, mark in marks.items() if which.branch in mark.branches}
        commits = [commit for commit in commits if commit.sha in on]
    told = stories_within(library, None, commits, library.sessions.first_started(number))
    fitting = [one for one in told if which.fits(one)]
    found = fitting[skip : skip + limit]
    more = seal_cursor((skip + limit,)) if skip + limit < len(fitting) else None
    branches = library.listing.branches(ListFilter(projects=(number,)), _BRANCHES)
    return TimelinePage(project, "", branches, found, _sessions_of(library, found), more)


def find_story(settings: Settings, sha: str) -> tuple[FullStory, GitPlace | None]:
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


def branch_names(cwd: Path) -> list[str]:
    """Return the branches of the repository around a folder; none outside of one."""
    folder = checkout_root(name_place(cwd))
    return _branches(folder) if folder is not None else []


def _branches(folder: GitPlace) -> list[str]:
    listed = ask(
        folder,
        "for-each-ref",
        "--format=%(refname:lstrip=2)",
        "--sort=-committerdate",
        "refs/heads",
    )
    return (listed or "").splitlines()
