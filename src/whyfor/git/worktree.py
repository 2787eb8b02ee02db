"""Which files differ from the last commit, found without running anything that a repository
names.

`git status` hands files to the programs of filter.*.clean and filter.*.process and asks
core.fsmonitor. Here git only lists what its index and its commits hold; files are compared by
us. What a filter would have to be run for is not guessed: it is returned as unread, with the
reason.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from whyfor.git.run import Answer, run_git

MAX_BYTES = 64 << 20  # of one file that is read to compare it
_BATCH = 200  # paths asked about at once
_ASSUMED = 0x8000 | 0x4000_0000  # assume-unchanged, skip-worktree: git ignores changes
_ENTRY = re.compile(
    rb"(?P<mode>\d{6}) (?P<sha>[0-9a-f]+) (?P<stage>\d)\t(?P<path>[^\0]+)\0"
    rb"  ctime: (?P<ctime>\d+:\d+)\n"
    rb"  mtime: (?P<mtime>\d+:\d+)\n"
    rb"  dev: \d+\tino: (?P<ino>\d+)\n"
    rb"  uid: \d+\tgid: \d+\n"
    rb"  size: (?P<size>\d+)\tflags: (?P<flags>[0-9a-f]+)\n"
)
_ATTRIBUTES = ("filter", "ident", "working-tree-encoding", "text", "crlf", "eol")
_SETTINGS = r"^(filter\..*\.(clean|process)|core\.(autocrlf|filemode|symlinks))$"
_LINK = 0o120000
_SUBMODULE = 0o160000


class IndexEntry(msgspec.Struct, frozen=True):
    """One file in git's index. Times are in ns; inode and size are truncated to 32 bits there."""

    mode: int
    sha: str
    stage: int
    ctime: int
    mtime: int
    ino: int
    size: int
    flags: int


class WorkTreeState(msgspec.Struct, frozen=True):
    """The requested files that differ from the last commit, and those that could not be
    compared."""

    changed: frozenset[str]
    unread: dict[str, str]  # why, by path


class _Trouble(Exception):
    """Git could not be run, or gave an unexpected answer."""


def find_changes(top: Path, head: str | None, paths: Iterable[str]) -> WorkTreeState:
    """Return which of these files (absolute paths) differ from the commit `head`, or are new and
    not ignored.

    `top` is the work tree; files outside it are left out. Without a commit yet, every file that git
    knows differs.
    """
    asked: dict[bytes, str] = {}
    for path in paths:
        name = _below(top, path)
        if name is not None:
            asked[name] = path
    changed: set[str] = set()
    unread: dict[str, str] = {}
    names = sorted(asked)
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        try:
            differ, why = _compare(top, head, batch)
        except _Trouble as trouble:
            differ, why = set(), dict.fromkeys(batch, str(trouble))
        changed.update(asked[name] for name in differ)
        unread.update({asked[name]: reason for name, reason in why.items()})
    return WorkTreeState(frozenset(changed), unread)


def _below(top: Path, path: str) -> bytes | None:
    """Return the path as git spells it; None if it is outside the work tree or not a path."""
    prefix = f"{top}{os.sep}"
    if not path.startswith(prefix) or os.path.normpath(path) != path or "\0" in path:
        return None
    try:
        return os.fsencode(path.removeprefix(prefix))
    except UnicodeEncodeError:
        return None


# -- comparing -----------------------------------------------------------------------------------


def _compare(
    top: Path, head: str | None, names: list[bytes]
) -> tuple[set[bytes], dict[bytes, str]]:
    """Return the names that differ, and why others could not be compared."""
    listed = _asked(top, "ls-files", "-z", "--stage", "--debug", "--", *_words(names)).out
    index = parse_index(listed)
    differ = _untracked(top, [name for name in names if name not in index])
    differ |= _staged(top, head, index, names)
    written_at = _index_time(top)
    doubtful = []
    for name in names:
        if name not in index or name in differ:
            continue
        if not is_same_file(top, name, index[name], written_at):
            doubtful.append(name)
    unread: dict[bytes, str] = {}
    if not doubtful:
        return differ, unread
    comparer = _Comparer(top, doubtful)
    for name in doubtful:
        verdict = comparer.compare(name, index[name])
        if isinstance(verdict, str):
            unread[name] = verdict
        elif verdict:
            differ.add(name)
    return differ, unread


