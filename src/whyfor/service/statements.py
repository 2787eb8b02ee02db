"""Statements about a commit: written to the journal, then the commit is linked again."""

from __future__ import annotations

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture.recover import writing
from whyfor.config import Settings
from whyfor.git.place import GitPlace
from whyfor.locks import LOCK_WAIT
from whyfor.model.errors import NotFound
from whyfor.model.paths import to_text
from whyfor.model.times import wall_clock
from whyfor.store.journal import Journal, NoteEntry, OverrideEntry, PlaceEntry
from whyfor.store.open import OpenStore, journal
from whyfor.store.protocol import Store
from whyfor.story.commit_lookup import require_checkout
from whyfor.story.links.assemble import LinkOutcome
from whyfor.story.links.resolve import compute
from whyfor.story.links.save import save_outcome, save_said
from whyfor.story.repositories import Repository, repository_at

GO_THERE = "Go to one, then try again."


class LinkReport(msgspec.Struct, frozen=True):
    project: str | None
    commits: int  # judged in this run
    stories: int  # of them, that have one now
    seconds: float


def place_repository(store: Store, record: Journal, found: Repository | None) -> Repository | None:
    """A repository no session ran in becomes known by name before something is kept about it."""
    if found is None or found.id:
        return found
    now = wall_clock()
    with store.transaction(record):
        number = store.capture.writer().learn_place(to_text(found.folder), found.project, [], now)
        record.add(PlaceEntry(to_text(found.folder), found.project, now))
    return msgspec.structs.replace(found, id=number)


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


def record_statement(
    settings: Settings, repository: Repository | None, sha: str, *entries: OverrideEntry | NoteEntry
) -> None:
    """Keep what was said, then judge the commit again."""
    with writing(settings, LOCK_WAIT) as store:
        record = journal(settings)
        with store.transaction(record):
            for entry in entries:
                record.add(entry)
                save_said(store, entry)
        repository = place_repository(store, record, repository)
        outcome = (
            compute(store, repository, only=[sha], again=True) if repository else LinkOutcome(0)
        )
        with store.transaction(record):
            save_outcome(store, record, outcome)


def known_repository(library: OpenStore, cwd: GitPlace) -> Repository:
    repository = repository_at(library, require_checkout(cwd, GO_THERE))
    if repository is None:
        raise NotFound(
            "no session of this repository is kept", "Read what your agents wrote: whyfor ingest"
        )
    return repository
