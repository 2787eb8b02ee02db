"""Which commits sessions may have a part in, told by times and names alone: what is out of reach
needs no diff."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from whyfor.model.sessions import CandidateSession
from whyfor.model.stories import Commit
from whyfor.story.links.activity import CommitCommand, SessionActivity, WrittenEdit
from whyfor.story.links.by_content import LOOK_BACK, SLACK
from whyfor.story.links.by_output import single_subject
from whyfor.story.links.line_keys import norm
from whyfor.story.links.squashes import BULLET, LISTED

_SHORT = 7  # digits of an abbreviated hash
_HOUR = 3_600_000  # between the clocks of an agent and of git
_SEPARATOR = re.compile(r"[\\/]")


class SessionTimes:
    """When sessions were there."""

    def __init__(self, rows: Iterable[CandidateSession]) -> None:
        spans = []
        for row in rows:
            begun = row.started_at if row.started_at is not None else 0
            ended = row.ended_at if row.ended_at is not None else sys.maxsize - LOOK_BACK
            spans.append((begun - _HOUR, ended + LOOK_BACK))
        spans.sort()
        self._starts = [begun for begun, _ in spans]
        self._reach = list(accumulate((end for _, end in spans), max))

    def fit(self, commit: Commit) -> bool:
        """Return whether a session was there before a commit, and not too long before."""
        begun = bisect_right(self._starts, commit.committed_at)
        return begun > 0 and commit.authored_at <= self._reach[begun - 1]


class Reach:
    """Of some acts of sessions."""

    def __init__(self, acts: Iterable[WrittenEdit | CommitCommand] = ()) -> None:
        self._written: dict[str, list[int]] = {}  # times, by the end of a path
        self._gone: dict[str, list[int]] = {}  # of files and folders that were removed
        self._moved: dict[str, list[int]] = {}
        self._starts: list[int] = []  # of commands that may have made commits
        self._ends: list[int] = []
        self._printed: set[str] = set()
        self._subjects: set[str] = set()
        for act in acts:
            if isinstance(act, WrittenEdit):
                self._add_written(act)
            else:
                self._add_command(act)
        for ends in (self._written, self._gone, self._moved):
            for times in ends.values():
                times.sort()
        self._starts.sort()
        self._ends.sort()

    @classmethod
    def of_sessions(cls, sessions: Iterable[SessionActivity]) -> Reach:
        acts: list[WrittenEdit | CommitCommand] = []
        for session in sessions:
            acts += session.written
            acts += session.made
        return cls(acts)

    def _add_written(self, act: WrittenEdit) -> None:
        kinds = {"gone": self._gone, "moved": self._moved}
        for path in (act.path, act.old) if act.old else (act.path,):
            for end in _ends(path):
                self._written.setdefault(end, []).append(act.at)
                if act.kind in kinds:
                    kinds[act.kind].setdefault(end, []).append(act.at)

    def _add_command(self, act: CommitCommand) -> None:
        for sha, subject in act.printed:
            self._printed.add(sha[:_SHORT])
            self._subjects.add(norm(subject))
        if act.commits or act.printed:
            self._starts.append(act.called_at - SLACK)
            self._ends.append(act.done_at + SLACK)

    def add_subject(self, commit: Commit) -> None:
        """Of a commit that a session made, by whatever means: a squash may list it."""
        self._subjects.add(norm(commit.subject))

    # -- asking -----------------------------------------------------------------------------------

    def made(self, commit: Commit) -> bool:
        """Return whether a session may have made it: by its hash, or by what ran then."""
        if commit.sha[:_SHORT] in self._printed:
            return True
        return self._ran_at(commit.committed_at) or self._ran_at(commit.authored_at)

    def _ran_at(self, when: int) -> bool:
        """Whether more commands began by then than had ended."""
        return bisect_right(self._starts, when) > bisect_left(self._ends, when)

    def lists(self, commit: Commit) -> bool:
        """Return whether it says that it is a squash of what a session made."""
        if not commit.body and not commit.subject.endswith(")"):
            return False
        listed = [norm(subject) for subject in BULLET.findall(commit.body)]
        listed.append(single_subject(commit.subject))
        short = {sha[:_SHORT] for sha in LISTED.findall(commit.body)}
        return not (self._subjects.isdisjoint(listed) and self._printed.isdisjoint(short))

    def wrote(self, commit: Commit, paths: Mapping[str, str]) -> bool:
        """Return whether one of its files was written or removed in time; `paths` with git's
        letters."""
        return bool(self.written(commit, paths)) or self.removed(commit, paths)

    def written(self, commit: Commit, paths: Iterable[str]) -> list[str]:
        """Return those of its files that were written in time."""
        first, last = commit.authored_at - LOOK_BACK, commit.committed_at + SLACK
        return [path for path in paths if self._has(self._written, path, first, last)]

    def removed(self, commit: Commit, paths: Mapping[str, str]) -> bool:
        """Return whether one of the files that it removes was removed in time, or one that it
        changes was moved: itself, or a folder it is in."""
        deleted = [path for path, letter in paths.items() if letter == "D"]
        return self._has_any(self._gone, commit, deleted) or self._has_any(
            self._moved, commit, paths
        )

    def _has_any(self, times: dict[str, list[int]], commit: Commit, paths: Iterable[str]) -> bool:
        if not times:
            return False
        first, last = commit.authored_at - LOOK_BACK, commit.committed_at + SLACK
        for path in paths:
            above = path
            while above:
                if self._has(times, above, first, last):
                    return True
                above = above.rpartition("/")[0]
        return False

    def _has(self, times: dict[str, list[int]], path: str, first: int, last: int) -> bool:
        above, _, name = path.rpartition("/")
        above = above.rpartition("/")[2]
        ends = (f"{above}/{name}", f"*/{name}") if above else (f"/{name}",)
        return any(_is_between(times.get(end, ()), first, last) for end in ends)


def _is_between(times: Sequence[int], first: int, last: int) -> bool:
    """Whether one of the times is; they are in order."""
    at = bisect_left(times, first)
    return at < len(times) and times[at] <= last


def _ends(path: str) -> tuple[str, str]:
    """By what a file is looked up: its folder and name, or any folder if that is not told; and by
    its name alone, for files at the top of a repository."""
    *above, name = _SEPARATOR.split(path)
    folder = above[-1] if above else ""
    return f"{folder or '*'}/{name}", f"/{name}"
