"""link, unlink, note and projects: what a person or an agent adds to the story. Kept in the
journal: it is truth."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture.ingest import wall_clock
from whyfor.capture.recover import writing
from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.identity import identify
from whyfor.git.place import GitPlace, name_place
from whyfor.model.checkpoints import TAGS, Checkpoint, Note
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.paths import to_text
from whyfor.model.progress import Announce
from whyfor.model.reports import KnownProject
from whyfor.service.ingest import LOCK_WAIT
from whyfor.service.log import inside, required, stories_of, top
from whyfor.service.sessions import find_session
from whyfor.store.journal import AliasEntry, Journal, NoteEntry, OverrideEntry, PlaceEntry
from whyfor.store.open import OpenStore, journal, reading
from whyfor.store.protocol import Store
from whyfor.story.links.assemble import LinkOutcome
from whyfor.story.links.resolve import compute
from whyfor.story.links.save import link_project, save_outcome, save_said
from whyfor.story.repositories import Repository, repository_at

_THERE = "Go to one, then try again."


class LinkReport(msgspec.Struct, frozen=True):
    project: str | None
    commits: int  # judged in this run
    stories: int  # of them, that have one now
    seconds: float


# -- history -------------------------------------------------------------------------------------


def link_history(
    settings: Settings, cwd: Path, revisions: str | None, announce: Announce | None = None
) -> LinkReport:
    """Judge a repository's commits (again): all that sessions may have a part in, or those of a
    range."""
    begun = time.monotonic()
    folder = inside(name_place(cwd), _THERE)
    with reading(settings):
        pass  # says so if nothing is kept yet
    with writing(settings, LOCK_WAIT) as store:
        record = journal(settings)
        repository = _placed(store, record, repository_at(store, folder))
        if repository is None:
            return LinkReport(None, 0, 0, round(time.monotonic() - begun, 3))
        only = [c.sha for c in history.commits(folder, [revisions])] if revisions else None
        outcome = compute(store, repository, only=only, again=True, announce=announce)
        with store.transaction(record):
            save_outcome(store, record, outcome)
        judged = [row.sha for row in outcome.seen]
        stories = sum(1 for c in store.checkpoints.of_commits(judged).values() if c.parts)
    return LinkReport(
        repository.project.identity, outcome.looked, stories, round(time.monotonic() - begun, 3)
    )


def _placed(store: Store, record: Journal, found: Repository | None) -> Repository | None:
    """A repository no session ran in becomes known by name before something is kept about it."""
    if found is None or found.id:
        return found
    now = wall_clock()
    with store.transaction(record):
        number = store.capture.writer().learn_place(to_text(found.folder), found.project, [], now)
        record.add(PlaceEntry(to_text(found.folder), found.project, now))
    return msgspec.structs.replace(found, id=number)


# -- a person's word -----------------------------------------------------------------------------


def link(settings: Settings, cwd: Path, commit: str, session: str) -> Checkpoint:
    """This session belongs to this commit."""
    with reading(settings) as library:
        here = name_place(cwd)
        sha = required(library, commit, here)
        found = find_session(library, session)
        repository = _known(library, here)
    entry = OverrideEntry(sha, found.agent, found.session_id, "link", wall_clock())
    _say(settings, repository, sha, entry)
    with reading(settings) as library:
        return library.checkpoints.of_commits([sha])[sha]


def unlink(settings: Settings, cwd: Path, commit: str, session: str | None) -> list[str]:
    """A session, or every session, has no part in this commit; returns which were taken off."""
    with reading(settings) as library:
        here = name_place(cwd)
        sha = required(library, commit, here)
        told = stories_of(library, here, [sha])[0]
        parts = told.checkpoint.parts if told.checkpoint else []
        if session is not None:
            wanted = find_session(library, session)
            parts = [
                p for p in parts if (p.agent, p.session_id) == (wanted.agent, wanted.session_id)
            ]
        if not parts:
            what = f"session {session} has no part in" if session else "no session has a part in"
            raise NotFound(f"{what} {sha[:10]}", f"See: whyfor show {sha[:10]}")
        repository = _known(library, here)
    now = wall_clock()
    entries = [OverrideEntry(sha, part.agent, part.session_id, "unlink", now) for part in parts]
    _say(settings, repository, sha, *entries)
    return [part.name for part in parts]


def note(settings: Settings, cwd: Path, commit: str | None, said: Note) -> Checkpoint | None:
    """What an agent or a person wrote about a commit; the story shows it, also if it is found
    later."""
    if said.tag is not None and said.tag not in TAGS:
        raise BadInput(f"no such tag: {said.tag}", f"Tags: {', '.join(TAGS)}.")
    if said == Note():
        raise BadInput(
            "nothing to note", 'Say e.g.: whyfor note --title "Retry with backoff" --tag BUGFIX'
        )
    with reading(settings) as library:
        here = name_place(cwd)
        sha = required(library, commit, here)
        repository = repository_at(library, inside(here, _THERE))
    entry = NoteEntry(sha, author(settings), wall_clock(), said)
    _say(settings, repository, sha, entry)
    with reading(settings) as library:
        return library.checkpoints.of_commits([sha]).get(sha)


def author(settings: Settings) -> str:
    """Who runs this: the agent whose session we are in, else a person."""
    env = settings.env
    if (name := env.get("WHYFOR_SESSION", "").partition(":")[0]) in AGENTS:
        return name
    for name, agent in AGENTS.items():
        variables = (*agent.facts.presence_variables, *agent.facts.session_variables)
        if any(env.get(variable) for variable in variables):
            return name
    return "person"


def _say(
    settings: Settings, repository: Repository | None, sha: str, *entries: OverrideEntry | NoteEntry
) -> None:
    """Keep what was said, then judge the commit again."""
    with writing(settings, LOCK_WAIT) as store:
        record = journal(settings)
        with store.transaction(record):
            for entry in entries:
                record.add(entry)
                save_said(store, entry)
        repository = _placed(store, record, repository)
        outcome = (
            compute(store, repository, only=[sha], again=True) if repository else LinkOutcome(0)
        )
        with store.transaction(record):
            save_outcome(store, record, outcome)


# -- projects ------------------------------------------------------------------------------------


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
    settings: Settings, path: str, repository: Path, announce: Announce | None = None
) -> tuple[int, LinkReport]:
    """Sessions recorded at or below a path belong to this repository; returns how many do, and
    links them."""
    if not repository.is_dir():
        raise NotFound(
            f"there is no folder {repository}", "Give the repository's folder as it is now."
        )
    folder = top(name_place(repository))
    project = identify(to_text(folder), named=True) if folder else None
    if folder is None or project is None or project.evidence == "path":
        raise BadInput(
            f"{repository} is not a git repository with a commit",
            "Give the repository's folder as it is now.",
        )
    path = path.rstrip("/\\") or path
    with reading(settings):
        pass
    with writing(settings, LOCK_WAIT) as store:
        record = journal(settings)
        now = wall_clock()
        with store.transaction(record):
            writer = store.capture.writer()
            writer.learn_place(to_text(folder), project, [], now)
            record.add(PlaceEntry(to_text(folder), project, now))
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


def _known(library: OpenStore, cwd: GitPlace) -> Repository:
    repository = repository_at(library, inside(cwd, _THERE))
    if repository is None:
        raise NotFound(
            "no session of this repository is kept", "Read what your agents wrote: whyfor ingest"
        )
    return repository
