"""note: write down what a commit is for."""

from __future__ import annotations

from pathlib import Path

from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.checkpoints import TAGS, Checkpoint, Note
from whyfor.model.errors import BadInput
from whyfor.model.times import wall_clock
from whyfor.service.statements import GO_THERE, author, record_statement
from whyfor.store.journal import NoteEntry
from whyfor.store.open import reading
from whyfor.story.commit_lookup import require_checkout, require_commit
from whyfor.story.repositories import repository_at


def note(settings: Settings, cwd: Path, commit: str | None, said: Note) -> Checkpoint | None:
    """What an agent or a person wrote about a commit; the story shows it, also if it is found
    later."""
    if said.tag is not None and said.tag not in TAGS:
        raise BadInput(f"no such tag: {said.tag}", f"Tags: {', '.join(TAGS)}.")
    if said == Note():
        raise BadInput(
            "nothing to note",
            'Say e.g.: whyfor note --title "Retry with backoff" --intent "One run in ten failed"',
        )
    with reading(settings) as library:
        here = name_place(cwd)
        sha = require_commit(library, commit, here)
        repository = repository_at(library, require_checkout(here, GO_THERE))
    entry = NoteEntry(sha, author(settings), wall_clock(), said)
    record_statement(settings, repository, sha, entry)
    with reading(settings) as library:
        return library.checkpoints.of_commits([sha]).get(sha)
