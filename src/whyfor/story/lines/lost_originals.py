"""Lines of commits whose originals are gone: a forge squashed a branch long after its work, its
ids are lost, and no session was linked to the result.

The stories of commits that are not on the branch any more are compared with commits without one, by
their change as a whole, then by the lines that their sessions wrote in the same files. Nothing is
claimed but lines that are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from whyfor.git import history
from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.lines import CommitLines
from whyfor.model.stories import Commit
from whyfor.store.protocol import Store
from whyfor.story.lines.commit_lines import CommitSource, LineReader
from whyfor.story.repositories import Repository

_COMMITS = 200  # without a story that are looked at, the newest
_SHARE = 0.5  # of the lines that a commit adds to the files in question
_LINES = 5  # or so many of them


class LostOriginals:
    """Finds the sessions of commits through stories whose own commits are elsewhere."""

    def __init__(self, store: Store, repository: Repository) -> None:
        self.store = store
        self.repository = repository

    @cached_property
    def lost(self) -> list[Checkpoint]:
        """The stories of commits that git does not have, or not on this branch, oldest first."""
        folder = self.repository.folder
        shas = self.store.checkpoints.live(self.repository.id)
        here = history.resolve_commits(folder, [*shas, "HEAD"])
        gone = {sha for sha in shas if sha not in here}
        if here.pop("HEAD", None) and here:
            beside = history.commits(folder, [*here, "^HEAD"])
            gone.update({commit.sha for commit in beside}.intersection(here))
        return [one for one in self.store.checkpoints.of_commits(gone).values() if one.parts]

    def lines(self, times: Mapping[str, int]) -> dict[str, CommitLines]:
        """Return what is known of the lines of commits without a story (by their times in ms)."""
        if not self.lost:
            return {}
        begun = min(one.authored_at for one in self.lost)
        asked = sorted((sha for sha in times if times[sha] >= begun), key=lambda sha: -times[sha])
        if not asked:
            return {}
        folder = self.repository.folder
        commits = history.commits(folder, ["--no-walk=unsorted", *asked[:_COMMITS]])
        changes = dict(history.read_changes(folder, [commit.sha for commit in commits]))
        sources = []
        exact = set()
        for commit in commits:
            changed = changes.get(commit.sha, [])
            same = self._same_change(changed)
            originals = same or self._same_paths(commit, {change.path for change in changed})
            if originals:
                sources.append(_source(commit, originals))
            if same:
                exact.add(commit.sha)
        reader = LineReader(self.store, folder, self.repository.folders)
        found = {}
        for sha, lines in reader.read(sources).items():
            if sha in exact or _is_told(lines, changes[sha]):
                # nothing is inferred about people from what is not the commit's own story
                found[sha] = msgspec.structs.replace(lines, inferred=False)
        return found

    def _same_change(self, changed: Sequence[history.FileChange]) -> list[Checkpoint]:
        patch = history.patch_id(changed)
        return [one for one in self.lost if patch is not None and one.patch_id == patch]

    def _same_paths(self, commit: Commit, paths: set[str]) -> list[Checkpoint]:
        return [
            one
            for one in self.lost
            if one.committed_at <= commit.committed_at
            and any(file.path in paths for file in one.files)
        ]


def _source(commit: Commit, originals: Sequence[Checkpoint]) -> CommitSource:
    """The commit as if its sessions had just made it."""
    parts: dict[str, Part] = {}
    for one in originals:
        for part in one.parts:
            known = parts.get(part.name)
            first = min(part.first, known.first) if known else part.first
            last = max(part.last, known.last) if known else part.last
            parts[part.name] = msgspec.structs.replace(part, first=first, last=last, pieces=())
    authored = min(one.authored_at for one in originals)
    return CommitSource(msgspec.structs.replace(commit, authored_at=authored), list(parts.values()))


def _is_told(lines: CommitLines, changed: Sequence[history.FileChange]) -> bool:
    """Whether enough of a commit is what the sessions wrote: a few lines anybody may write."""
    claimed = {file.path: sum(run.count for run in file.runs) for file in lines.files}
    added = sum(change.plus for change in changed if change.path in claimed)
    number = sum(claimed.values())
    return number >= _LINES or number >= _SHARE * added > 1
