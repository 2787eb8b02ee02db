"""Where git may be asked: the repository around a folder, found without git's own discovery.

Git takes any folder with HEAD, objects and refs in it for a bare repository, and a plain clone
can contain such a folder: its `config` then comes from whoever wrote the clone. So a repository
is found here, by its `.git` alone, and a bare one is asked only where the user named it:

- the current directory of a command, and a folder given to `--project` or `--repo`;
- the remote of a clone on this machine, if it lies outside the work tree that names it;
- the git folder of a repository that `whyfor init` or `whyfor pause` was run in.

The folder an agent's session ran in names nothing: a transcript is not the user.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

_OBJECT_NAME = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\s*")
_HEAD_MOST = 1024  # bytes of HEAD that are looked at


class GitDir(msgspec.Struct, frozen=True):
    """A git directory that the user named: git uses this one and does not search for another."""

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


GitPlace = Path | GitDir
"""A folder in a work tree, or a git directory that the user named."""


def find_work_tree(folder: Path) -> Path | None:
    """Return the nearest folder at or above `folder` that contains a repository's `.git`; None if
    there is none.

    Links are resolved first, as git does. The folder itself need not exist.
    """
    try:
        real = Path(os.path.realpath(folder))
        return next((at for at in (real, *real.parents) if _has_repository(at)), None)
    except (OSError, ValueError):  # a name no file system takes
        return None


def _has_repository(folder: Path) -> bool:
    """Return whether `.git` is a git directory or a file that points to one; git ignores any other
    `.git`."""
    pointer = folder / ".git"
    return pointer.is_file() or is_git_dir(pointer)


def is_git_dir(folder: Path) -> bool:
    """Return whether git would accept this folder as a repository: a valid HEAD, objects and
    refs."""
    try:
        if (folder / "commondir").is_file():
            return _is_head(folder / "HEAD")
        stores = (folder / "objects").is_dir() and (folder / "refs").is_dir()
        return stores and _is_head(folder / "HEAD")
    except (OSError, ValueError):
        return False


def _is_head(path: Path) -> bool:
    if path.is_symlink():
        return str(path.readlink()).startswith("refs/")
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_MOST)
    if head.startswith(b"ref:"):
        return head[4:].lstrip().startswith(b"refs/")
    return _OBJECT_NAME.match(head) is not None


def shallow_edge(folder: GitPlace) -> frozenset[str]:
    """Return the commits of a shallow clone whose parents were not cloned: they seem to add every
    line. Read without git, because most clones have none."""
    try:
        known = (_common_dir(folder) / "shallow").read_text(encoding="ascii")
    except (OSError, ValueError):
        return frozenset()
    return frozenset(known.split())


def _common_dir(folder: GitPlace) -> Path:
    """The git directory that all work trees of a repository share."""
    if isinstance(folder, GitDir):
        found = folder.path
    else:
        found = (find_work_tree(folder) or Path(folder)) / ".git"
    if found.is_file():
        named = found.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
        found = found.parent / named
    common = found / "commondir"
    return found / common.read_text(encoding="utf-8").strip() if common.is_file() else found


def name_place(folder: GitPlace) -> GitPlace:
    """Return where to run git for a folder that the user named: the folder, or the bare repository
    it is in.

    A work tree around it takes precedence: a bare repository inside one is content of that work
    tree.
    """
    if isinstance(folder, GitDir) or find_work_tree(folder) is not None:
        return folder
    real = Path(os.path.realpath(folder))
    bare = next((at for at in (real, *real.parents) if is_git_dir(at)), None)
    return folder if bare is None else GitDir(bare)


def name_file_place(cwd: Path, file: str) -> GitPlace:
    """Return where to run git for a file that the user named: the work tree around the file, else
    what `cwd` names. A path into another repository, as of a submodule, names that one."""
    named = Path(os.path.normpath(cwd / file))
    around = find_work_tree(named.parent) if "\0" not in file else None
    if around is None or around == find_work_tree(cwd):
        return name_place(cwd)
    return around


def name_remote(folder: Path, work_tree: Path) -> GitPlace | None:
    """Return where to run git for a remote on this machine: exactly that folder; None if it is not
    a repository.

    A remote inside the work tree that names it is part of what was cloned, so it is None too.
    """
    real = Path(os.path.realpath(folder))
    try:
        if real.is_relative_to(os.path.realpath(work_tree)):
            return None
        if _has_repository(real):
            return real
        return GitDir(real) if is_git_dir(real) else None
    except (OSError, ValueError):
        return None


def is_own(folder: Path) -> bool:
    """Return whether the folder belongs to our account. Git checks this for repositories it finds,
    but not for one it is told to use."""
    if not hasattr(os, "geteuid"):
        return True
    try:
        return folder.stat().st_uid == os.geteuid()
    except OSError:
        return False
