"""Which commits may be another version of one that a session made: a copy, or a squash of several.

Such a commit changes the same files, and does not come from what it is a version of. In a straight
history nothing is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from whyfor.model.stories import Commit
from whyfor.story.links.ancestry import Ancestry
from whyfor.story.links.by_content import LOOK_BACK, SLACK

Paths = Mapping[str, Mapping[str, str]]  # that commits change, with git's letters


class SharedFiles(msgspec.Struct, frozen=True):
    """What a commit has in common with commits that sessions made."""

    paths: list[str]
    sources: list[str]


class MadeCommits:
    """Commits that sessions made, as a set of bits each: those that one comes from are told in one
    step, however many there are."""

    def __init__(self, made: Iterable[Commit], paths: Paths) -> None:
        self._made = sorted(made, key=lambda commit: commit.committed_at)
        self._times = [commit.committed_at for commit in self._made]
        self._bit = {commit.sha: 1 << at for at, commit in enumerate(self._made)}
        self._by_path: dict[str, int] = {}
        for sha, bit in self._bit.items():
            for path in paths[sha]:
                self._by_path[path] = self._by_path.get(path, 0) | bit

    def shared_files(
        self, commits: Mapping[str, Commit], paths: Paths
    ) -> Iterator[tuple[str, SharedFiles]]:
        """Yield each commit that may be another version of these, and what they share; `commits`
        are all that lie between, `paths` has those that are asked about."""
        for sha, above in self._ancestors(commits):
            beside = self._in_time(commits[sha]) & ~above if sha in paths else 0
            if not beside:
                continue
            shared = [path for path in paths[sha] if self._by_path.get(path, 0) & beside]
            if shared:
                yield sha, SharedFiles(shared, self._sources(shared, beside))

    def _sources(self, paths: Iterable[str], among: int) -> list[str]:
        bits = 0
        for path in paths:
            bits |= self._by_path[path] & among
        return [commit.sha for commit in self._made if self._bit[commit.sha] & bits]

    def _in_time(self, commit: Commit) -> int:
        first = bisect_left(self._times, commit.authored_at - LOOK_BACK)
        last = bisect_right(self._times, commit.committed_at + SLACK)
        return (1 << last) - (1 << first) if first < last else 0

    def _ancestors(self, commits: Mapping[str, Commit]) -> Iterator[tuple[str, int]]:
        """Yield each commit with what it comes from, parents first."""
        parents = {sha: commit.parents for sha, commit in commits.items()}
        waiting = Counter(above for own in parents.values() for above in own)
        masks: dict[str, int] = {}  # of commits whose children are still to come
        for sha in Ancestry(parents).number:
            mask = 0
            for above in parents[sha]:
                mask |= masks.get(above, 0)
                waiting[above] -= 1
                if not waiting[above]:
                    masks.pop(above, None)
            yield sha, mask
            masks[sha] = mask | self._bit.get(sha, 0)