def _untracked(top: Path, names: list[bytes]) -> set[bytes]:
    """Return the names that exist and are not ignored."""
    there = [name for name in names if os.path.lexists(_path(top, name))]
    if not there:
        return set()
    listed = _asked(
        top, "ls-files", "-z", "--others", "--exclude-standard", "--", *_words(there)
    ).out
    return set(listed.split(b"\0")) & set(there)


def _staged(
    top: Path, head: str | None, index: Mapping[bytes, IndexEntry], names: list[bytes]
) -> set[bytes]:
    """Return those that the index holds otherwise than the commit."""
    if head is None:
        return {name for name in names if name in index}
    options = (
        "-z --cached --name-only --no-renames --no-ext-diff --ita-visible-in-index "
        "--ignore-submodules=all"
    ).split()
    listed = _asked(top, "diff-index", *options, head, "--", *_words(names)).out
    return set(listed.split(b"\0")) & set(names)


def is_same_file(top: Path, name: bytes, entry: IndexEntry, written_at: int) -> bool:
    """Return True if the file certainly equals its index entry, judged by its stat data alone.

    A file that is as new as the index may have been written after its stat data was taken.
    """
    if entry.flags & _ASSUMED or entry.mode == _SUBMODULE:
        return True
    if entry.stage:
        return False
    try:
        now = _path(top, name).lstat()
    except (OSError, ValueError):
        return False
    if not _is_kind(entry.mode, now.st_mode) or entry.mtime >= written_at:
        return False
    cut = 0xFFFF_FFFF
    found = (now.st_mtime_ns, now.st_ctime_ns, now.st_size & cut, now.st_ino & cut)
    return found == (entry.mtime, entry.ctime, entry.size, entry.ino)


def _is_kind(mode: int, found: int) -> bool:
    """Return whether a file has the type that the index says: a link, an executable, or a regular
    file."""
    if mode == _LINK:
        return stat.S_ISLNK(found)
    return stat.S_ISREG(found) and bool(mode & 0o100) == bool(found & 0o100)


class _Comparer:
    """Compares the content of files with their index entries."""

    def __init__(self, top: Path, names: list[bytes]) -> None:
        self.top = top
        self.settings = parse_settings(
            _asked(top, "config", "-z", "--get-regexp", _SETTINGS, codes=(0, 1)).out
        )
        given = b"".join(name + b"\0" for name in names)
        listed = _asked(top, "check-attr", "-z", "--stdin", *_ATTRIBUTES, given=given).out
        self.attributes = parse_attributes(listed)

    def compare(self, name: bytes, entry: IndexEntry) -> bool | str:
        """Return whether the file differs; or why that cannot be told."""
        if entry.stage:
            return True  # a merge that is not through
        path = _path(self.top, name)
        try:
            now = path.lstat()
        except FileNotFoundError:
            return True
        except (OSError, ValueError) as error:
            return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
        if not self._is_kind(entry.mode, now.st_mode):
            return True
        if stat.S_ISLNK(now.st_mode):
            return blob_name(os.fsencode(path.readlink()), entry.sha) != entry.sha
        attributes = self.attributes.get(name, {})
        reason = self._converted_by(attributes)
        if reason:
            return reason
        if now.st_size > MAX_BYTES:
            return f"it is larger than {MAX_BYTES >> 20} MB"
        return self._compare_content(path, entry, attributes)

    def _compare_content(
        self, path: Path, entry: IndexEntry, attributes: Mapping[str, bytes]
    ) -> bool | str:
        try:
            content = read_file(path)
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        if blob_name(content, entry.sha) == entry.sha:
            return False
        if not self._ends_lines(attributes):
            return True
        return blob_name(content.replace(b"\r\n", b"\n"), entry.sha) != entry.sha

    def _is_kind(self, mode: int, found: int) -> bool:
        """Compare types as git does on a file system without links or without executable bits."""
        if mode == _LINK and is_off(self.settings, b"core.symlinks"):
            return stat.S_ISREG(found)
        if mode != _LINK and is_off(self.settings, b"core.filemode"):
            return stat.S_ISREG(found)
        return _is_kind(mode, found)

    def _converted_by(self, attributes: Mapping[str, bytes]) -> str:
        """Return what git would run the file through before comparing it; empty if nothing."""
        name = attributes.get("filter", b"")
        configured = (b"filter.%s.%s" % (name, kind) for kind in (b"clean", b"process"))
        if is_set(name) and any(self.settings.get(key) for key in configured):
            return f"it goes through the filter {name.decode('utf-8', 'replace')}"
        if attributes.get("ident") == b"set":
            return "its $Id$ is written by git"
        if is_set(attributes.get("working-tree-encoding", b"")):
            return "git converts its encoding"
        return ""

    def _ends_lines(self, attributes: Mapping[str, bytes]) -> bool:
        """Return whether git treats CR LF as LF."""
        text = attributes.get("text", b"unspecified")
        if text == b"unspecified":
            text = attributes.get("crlf", b"unspecified")
        if text == b"unset":
            return False
        if is_set(text) or is_set(attributes.get("eol", b"")):
            return True
        return self.settings.get(b"core.autocrlf", b"false").lower() in (
            b"input",
            b"true",
            b"yes",
            b"on",
            b"1",
            b"",
        )


