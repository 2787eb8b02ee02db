"""Snapshots of a work tree as git trees: a copied index and objects of our own beside the
repository's, so that nothing of the repository changes.

Files are read by us, never by git, which would run the repository's filters. What a filter would
have to be run for is left out.
"""

from __future__ import annotations

import os
import shutil
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from whyfor.files import make_folders
from whyfor.git.run import Answer, run_git
from whyfor.git.worktree import (
    blob_name,
    is_same_file,
    is_set,
    parse_attributes,
    parse_index,
    read_file,
)
from whyfor.model.shell_edits import ShellFileDiff

FILES_MAX = 20_000  # in a work tree; a larger one is not looked at
BYTES_MAX = 1 << 20  # of a file
CHANGED_MAX = 64 << 20  # bytes that are read for one snapshot
# ns within which a file may have been written after its times were taken: a file system's clock
# ticks slowly
TICK = 20_000_000
_SECONDS = 20.0
_SETTINGS = {
    # the index we write is one file, and outside of the repository
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "index.sparse": "false",
    "core.fsync": "none",
}


class NoSnapshot(Exception):
    """A snapshot could not be taken, and why."""


class KnownFile(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was when it was read last."""

    mtime: int
    ctime: int
    size: int
    ino: int


class SnapshotState(msgspec.Struct):
    """What is known of the files of a work tree."""

    begun: bool = False
    taken_at: int = 0  # ns
    files: dict[bytes, KnownFile] = {}


class TreeSnapshot(msgspec.Struct, frozen=True):
    """A work tree at a moment. Of a file that was written after it, the version before is in the
    tree."""

    tree: str
    late: frozenset[str]  # files that were written after the moment
    left_out: dict[str, str]  # why, by file


class WorkTreeSnapshots:
    """Snapshots of one work tree, kept in a folder of our own."""

    def __init__(self, top: Path, folder: Path) -> None:
        """Raises NoSnapshot if git cannot be asked here."""
        self.top = top
        self.folder = folder
        self.index = folder / "index"
        self.objects = folder / "objects"
        asked = ("--git-path", "objects", "--git-path", "index", "--show-object-format")
        told = run_git(top, "rev-parse", "--path-format=absolute", *asked, index=True)
        lines = os.fsdecode(told.out).splitlines()
        if not told.ok or len(lines) != 3:
            raise NoSnapshot(told.complaint)
        self._their_objects, self._their_index = lines[0], Path(lines[1])
        self.width = 64 if lines[2] == "sha256" else 40  # digits of an object's name

    def take(self, state: SnapshotState, moment: int) -> TreeSnapshot:
        """Take a snapshot, and note in `state` what was read. `moment` is in ns. Raises
        NoSnapshot."""
        names = self._names()
        if not state.begun or not self.objects.is_dir():
            self._begin(state, names)
        changed, gone = self._changed(state, names)
        late: set[bytes] = set()
        left_out: dict[bytes, str] = {}
        entries = [b"0 %s\t%s\0" % (b"0" * self.width, name) for name in gone]
        total = 0
        converted = self._converted(changed)
        for name, now in changed.items():
            if now.st_ctime_ns >= moment:
                late.add(name)
                continue
            reason = _unfit(now) or converted.get(name, "")
            if reason:
                left_out[name] = reason
                continue
            total += now.st_size
            if total > CHANGED_MAX:
                raise NoSnapshot(f"more than {CHANGED_MAX >> 20} MB changed")
            entries.append(self._entry(state, name, now))
        state.taken_at = moment
        self._git("update-index", "-z", "--index-info", given=b"".join(entries))
        tree = self._git("write-tree", "--missing-ok").text.strip()
        shown = {os.fsdecode(name): why for name, why in left_out.items()}
        return TreeSnapshot(tree, frozenset(map(os.fsdecode, late)), shown)

    def compare(self, before: TreeSnapshot, after: TreeSnapshot) -> list[ShellFileDiff]:
        """Return what changed between two snapshots. Raises NoSnapshot."""
        options = "-r -p -U3 --no-renames --no-color --no-ext-diff --no-textconv".split()
        options += ["--ignore-cr-at-eol", "--src-prefix=a/", "--dst-prefix=b/"]
        told = self._git("diff-tree", *options, before.tree, after.tree).out
        found = []
        for part in told.split(b"diff --git ")[1:] if told else ():
            one = _file_diff(part.decode("utf-8", "replace"))
            if one is None or one.path in after.late:
                continue
            if one.path in before.late and not one.gone:
                one = self._whole(one)
            found.append(one)
        return found

    def forget(self) -> None:
        """Delete what was kept of this work tree."""
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- files -----------------------------------------------------------------------------------

    def _names(self) -> list[bytes]:
        """The files that git tracks or would add."""
        answer = run_git(
            self.top,
            *("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
            seconds=_SECONDS,
            index=True,
        )
        if not answer.ok:
            raise NoSnapshot(answer.complaint)
        names = sorted({name for name in answer.out.split(b"\0") if name})
        if len(names) > FILES_MAX:
            raise NoSnapshot(f"{len(names):,} files, and only {FILES_MAX:,} are looked at")
        return names

    def _begin(self, state: SnapshotState, names: Iterable[bytes]) -> None:
        """Start from a copy of the repository's index: what it says is unchanged need not be
        read."""
        self.forget()
        make_folders(self.objects)
        state.begun, state.files = True, {}
        theirs = self._their_index
        if not theirs.is_file():
            return
        written_at = theirs.stat().st_mtime_ns
        shutil.copyfile(theirs, self.index)
        listed = self._git("ls-files", "-z", "--stage", "--debug").out
        entries = parse_index(listed)
        for name in names:
            if name in entries and is_same_file(self.top, name, entries[name], written_at):
                state.files[name] = _known((self.top / os.fsdecode(name)).lstat())

    def _changed(
        self, state: SnapshotState, names: Iterable[bytes]
    ) -> tuple[dict[bytes, os.stat_result], list[bytes]]:
        """Files that are not as they were when they were read last, and those that are gone."""
        changed: dict[bytes, os.stat_result] = {}
        there = set()
        for name in names:
            try:
                now = (self.top / os.fsdecode(name)).lstat()
            except (OSError, ValueError):
                continue
            if not stat.S_ISREG(now.st_mode):
                continue
            there.add(name)
            doubtful = now.st_ctime_ns >= state.taken_at - TICK
            if doubtful or state.files.get(name) != _known(now):
                changed[name] = now
        gone = [name for name in state.files if name not in there]
        for name in gone:
            del state.files[name]
        return changed, gone

    def _converted(self, names: Iterable[bytes]) -> dict[bytes, str]:
        """Why files are not what git would add: a filter stands between."""
        given = b"".join(name + b"\0" for name in names)
        if not given:
            return {}
        asked = ("check-attr", "-z", "--stdin", "filter", "working-tree-encoding")
        found = {}
        for name, values in parse_attributes(self._git(*asked, given=given).out).items():
            for attribute, value in values.items():
                if is_set(value):
                    found[name] = f"its attribute {attribute} is set"
        return found

    def _entry(self, state: SnapshotState, name: bytes, now: os.stat_result) -> bytes:
        """Keep a file's content; return its line for the index."""
        try:
            content = read_file(self.top / os.fsdecode(name))
        except OSError:
            return b""  # gone meanwhile: the next snapshot will tell
        sha = self._put(content)
        state.files[name] = _known(now)
        mode = b"100755" if now.st_mode & 0o100 else b"100644"
        return b"%s %s\t%s\0" % (mode, sha.encode(), name)

    def _put(self, content: bytes) -> str:
        """Write a loose object, as git keeps it."""
        sha = blob_name(content, "0" * self.width)
        path = self.objects / sha[:2] / sha[2:]
        if not path.exists():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            own = path.with_suffix(f".{os.getpid()}")
            own.write_bytes(zlib.compress(b"blob %d\0" % len(content) + content, 1))
            own.rename(path)
        return sha

    def _whole(self, one: ShellFileDiff) -> ShellFileDiff:
        """A file of which only an earlier version is known than the one before: with all of it, as
        it is now."""
        text = read_file(self.top / one.path).decode("utf-8", "replace")
        return ShellFileDiff(one.path, one.diff, text)

    # -- git -------------------------------------------------------------------------------------

    def _git(self, *arguments: str, given: bytes = b"") -> Answer:
        answer = run_git(
            self.top,
            *arguments,
            given=given,
            seconds=_SECONDS,
            variables={**self._variables(), "GIT_LITERAL_PATHSPECS": "1"},
        )
        if not answer.ok:
            raise NoSnapshot(answer.complaint)
        return answer

    def _variables(self) -> dict[str, str]:
        """The environment in which git writes to our folder and reads the repository's objects
        beside it."""
        found = {
            "GIT_INDEX_FILE": str(self.index),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": self._their_objects,
            "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        }
        for number, (name, value) in enumerate(_SETTINGS.items()):
            found[f"GIT_CONFIG_KEY_{number}"] = name
            found[f"GIT_CONFIG_VALUE_{number}"] = value
        return found


def _unfit(now: os.stat_result) -> str:
    """Why a file is not kept; empty if it is."""
    return f"larger than {BYTES_MAX >> 20} MB" if now.st_size > BYTES_MAX else ""


def _known(now: os.stat_result) -> KnownFile:
    return KnownFile(now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino)


def _file_diff(part: str) -> ShellFileDiff | None:
    """One file of a patch; None if there is nothing to read in it: another mode, no text, a name
    that git quotes."""
    head, found, hunks = part.partition("\n@@ ")
    old = new = ""
    for line in head.split("\n"):
        if line.startswith("--- "):
            old = line[4:].rstrip("\t")
        elif line.startswith("+++ "):
            new = line[4:].rstrip("\t")
    if new == "/dev/null" and old.startswith("a/"):
        return ShellFileDiff(old[2:], gone=True)
    if not found or not new.startswith("b/"):
        return None
    if old == "/dev/null":
        lines = hunks.split("\n")[1:]
        text = "\n".join(line[1:] for line in lines if line[:1] == "+")
        return ShellFileDiff(new[2:], whole=text)
    return ShellFileDiff(new[2:], diff=f"@@ {hunks}")
