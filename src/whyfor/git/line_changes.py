"""Which lines commits add to which files, by their numbers; and the texts of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import msgspec

from whyfor.git import run
from whyfor.git.history import unquote_name
from whyfor.git.place import GitPlace

BLOB_MAX = 8 << 20  # bytes of a file; the lines of a larger one are not read
_BINARY = 8000  # bytes in which a NUL says that a file is no text, as git looks for it
_DIFF = tuple(
    "diff-tree --stdin --always --root -r --raw -p -U0 -M -l400 --full-index --abbrev=40 "
    "--no-color --no-ext-diff --no-textconv --submodule=short --src-prefix=a/ "
    "--dst-prefix=b/".split()
)
_NAME = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\n")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_FILES = (b"100644", b"100755")


class LineChange(msgspec.Struct):
    """One file of a commit: where lines come, and how many go."""

    path: str
    old_path: str | None
    status: str  # git's letter
    old_blob: str
    blob: str
    plain: bool  # a file, not a link or a submodule
    added: list[tuple[int, int]] = []  # first line, how many
    removed: int = 0
    # by the first of the lines that came: how many, and which lines went for them
    hunks: list[tuple[int, int, int, int]] = []
    binary: bool = False

    @property
    def plus(self) -> int:
        """Return how many lines come."""
        return sum(count for _, count in self.added)

    @property
    def added_lines(self) -> set[int]:
        """Return the numbers of the added lines, from 1."""
        found: set[int] = set()
        for first, count in self.added:
            found.update(range(first, first + count))
        return found


def read_line_changes(
    folder: GitPlace, shas: Iterable[str], containing: str = ""
) -> Iterator[tuple[str, list[LineChange]]]:
    """Yield each commit with the files it changes; none for merges. With `containing`, only files
    in which that text comes or goes. Ends early where git cannot read an object."""
    wanted = "".join(f"{sha}\n" for sha in dict.fromkeys(shas)).encode()
    options = [f"-S{containing}"] if containing else []
    if wanted:
        with run.stream(folder, [*_DIFF, *options], given=wanted) as git:
            yield from _ChangeReader().read(git.lines)


def compare_trees(folder: GitPlace, old: str, new: str, paths: Sequence[str]) -> list[LineChange]:
    """Return the files in which two commits differ, below these paths if there are any."""
    options = [option for option in _DIFF if option not in ("--stdin", "--always", "--root")]
    literal = [f":(literal){path}" for path in paths]
    with run.stream(folder, [*options, old, new, "--", *literal], given=b"") as git:
        reader = _ChangeReader()
        reader.sha = new
        return [change for _, found in reader.read(git.lines) for change in found]


class _ChangeReader:
    """Reads what `git diff-tree --raw -p -U0` prints."""

    def __init__(self) -> None:
        self.sha: str | None = None
        self.found: list[LineChange] = []
        self.parts: Iterator[LineChange] = iter(())
        self.change: LineChange | None = None

    def read(self, stream: Iterable[bytes]) -> Iterator[tuple[str, list[LineChange]]]:
        left = 0  # lines of the current hunk still to come
        for raw in stream:
            if left > 0:
                left -= raw[:1] != b"\\"
            elif head := _HUNK.match(raw):
                left = self._hunk(head)
            elif _NAME.fullmatch(raw):
                if self.sha is not None:
                    yield self.sha, self.found
                self.sha, self.found = raw.strip().decode(), []
            else:
                self._header(raw)
        if self.sha is not None:
            yield self.sha, self.found

    def _hunk(self, head: re.Match[bytes]) -> int:
        removed, first, added = int(head[2] or 1), int(head[3]), int(head[4] or 1)
        if self.change is not None:
            self.change.hunks.append((first, added, int(head[1]), removed))
            self.change.removed += removed
            if added:
                self.change.added.append((first, added))
        return removed + added

    def _header(self, raw: bytes) -> None:
        if raw.startswith(b":"):
            self.found.append(_listed(raw))
        elif raw.startswith(b"diff --git "):
            self.change = next(self.parts, None)
        elif raw.startswith(b"Binary files ") and self.change is not None:
            self.change.binary = True
        elif raw == b"\n":
            self.parts = _patched(self.found)


def _patched(found: list[LineChange]) -> Iterator[LineChange]:
    """Yield the file of each part of the patch; a file that became a link has two parts, the
    second of which counts."""
    for change in found:
        yield change
        if change.status == "T":
            yield change


def _listed(raw: bytes) -> LineChange:
    about, *names = raw.rstrip(b"\n").split(b"\t")
    _, mode, old_blob, blob, status = about.lstrip(b":").split(b" ")
    paths = [unquote_name(name) for name in names]
    return LineChange(
        path=paths[-1],
        old_path=paths[0] if len(paths) > 1 else None,
        status=status[:1].decode(),
        old_blob=old_blob.decode(),
        blob=blob.decode(),
        plain=mode in _FILES,
        added=[],
        hunks=[],
    )


# -- texts ---------------------------------------------------------------------------------------


def read_texts(folder: GitPlace, names: Iterable[str]) -> dict[str, str]:
    """Return the texts of files, by the names they were asked by: blobs, or `commit:path`. What is
    no text, too large or not there is left out."""
    asked = [name for name in dict.fromkeys(names) if name.strip("0") and "\n" not in name]
    if not asked:
        return {}
    given = "".join(f"{name}\n" for name in asked).encode("utf-8", "surrogateescape")
    found: dict[str, str] = {}
    with run.stream(folder, ["cat-file", "--batch"], given=given) as git:
        for name in asked:
            data = _object(git.lines)
            if data is not None and b"\0" not in data[:_BINARY]:
                found[name] = data.decode("utf-8", "replace")
    return found


def _object(lines: IO[bytes]) -> bytes | None:
    """Read the next answer; None if it is no file, or too large."""
    head = lines.readline().split()
    if len(head) != 3 or not head[2].isdigit():
        return None
    size = int(head[2])
    wanted = head[1] == b"blob" and size <= BLOB_MAX
    data = lines.read(size) if wanted else b""
    left = 0 if wanted else size
    while left > 0:
        left -= len(lines.read(min(left, 1 << 20)) or b" " * left)
    lines.readline()
    return data if wanted else None
