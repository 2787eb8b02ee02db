"""Where the repository around a folder is shared."""

from __future__ import annotations

from whyfor.config import Settings
from whyfor.git.place import GitPlace, name_place
from whyfor.model.errors import WhyforError
from whyfor.model.sync import Remote
from whyfor.store.open import reading_local
from whyfor.story.commit_lookup import checkout_root
from whyfor.story.repositories import repository_at
from whyfor.sync.remotes import load_remotes


def remote_here(settings: Settings, cwd: GitPlace) -> tuple[Remote, GitPlace] | None:
    """Return where the repository around a folder is shared, and its top; None if it is not."""
    where = checkout_root(name_place(cwd))
    if where is None:
        return None
    try:
        with reading_local(settings) as store:
            here = repository_at(store, where)
    except WhyforError:
        return None
    identity = here.project.identity if here else ""
    for remote in load_remotes(settings).remotes:
        if remote.project == identity:
            return remote, where
    return None
