"""A change that is about to be made: its files with their lines before and after. What is not
committed is compared without running anything that a repository names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from whyfor.git import run
from whyfor.git.history import commits
from whyfor.git.line_changes import LineChange, compare_index, compare_trees, read_texts
from whyfor.git.place import GitPlace
from whyfor.git.worktree import find_changes

FILES_MAX = 400
_BYTES = 8 << 20  # of a file that is read
_TRACKED = 200_000  # bytes of names are no limit; files that are looked at are


class ChangedText(msgspec.Struct, frozen=True):
    """One text file of a change."""

    path: str
    old_path: str  # where it was before
    before: str | None  # None: it was not there
    after: str | None  # None: it goes
    # first line that comes, how many; first line that goes, how many. None: not compared yet
    hunks: list[tuple[int, int, int, int]] | None = None


class PendingChange(msgspec.Struct, frozen=True):
    """A change against a commit."""

    base: str | None  # None: there is no commit yet
    files: list[ChangedText]
    left_out: list[str] = []  # files that could not be compared, and why
    made_at: int | None = None  # when it was committed, in ms; None: not yet


def between_commits(folder: GitPlace, old: str, new: str) -> PendingChange:
    """Return what differs from one commit (or tree) to another."""
    found = _of_changes(folder, old, compare_trees(folder, old, new, []))
    made = commits(folder, [new], limit=1)
    # git keeps whole seconds
    made_at = made[-1].committed_at + 999 if made else None
    return msgspec.structs.replace(found, made_at=made_at)


def staged_change(folder: GitPlace, head: str) -> PendingChange:
    """Return what is staged: the index against HEAD."""
    return _of_changes(folder, head, compare_index(folder, head))


def _of_changes(folder: GitPlace, base: str, changes: Sequence[LineChange]) -> PendingChange:
    left_out = []
    if len(changes) > FILES_MAX:
        left_out.append(f"{len(changes) - FILES_MAX} more files: only {FILES_MAX} are looked at")
    told = [change for change in changes[:FILES_MAX] if not change.binary]
    blobs = [blob for change in told for blob in (change.old_blob, change.blob)]
    texts = read_texts(folder, blobs)
    files = []
    for change in told:
        before, after = texts.get(change.old_blob), texts.get(change.blob)
        if before is not None or after is not None:
            old = change.old_path or change.path
            files.append(ChangedText(change.path, old, before, after, change.hunks))
    return PendingChange(base, files, left_out)


def work_tree_change(top: Path, head: str) -> PendingChange:
    """Return what differs in the work tree from HEAD, of the files that git tracks."""
    listed = run.run_git(top, "ls-tree", "-r", "-z", "--name-only", head)
    names = [name for name in listed.text.split("\0") if name]
    found = find_changes(top, head, [f"{top}/{name}" for name in names[:_TRACKED]])
    changed = sorted(found.changed)[:FILES_MAX]
    paths = [path.removeprefix(f"{top}/") for path in changed]
    texts = read_texts(top, [f"{head}:{path}" for path in paths])
    files = []
    for path in paths:
        before = texts.get(f"{head}:{path}")
        after = _read(top / path)
        if before is not None:
            files.append(ChangedText(path, path, before, after))
    left_out = [f"{path.removeprefix(f'{top}/')}: {why}" for path, why in found.unread.items()]
    return PendingChange(head, files, left_out)


def _read(at: Path) -> str | None:
    """The text of a plain file; None for anything else."""
    try:
        if at.is_symlink() or not at.is_file() or at.stat().st_size > _BYTES:
            return None
        return at.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
