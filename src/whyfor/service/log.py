"""log: commits with their stories, filtered as by git's log and by agent. Commits that were not
linked yet are linked in memory."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.place import GitPlace, name_place
from whyfor.git.run import ask
from whyfor.model.errors import BadInput
from whyfor.model.stories import CommitStory
from whyfor.model.times import parse_when
from whyfor.store.open import OpenStore, reading
from whyfor.story.commit_lookup import require_checkout
from whyfor.story.commit_stories import stories_of
from whyfor.story.repositories import ALL
from whyfor.story.tasks.board import task_commits

_STEP = 500  # commits whose stories are read at once while looking for an agent's


class LogFilter(msgspec.Struct, frozen=True):
    """Which commits, as people give it."""

    revisions: str | None = None
    paths: tuple[str, ...] = ()
    everywhere: bool = False
    author: str | None = None
    agent: str | None = None
    task: str | None = None
    since: str | None = None
    until: str | None = None


def log(settings: Settings, cwd: Path, where: LogFilter, limit: int) -> list[CommitStory]:
    """Return commits with their stories, newest first; all of them if `limit` is 0."""
    folder = require_checkout(name_place(cwd))
    where = _with_paths(where, folder, cwd)
    if where.agent and where.agent not in AGENTS:
        raise BadInput(f"no such agent: {where.agent}", f"Agents: {', '.join(AGENTS)}.")
    has_commits = ask(folder, "rev-parse", "--verify", "--quiet", "HEAD") is not None
    if not has_commits and where.revisions is None:
        return []
    with reading(settings) as library:
        narrow = where.agent is not None or where.task is not None
        shas = _commits(folder, where, None if narrow else limit or None)
        if where.task is not None:
            found = task_commits(library, where.task)
            shas = [sha for sha in shas if sha in found]
        if where.agent is None:
            return stories_of(library, folder, shas[: limit or None])
        return _told_by(library, folder, shas, where.agent, limit)


def _commits(folder: GitPlace, where: LogFilter, limit: int | None) -> list[str]:
    name = where.revisions or "HEAD"
    if name.startswith("-"):
        raise BadInput(
            f"not a revision: {name}", "Give a commit, a branch, or a range such as main..HEAD."
        )
    now = datetime.now().astimezone()
    found = history.commits(
        folder,
        ALL if where.everywhere else [name],
        limit=limit,
        since=parse_when(where.since, now) if where.since else None,
        among=history.CommitLimits(
            until=parse_when(where.until, now, end=True) if where.until else None,
            author=where.author,
            paths=where.paths,
        ),
    )
    return [commit.sha for commit in reversed(found)]


def _told_by(
    library: OpenStore, folder: GitPlace, shas: list[str], agent: str, limit: int
) -> list[CommitStory]:
    """Return the newest commits that an agent took part in."""
    found: list[CommitStory] = []
    for at in range(0, len(shas), _STEP):
        for told in stories_of(library, folder, shas[at : at + _STEP]):
            parts = told.checkpoint.parts if told.checkpoint else []
            if any(part.agent == agent for part in parts):
                found.append(told)
        if limit and len(found) >= limit:
            return found[:limit]
    return found


def _with_paths(where: LogFilter, folder: GitPlace, cwd: Path) -> LogFilter:
    """Return the filter with paths from the top of the work tree; a first word that is a file and
    no revision is a path, as in git."""
    name, paths = where.revisions, where.paths
    if name and not paths and ".." not in name and not name.startswith("-"):
        known = ask(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", name)
        if known is None and (cwd / name).exists():
            paths, name = (name,), None
    top = Path(os.path.realpath(folder))
    here = Path(os.path.realpath(cwd))
    shown = tuple(_from_top(path, top, here) for path in paths)
    return msgspec.structs.replace(where, revisions=name, paths=shown)


def _from_top(path: str, top: Path, here: Path) -> str:
    if path.startswith(":"):  # git's own way of saying where from
        return path
    return os.path.relpath(here / path, top)
