"""log and show: the stories behind commits, read back. Commits nobody looked at yet are judged
on the spot."""

from __future__ import annotations

from pathlib import Path

from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.place import name_place
from whyfor.git.run import ask
from whyfor.model.errors import BadInput
from whyfor.model.stories import CommitStory
from whyfor.store.open import reading
from whyfor.story.commit_lookup import require_checkout
from whyfor.story.commit_stories import stories_of
from whyfor.story.repositories import ALL

# -- finding a commit ----------------------------------------------------------------------------


# -- stories -------------------------------------------------------------------------------------


def log(
    settings: Settings, cwd: Path, revisions: str | None, limit: int, *, everywhere: bool = False
) -> list[CommitStory]:
    """Newest first."""
    folder = require_checkout(name_place(cwd))
    if ask(folder, "rev-parse", "--verify", "--quiet", "HEAD") is None and revisions is None:
        return []
    with reading(settings) as library:
        name = revisions or "HEAD"
        if name.startswith("-"):
            raise BadInput(
                f"not a revision: {name}", "Give a commit, a branch, or a range such as main..HEAD."
            )
        found = history.commits(folder, ALL if everywhere else [name], limit=limit or None)
        return stories_of(library, folder, [commit.sha for commit in reversed(found)])
