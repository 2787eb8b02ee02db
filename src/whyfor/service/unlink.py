"""unlink: a session has no part in a commit; or that is taken back."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.errors import NotFound
from whyfor.model.stories import undo_command
from whyfor.model.times import wall_clock
from whyfor.service.statements import known_repository, record_statement
from whyfor.store.journal import OverrideEntry
from whyfor.store.open import reading
from whyfor.story.commit_lookup import require_commit
from whyfor.story.commit_stories import stories_of
from whyfor.story.session_lookup import find_session


def unlink(settings: Settings, cwd: Path, commit: str, session: str | None) -> list[str]:
    """A session, or every session, has no part in this commit; returns which were taken off."""
    with reading(settings) as library:
        here = name_place(cwd)
        sha = require_commit(library, commit, here)
        told = stories_of(library, here, [sha])[0]
        parts = told.checkpoint.parts if told.checkpoint else []
        if session is not None:
            wanted = find_session(library, session)
            parts = [
                p for p in parts if (p.agent, p.session_id) == (wanted.agent, wanted.session_id)
            ]
        if not parts:
            what = f"session {session} has no part in" if session else "no session has a part in"
            hint = f"See: whyfor show {sha[:10]}"
            if told.unlinked:
                hint = f"Sessions were unlinked before. To link them again: {undo_command(sha)}"
            raise NotFound(f"{what} {sha[:10]}", hint)
        repository = known_repository(library, here)
    now = wall_clock()
    entries = [OverrideEntry(sha, part.agent, part.session_id, "unlink", now) for part in parts]
    record_statement(settings, repository, sha, *entries)
    return [part.name for part in parts]


def undo_unlink(settings: Settings, cwd: Path, commit: str, session: str | None) -> list[str]:
    """Take back what a person said: the evidence decides again about a session, or about every
    session that was unlinked from this commit; returns which."""
    with reading(settings) as library:
        here = name_place(cwd)
        sha = require_commit(library, commit, here)
        taken = library.checkpoints.unlinked([sha])
        if session is not None:
            wanted = find_session(library, session)
            name = (wanted.agent, wanted.session_id)
            taken = [one for one in taken if (one.agent, one.session_id) == name]
        if not taken:
            what = f"session {session}" if session else "no session"
            was = "was not" if session else "was"
            raise NotFound(f"{what} {was} unlinked from {sha[:10]}", f"See: whyfor show {sha[:10]}")
        repository = known_repository(library, here)
    now = wall_clock()
    entries = [msgspec.structs.replace(one, action="undo", at=now) for one in taken]
    record_statement(settings, repository, sha, *entries)
    return [f"{one.agent}:{one.session_id}" for one in taken]
