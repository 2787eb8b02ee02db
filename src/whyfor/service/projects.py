"""projects: which are known, and which directories belong to one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from whyfor.capture.recover import writing
from whyfor.config import Settings
from whyfor.git.identity import identify
from whyfor.git.place import name_place
from whyfor.locks import LOCK_WAIT
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.paths import to_path, to_text
from whyfor.model.progress import Announce
from whyfor.model.reports import KnownProject
from whyfor.model.sessions import Project
from whyfor.model.times import wall_clock
from whyfor.service.statements import LinkReport
from whyfor.store.journal import AliasEntry, PlaceEntry
from whyfor.store.open import OpenStore, journal, local_store, reading
from whyfor.story.commit_lookup import checkout_root
from whyfor.story.links.save import link_project


class ProjectSummary(msgspec.Struct, frozen=True):
    """A project, how much is known of it, and whether its repository can be asked."""

    project: Project
    sessions: int
    last_at: int | None
    folder: str | None


def project_summaries(settings: Settings) -> list[ProjectSummary]:
    """The one that was worked in last comes first."""
    with reading(settings) as library:
        known = library.projects.known()
        active = library.projects.active()
        found = []
        for number, project in known:
            sessions, last = active.get(number, (0, None))
            there = _folder_of(library, project)
            found.append(ProjectSummary(project, sessions, last, there))
    return sorted(found, key=lambda item: (-(item.last_at or 0), item.project.identity))


def _folder_of(library: OpenStore, project: Project) -> str | None:
    """Return where a project is on this machine; None if it is gone, or a team's."""
    if not project.path or local_store(library) is None:
        return None
    return project.path if to_path(project.path).is_dir() else None


def projects(settings: Settings) -> list[KnownProject]:
    """Most sessions first."""
    with reading(settings) as library:
        sessions = library.projects.session_counts()
        stories = library.projects.story_counts()
        aliases = library.projects.aliases()
        places: dict[int, list[str]] = {}
        for cwd, number in sorted(library.projects.places().items()):
            places.setdefault(number, []).append(cwd)
        found = [
            KnownProject(
                project,
                places.get(number, []),
                aliases.get(project.identity, []),
                sessions.get(number, 0),
                stories.get(number, 0),
            )
            for number, project in library.projects.known()
        ]
    return sorted(found, key=lambda known: (-known.sessions, known.project.identity))


def alias(
    settings: Settings, paths: Sequence[str], repository: Path, announce: Announce | None = None
) -> tuple[int, LinkReport]:
    """Sessions recorded at or below one of the paths belong to this repository; returns how many
    do, and links them, all at once."""
    if not repository.is_dir():
        raise NotFound(
            f"there is no folder {repository}", "Give the repository's folder as it is now."
        )
    folder = checkout_root(name_place(repository))
    project = identify(to_text(folder), named=True) if folder else None
    if folder is None or project is None or project.evidence == "path":
        raise BadInput(
            f"{repository} is not a git repository with a commit",
            "Give the repository's folder as it is now.",
        )
    with reading(settings):
        pass
    with writing(settings, LOCK_WAIT) as store:
        record = journal(settings)
        now = wall_clock()
        with store.transaction(record):
            writer = store.capture.writer()
            writer.learn_place(to_text(folder), project, [], now)
            record.add(PlaceEntry(to_text(folder), project, now))
            for path in dict.fromkeys(path.rstrip("/\\") or path for path in paths):
                entry = AliasEntry(path, project, now)
                number = writer.adopt(path, project)
                store.projects.save_alias(entry)
                record.add(entry)
        moved = store.sessions.count_since(number, 0)
        begun = time.monotonic()
        outcome = link_project(store, record, number, announce)
    seconds = round(time.monotonic() - begun, 3)
    found = sum(1 for checkpoint in outcome.saved if checkpoint.parts)
    return moved, LinkReport(project.identity, outcome.looked, found, seconds)