def read_file(path: Path) -> bytes:
    """Read a file without following a link and without blocking; it was a regular file when it was
    checked."""
    flags = (
        os.O_RDONLY
        | getattr(os, "O_NOFOLLOW", 0)
        | getattr(os, "O_NONBLOCK", 0)
        | getattr(os, "O_BINARY", 0)
    )
    with os.fdopen(os.open(path, flags), "rb") as file:
        return file.read(MAX_BYTES + 1)


# -- pure ----------------------------------------------------------------------------------------


def parse_index(listing: bytes) -> dict[bytes, IndexEntry]:
    """Return the entries that `git ls-files -z --stage --debug` lists, by path; raise _Trouble for
    any other format.

    For a path with several stages (an unfinished merge), the last one is kept.
    """
    found = {}
    at = 0
    while at < len(listing):
        entry = _ENTRY.match(listing, at)
        if entry is None:
            raise _Trouble("git lists its index in a way that is not understood")
        found[entry["path"]] = IndexEntry(
            int(entry["mode"], 8),
            entry["sha"].decode(),
            int(entry["stage"]),
            _nanoseconds(entry["ctime"]),
            _nanoseconds(entry["mtime"]),
            int(entry["ino"]),
            int(entry["size"]),
            int(entry["flags"], 16),
        )
        at = entry.end()
    return found


def _nanoseconds(text: bytes) -> int:
    seconds, _, rest = text.partition(b":")
    return int(seconds) * 1_000_000_000 + int(rest)


def parse_attributes(listing: bytes) -> dict[bytes, dict[str, bytes]]:
    """Return the attributes that `git check-attr -z` lists, by path and name."""
    fields = listing.split(b"\0")
    found: dict[bytes, dict[str, bytes]] = {}
    for at in range(0, len(fields) - 2, 3):
        path, name, value = fields[at : at + 3]
        found.setdefault(path, {})[name.decode("ascii", "replace")] = value
    return found


def parse_settings(listing: bytes) -> dict[bytes, bytes]:
    """Return the settings that `git config -z --get-regexp` lists; the last of several with one
    name counts."""
    entries = (entry.partition(b"\n") for entry in listing.split(b"\0") if entry)
    return {key: value for key, _, value in entries}


def is_set(value: bytes) -> bool:
    return value not in (b"", b"unset", b"unspecified")


def is_off(settings: Mapping[bytes, bytes], key: bytes) -> bool:
    return settings.get(key, b"true").lower() in (b"false", b"no", b"off", b"0")


def blob_name(content: bytes, like: str) -> str:
    """Return git's object id for a file with this content, with the hash algorithm of `like`."""
    import hashlib  # here: it brings OpenSSL along

    digest = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content))
    digest.update(content)
    return digest.hexdigest()


# -- running git ---------------------------------------------------------------------------------


def _asked(top: Path, *arguments: str, given: bytes = b"", codes: tuple[int, ...] = (0,)) -> Answer:
    answer = run_git(
        top, *arguments, given=given, index=True, variables={"GIT_LITERAL_PATHSPECS": "1"}
    )
    if answer.code not in codes:
        raise _Trouble(answer.complaint)
    return answer


def _index_time(top: Path) -> int:
    """Return when the index was written, in ns; 0 without an index: then no file counts as
    unchanged by its stat data."""
    where = _asked(top, "rev-parse", "--path-format=absolute", "--git-path", "index").out
    try:
        return Path(os.fsdecode(where.removesuffix(b"\n"))).stat().st_mtime_ns
    except OSError:
        return 0


def _words(names: Iterable[bytes]) -> Iterator[str]:
    return (os.fsdecode(name) for name in names)


def _path(top: Path, name: bytes) -> Path:
    return top / os.fsdecode(name)
