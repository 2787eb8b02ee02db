"""Whether a commit may hold enough of what sessions wrote, told by the changes of the few files
that they wrote in. Of a large commit that does not, the rest is never read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

import msgspec

from whyfor.story.links.activity import SessionActivity
from whyfor.story.links.commits import SMALL, CommitFacts, FileFacts
from whyfor.story.links.line_keys import WIDTH, each
from whyfor.story.links.paths import Places, last_part
from whyfor.story.links.squashes import lines_of

# Half of what a link needs (see `infer`): some of the commit's own lines may be in so many files
# that they do not count.
_PART = 0.10
_FRESH_PART = 0.025
_OWN_PART = 0.25
_VERSION = 0.25  # of a commit's lines in another version of it; some may be in other files
_FEW = 3
_MANY = 10


class _FileLines(msgspec.Struct):
    """Lines that are looked for in one file."""

    added: set[int] = msgspec.field(default_factory=set)
    removed: set[int] = msgspec.field(default_factory=set)

    def count(self, added: bytes, removed: bytes) -> int:
        """Count those of the lines that are among these."""
        found = sum(key in self.added for key in each(added))
        return found + sum(key in self.removed for key in each(removed))


class LineProbe:
    """The lines that are looked for, in files of these paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._wanted = {path: _FileLines() for path in paths}
        self._made: dict[str, set[int]] = {}
        self._by_name: dict[str, list[str]] = {}
        for path in self._wanted:
            self._by_name.setdefault(last_part(path), []).append(path)

    def add_sessions(
        self, sessions: Mapping[int, SessionActivity], foreign: Set[int], places: Places
    ) -> None:
        """Look for what sessions wrote."""
        for number, session in sessions.items():
            for act in session.written:
                for path in self._by_name.get(last_part(act.path), ()):
                    if places.same(act.path, path, foreign=number in foreign):
                        self._wanted[path].added.update(each(act.added))
                        self._wanted[path].removed.update(each(act.removed))

    def add_made(self, commits: Iterable[CommitFacts]) -> None:
        """Look for other versions of these, too."""
        for commit in commits:
            self._made[commit.sha] = lines_of(commit)

    def finds(self, commit: CommitFacts, sources: Iterable[str]) -> bool:
        """Return whether the commit may have a link: it may have one by the lines that sessions
        wrote, or as a version of one of the sources."""
        return self._is_version(commit, sources) or self._has_lines(commit)

    def _is_version(self, commit: CommitFacts, sources: Iterable[str]) -> bool:
        known = [self._made[sha] for sha in sources if sha in self._made]
        own = lines_of(commit) if known else set()
        return any(len(theirs & own) >= max(1, len(theirs) * _VERSION) for theirs in known)

    def _has_lines(self, commit: CommitFacts) -> bool:
        """Whether there are enough of them. Where no more than a line or two are known, one will
        do: in a small commit every line counts."""
        counts: list[tuple[int, int]] = []
        little = 0
        for file in commit.files:
            wanted = self._wanted.get(file.path)
            if wanted is not None:
                counts.append((wanted.count(file.added, file.removed), _size(file)))
                little += wanted.count(file.minor_added, file.minor_removed)
        found = sum(count for count, _ in counts)
        total = sum(size for _, size in counts)
        if total < SMALL:
            return found + little > 0
        if found >= _MANY or found >= total * _PART:
            return True
        owns = any(count >= 2 and count >= size * _OWN_PART for count, size in counts)
        return owns or (found >= _FEW and found >= total * _FRESH_PART)


def _size(file: FileFacts) -> int:
    return (len(file.added) + len(file.removed)) // WIDTH
