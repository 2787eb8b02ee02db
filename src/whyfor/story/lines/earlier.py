"""Lines that earlier commits have added to files: what was written then is used up. Asked for many
files at once, so that git is started twice and not twice for each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from whyfor.git import history
from whyfor.git.place import GitPlace
from whyfor.story.lines.words import squeeze
from whyfor.story.links.ancestry import Ancestry

_BETWEEN = 200  # earlier commits of a file that may have used up what was written


class LinesSince(msgspec.Struct, frozen=True):
    """What is asked: the lines that came into a file, by any of its names, from a time on up to a
    commit."""

    until: str
    since: int
    paths: tuple[str, ...]


class EarlierLines:
    """Of the commits of one repository."""

    def __init__(self, folder: GitPlace) -> None:
        self._folder = folder
        self._found: dict[LinesSince, Counter[str]] = {}

    def load(self, requests: Iterable[LinesSince]) -> None:
        """Look up what is asked, in place of what was asked before."""
        asked = list(dict.fromkeys(requests))
        self._found = {request: Counter() for request in asked}
        if not asked:
            return
        since = min(request.since for request in asked)
        tips = dict.fromkeys(request.until for request in asked)
        commits = history.commits(self._folder, tips, since=since)
        ancestry = Ancestry({commit.sha: commit.parents for commit in commits})
        paths = sorted({path for request in asked for path in request.paths})
        added = self._added(commits, paths)
        for request in asked:
            self._found[request] = _count(request, commits, ancestry, added)

    def added(self, request: LinesSince) -> Counter[str]:
        """Return the lines, without what formatters change, and how often they came."""
        return self._found[request]

    def _added(
        self, commits: Iterable[history.Commit], paths: list[str]
    ) -> dict[tuple[str, str], list[bytes]]:
        """By commit and path, the lines that came."""
        shas = [commit.sha for commit in commits]
        found: dict[tuple[str, str], list[bytes]] = {}
        came: set[str] = set()
        for sha, changed in history.read_changes_of(self._folder, shas, paths):
            for file in changed:
                found[sha, file.path] = file.added
                if file.status == "A":
                    came.add(sha)
        renamed = self._with_removals(came) if came else []
        for sha, changed in history.read_changes(self._folder, renamed) if renamed else ():
            for file in changed:
                found[sha, file.path] = file.added
        return found

    def _with_removals(self, shas: Iterable[str]) -> list[str]:
        """Those of the commits that may have given a file another name: of such a file not all
        lines are new."""
        paths = history.changed_paths(self._folder, shas)
        return [sha for sha, letters in paths.items() if "D" in letters.values()]


def _count(
    request: LinesSince,
    commits: Iterable[history.Commit],
    ancestry: Ancestry,
    added: dict[tuple[str, str], list[bytes]],
) -> Counter[str]:
    found: Counter[str] = Counter()
    left = _BETWEEN
    for commit in reversed(list(commits)):
        sha = commit.sha
        lines = [line for path in request.paths for line in added.get((sha, path), ())]
        is_between = commit.committed_at >= request.since and left > 0
        reached = sha == request.until or ancestry.descends(request.until, sha)
        if lines and is_between and reached:
            left -= 1
            found.update(squeeze(line.decode("utf-8", "replace")) for line in lines)
    return found
