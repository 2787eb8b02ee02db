"""review: what a change is about to undo."""

from __future__ import annotations

from pathlib import Path

from whyfor.capture.line_cache import keep_lines
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.review import ChangeReview
from whyfor.recall.change_review import review_in
from whyfor.recall.reversals import ReversalReader
from whyfor.store.open import reading_local
from whyfor.story.commit_lookup import require_checkout


def review_change(
    settings: Settings, cwd: Path, revisions: str | None = None, *, staged: bool = False
) -> ChangeReview:
    """Return what a change undoes, as `review_in` tells it. Raises BadInput and NotFound for
    revisions that are not there."""
    with reading_local(settings) as library:
        folder = require_checkout(name_place(cwd), "Go to the repository of the change.")
        reader = ReversalReader(library, folder)
        found = review_in(library, reader, folder, revisions, staged=staged)
    keep_lines(settings, reader.blamer.fresh.values())
    return found
