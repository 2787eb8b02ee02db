"""link, unlink, note and projects: what a person or an agent adds to the story. Kept in the
journal: it is truth."""

from __future__ import annotations

import time
from pathlib import Path

from whyfor.capture.recover import writing
from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.place import name_place
from whyfor.locks import LOCK_WAIT
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.progress import Announce
from whyfor.model.times import wall_clock
from whyfor.service.statements import (
    GO_THERE,
    LinkReport,
    known_repository,
    place_repository,
    record_statement,
)
from whyfor.store.journal import OverrideEntry
from whyfor.store.open import journal, reading
from whyfor.story.commit_lookup import require_checkout, require_commit
from whyfor.story.links.resolve import compute
from whyfor.story.links.save import save_outcome
from whyfor.story.repositories import repository_at
from whyfor.story.session_lookup import find_session

# -- history -------------------------------------------------------------------------------------


def link_history(
    settings: Settings, cwd: Path, revisions: str | None, announce: Announce | None = None
) -> LinkReport:
    """Judge a repository's commits (again): all that sessions may have a part in, or those of a
    range."""
    begun = time.monotonic()
    folder = require_checkout(name_place(cwd), GO_THERE)
    with reading(settings):
        pass  # says so if nothing is kept yet
    with writing(settings, LOCK_WAIT) as store:
        record = journal(settings)
        repository = place_repository(store, record, repository_at(store, folder))
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


# -- a person's word -----------------------------------------------------------------------------


def link(settings: Settings, cwd: Path, commit: str, session: str) -> Checkpoint:
    """This session belongs to this commit."""
    with reading(settings) as library:
        here = name_place(cwd)
        sha = require_commit(library, commit, here)
        found = find_session(library, session)
        repository = known_repository(library, here)
    entry = OverrideEntry(sha, found.agent, found.session_id, "link", wall_clock())
    record_statement(settings, repository, sha, entry)
    with reading(settings) as library:
        return library.checkpoints.of_commits([sha])[sha]


# -- projects ------------------------------------------------------------------------------------
