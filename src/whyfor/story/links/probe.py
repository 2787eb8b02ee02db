"""Whether a commit may hold enough of what sessions wrote, told by the changes of the few files
that they wrote in. Of a large commit that does not, the rest is never read."""

from __future__ import annotations

from collections.abc import Iterable

from whyfor.story.links.activity import SessionActivity
from whyfor.story.links.by_content import common_lines, salted_keys
from whyfor.story.links.commits import SMALL, CommitFacts, FileFacts
from whyfor.story.links.line_keys import WIDTH, each
from whyfor.story.links.paths import last_part

# Half of what a link needs (see `infer`): some of the commit's own lines may be in so many files
# that they do not count.
_PART = 0.10
_FRESH_PART = 0.025
_OWN_PART = 0.25
_FEW = 3
_MANY = 10


class LineProbe:
    """The lines that are looked for, in files of these names."""

    def __init__(self, names: Iterable[str], sessions: Iterable[SessionActivity]) -> None:
        self._names = frozenset(names)
        self._wanted: set[int] = set()
        listed = list(sessions)
        self._common = common_lines([], listed)
        for session in listed:
            for act in session.written:
                self._add(act.path, act.added + act.removed)

    def add_made(self, commit: CommitFacts) -> None:
        """Look for the lines of a commit that another may be a version of, too."""
        for file in commit.files:
            self._add(file.path, _lines(file) + _minor_lines(file))

    def _add(self, path: str, packed: bytes) -> None:
        name = last_part(path)
        if name in self._names:
            self._wanted.update(salted_keys(each(packed), name))

    def finds(self, commit: CommitFacts, *, version: bool) -> bool:
        """Return whether the commit may have a link. If it may be a version of another, one line
        will do, and also if all that is known of it is a line or two: in a small commit every line
        counts."""
        counts = [(self._count(file), len(_lines(file)) // WIDTH) for file in commit.files]
        found = sum(count for count, _ in counts)
        total = sum(lines for _, lines in counts)
        if version or total < SMALL:
            return found > 0 or any(self._has_minor(file) for file in commit.files)
        if found >= _MANY or found >= total * _PART:
            return True
        owns = any(count >= 2 and count >= lines * _OWN_PART for count, lines in counts)
        return owns or (found >= _FEW and found >= total * _FRESH_PART)

    def _count(self, file: FileFacts) -> int:
        """Count the lines that are looked for and tell something."""
        own = [key for key in each(_lines(file)) if key not in self._common]
        salted = salted_keys(own, last_part(file.path))
        return sum(key in self._wanted for key in salted)

    def _has_minor(self, file: FileFacts) -> bool:
        minor = salted_keys(each(_minor_lines(file)), last_part(file.path))
        return not self._wanted.isdisjoint(minor)


def _lines(file: FileFacts) -> bytes:
    return file.added + file.removed


def _minor_lines(file: FileFacts) -> bytes:
    return file.minor_added + file.minor_removed
