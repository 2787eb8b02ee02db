"""Squashes: commits that hold the changes of several others, which may still stand beside them.

`git merge --squash`, a forge's squash and a rebase with squash or fixup all make one. Its sources
are told by what git or the forge wrote into the message, and by the lines of the commits beside
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set

from whyfor.model.times import DAY
from whyfor.story.links.ancestry import Ancestry
from whyfor.story.links.commits import CommitFacts
from whyfor.story.links.line_keys import each, norm

OLDEST = 90 * DAY  # a branch may be that old when it is squashed
LISTED = re.compile(r"^commit ([0-9a-f]{40}|[0-9a-f]{64})$", re.M)  # `git merge --squash`
BULLET = re.compile(r"^\s*[*-] (.{10,})$", re.M)  # a forge lists subjects
_HALF = 0.5


def lines_of(commit: CommitFacts) -> set[int]:
    """Return the keys of the lines a commit adds, and the complements of those it removes."""
    found: set[int] = set()
    for file in commit.files:
        found.update(each(file.added + file.minor_added))
        found.update(~key for key in each(file.removed + file.minor_removed))
    return found


class Squashes:
    """Commits with a story are added in the order they were made; each is asked about before it
    is added."""

    def __init__(
        self, ancestry: Ancestry, pairs: Iterable[tuple[str, str]], unreachable: Set[str]
    ) -> None:
        self._ancestry = ancestry
        self._unreachable = unreachable
        self._pairs = list(pairs)
        self._commits: dict[str, CommitFacts] = {}
        self._seen: set[int] = set()  # lines
        self._by_path: dict[str, list[str]] = {}
        self._by_subject: dict[str, list[str]] = {}
        self._sources: dict[str, list[str]] = {}  # of the squashes among them
        self._absorbed: dict[str, list[str]] = {}  # the squashes that hold a commit

    def add(self, commit: CommitFacts) -> None:
        self._commits[commit.sha] = commit
        self._seen |= lines_of(commit)
        self._by_subject.setdefault(norm(commit.subject), []).append(commit.sha)
        for file in commit.files:
            self._by_path.setdefault(file.path, []).append(commit.sha)

    def of(self, commit: CommitFacts) -> list[str]:
        """Return the commits whose changes this one holds, oldest first: none if it is no squash,
        one if it is a copy with changes."""
        lines = lines_of(commit)
        told = self._told(commit)
        if not told and len(lines & self._seen) < max(1, len(lines) * _HALF):
            return []
        beside = self._beside(commit)
        theirs = {sha: lines_of(other) for sha, other in beside.items()}
        held = {sha for sha, own in theirs.items() if _is_in(own, lines)}
        covered: set[int] = set()
        for sha in held:
            covered |= theirs[sha] & lines
        if len(covered) < len(lines) * _HALF:
            held = set()
        found = {sha for sha in beside if sha in held or sha in told}
        found |= {sha for sha in beside if self._is_before(sha, found)}
        return self._settle(commit, found)

    def holding(self, sha: str) -> list[str]:
        """Return the squashes that hold a commit."""
        return self._absorbed.get(sha, [])

    # -- which commits may be sources ------------------------------------------------------------

    def _told(self, commit: CommitFacts) -> set[str]:
        """What the message lists."""
        told = set(LISTED.findall(commit.body))
        for subject in BULLET.findall(commit.body):
            told.update(self._by_subject.get(norm(subject), ()))
        return told & self._commits.keys()

    def _beside(self, commit: CommitFacts) -> dict[str, CommitFacts]:
        """Commits that change the same files, and that it does not come from."""
        found: dict[str, CommitFacts] = {}
        for file in commit.files:
            for sha in self._by_path.get(file.path, ()):
                other = self._commits[sha]
                recent = commit.committed_at - other.committed_at <= OLDEST
                if sha not in found and recent:
                    found[sha] = other
        return {
            sha: other
            for sha, other in found.items()
            if not self._ancestry.descends(commit.sha, sha)
            and not self._ancestry.descends(sha, commit.sha)
            and not self._is_absorbed(sha, commit)
        }

    def _is_absorbed(self, sha: str, commit: CommitFacts) -> bool:
        """Whether a squash that this commit comes from has taken it in already."""
        return any(self._ancestry.descends(commit.sha, s) for s in self._absorbed.get(sha, ()))

    def _is_before(self, sha: str, found: Set[str]) -> bool:
        """Whether one of those comes from it: later commits of a branch change its lines again."""
        return any(self._ancestry.descends(later, sha) for later in found)

    # -- which of them are ----------------------------------------------------------------------

    def _settle(self, commit: CommitFacts, found: set[str]) -> list[str]:
        """Leave out other versions of the same commit; for a squash take its own sources."""
        for sha in list(found):
            if sha in self._sources:
                found.discard(sha)
                found.update(self._sources[sha])
        replaced = {old for old, new in self._pairs if new in found and old in found}
        kept: list[str] = []
        for sha in sorted(found - replaced, key=self._standing_first):
            if not any(self._are_versions(sha, other) for other in kept):
                kept.append(sha)
        kept.sort(key=lambda sha: (self._commits[sha].committed_at, self._order(sha)))
        if len(kept) > 1:
            self._sources[commit.sha] = kept
            for sha in kept:
                self._absorbed.setdefault(sha, []).append(commit.sha)
        return kept

    def _are_versions(self, one: str, other: str) -> bool:
        """Whether two commits are the same one, rebased or picked."""
        first, second = self._commits[one], self._commits[other]
        same = (first.authored_at, norm(first.subject)) == (
            second.authored_at,
            norm(second.subject),
        )
        related = self._ancestry.descends(one, other) or self._ancestry.descends(other, one)
        return not related and (same or first.patch_id == second.patch_id)

    def _standing_first(self, sha: str) -> tuple[bool, int]:
        """Of copies, one that a branch has, else the newest."""
        gone = sha in self._unreachable
        at = self._commits[sha].committed_at
        return gone, -at if gone else at

    def _order(self, sha: str) -> int:
        return self._ancestry.number.get(sha, -1)


def _is_in(theirs: set[int], lines: set[int]) -> bool:
    """Whether at least half of a commit's lines are among these."""
    return bool(theirs) and len(theirs & lines) >= len(theirs) * _HALF
