"""The commits that a file was changed in, through its renames."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from whyfor.git.history import CommitLimits, changed_paths, commits
from whyfor.git.line_changes import read_line_changes
from whyfor.git.place import GitPlace
from whyfor.model.stories import Commit

_NAMES = 4  # former names of a file that are followed


class FileVersion(msgspec.Struct, frozen=True):
    """A commit that changed a file, and where the file is in it."""

    commit: Commit
    path: str

    @property
    def sha(self) -> str:
        return self.commit.sha


class FileHistory(msgspec.Struct, frozen=True):
    """The versions of a file, the newest first."""

    versions: list[FileVersion]
    removed: Commit | None = None  # the commit that took it away last, if it is gone
    renamed: str | None = None  # where that commit put it
    more: bool = False  # there are older ones


def file_history(
    folder: GitPlace, revisions: Sequence[str], path: str, limit: int = 200
) -> FileHistory:
    """Return the versions of a file that some commits reach, at most `limit`. Raises BadInput for
    a revision that git does not have."""
    versions: list[FileVersion] = []
    removed: Commit | None = None
    name: str | None = path
    start = list(revisions)
    for _ in range(_NAMES):
        if name is None or len(versions) > limit:
            break
        listed, gone = _of_name(folder, start, name, limit + 1 - len(versions))
        if not versions:
            removed = gone
        versions += [FileVersion(commit, name) for commit in listed]
        if not listed:
            break
        oldest = listed[-1]
        name = _former_name(folder, oldest.sha, name)
        start = list(oldest.parents[:1])
    renamed = _new_name(folder, removed.sha, path) if removed else None
    return FileHistory(versions[:limit], removed, renamed, len(versions) > limit)


def _of_name(
    folder: GitPlace, revisions: Sequence[str], path: str, limit: int
) -> tuple[list[Commit], Commit | None]:
    """The commits that have a file of this name after they changed it, newest first; and the
    newest of all that changed it, if that one removed it."""
    among = CommitLimits(paths=(f":(literal){path}",))
    found = list(reversed(commits(folder, revisions, limit=limit, among=among)))
    letters = changed_paths(folder, [commit.sha for commit in found])
    there = [commit for commit in found if letters[commit.sha].get(path) != "D"]
    is_gone = bool(found) and letters[found[0].sha].get(path) == "D"
    return there, found[0] if is_gone else None


def _former_name(folder: GitPlace, sha: str, path: str) -> str | None:
    """What a file was called before a commit renamed it; None if it did not."""
    changes = dict(read_line_changes(folder, [sha])).get(sha, [])
    return next((change.old_path for change in changes if change.path == path), None)


def _new_name(folder: GitPlace, sha: str, path: str) -> str | None:
    changes = dict(read_line_changes(folder, [sha])).get(sha, [])
    return next((change.path for change in changes if change.old_path == path), None)
