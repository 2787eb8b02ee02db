"""Which change is reviewed: a range, what is staged, not committed, or not pushed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.git.history import head_commit
from whyfor.git.pending import PendingChange, between_commits, staged_change, work_tree_change
from whyfor.git.place import GitDir, GitPlace
from whyfor.git.run import ask
from whyfor.model.errors import BadInput
from whyfor.model.review import ChangeReview
from whyfor.recall.reversals import ReversalReader
from whyfor.store.open import LocalStore
from whyfor.story.commit_lookup import range_ends

# what git calls a tree without files, by the length of its names
_EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


def review_in(
    library: LocalStore,
    reader: ReversalReader,
    folder: GitPlace,
    revisions: str | None,
    *,
    staged: bool = False,
) -> ChangeReview:
    """Return what a change undoes: a range, what is staged; without either what is staged, else
    what is not committed, else the commits that the upstream branch does not have. Raises
    BadInput and NotFound for revisions that are not there."""
    if revisions is not None:
        return reader.review(_of_range(library, folder, revisions), revisions)
    change, what = _uncommitted(folder, staged=staged)
    if not staged and not change.files:
        upstream = ask(folder, "rev-parse", "-q", "--verify", "@{upstream}")
        if upstream is not None:
            return reader.review(_of_range(library, folder, f"{upstream}...HEAD"), "not pushed")
    return reader.review(change, what)


def _uncommitted(folder: GitPlace, *, staged: bool) -> tuple[PendingChange, str]:
    head = head_commit(folder)
    if head is None:
        return PendingChange(None, []), "staged"
    change = staged_change(folder, head) if not isinstance(folder, GitDir) else None
    if change is None:
        raise BadInput("a bare repository has nothing staged", "Give a range: main..topic")
    if staged or change.files:
        return change, "staged"
    return work_tree_change(Path(folder), head), "not committed"


def _of_range(library: LocalStore, folder: GitPlace, revisions: str) -> PendingChange:
    old, new, _ = range_ends(library, folder, revisions)
    if old is None:
        change = between_commits(folder, _EMPTY_TREES[len(new)], new)
        return msgspec.structs.replace(change, base=None)
    return between_commits(folder, old, new)
