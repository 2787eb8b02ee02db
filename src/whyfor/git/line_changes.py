"""Which lines commits add to which files, by their numbers; and the texts of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import msgspec

from whyfor.git import run
from whyfor.git.history import PLAIN_MODES, FileChange, hunk_places, unquote_name
from whyfor.git.place import GitPlace

BLOB_MAX = 8 << 20  # bytes of a file; the lines of a larger one are not read
_BINARY = 8000  # bytes in which a NUL says that a file is no text, as git looks for it
_DIFF = tuple(
    "diff-tree --stdin --always --root -r --raw -p -U0 -M -l400 --full-index --abbrev=40 "
    "--no-color --no-ext-diff --no-textconv --submodule=short --src-prefix=a/ "
    "--dst-prefix=b/".split()
)
# As `git diff --numstat` counts: it looks for renames among this many files.
_COUNTED = {"-U0": "-U1", "-l400": "-l1000"}
_NAME = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\n")


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

    @classmethod
    def of(cls, change: FileChange) -> LineChange:
        """Return the same of a change whose lines were read."""
        made = cls(
            path=change.path,
            old_path=change.old_path,
            status=change.status,
            old_blob=change.old_blob,
            blob=change.blob,
            plain=change.plain,
            added=[],
            hunks=[],
        )
        for hunk in change.hunks:
            made.add_hunk(hunk)
        return made

    def add_hunk(self, hunk: tuple[int, int, int, int]) -> None:
        first, plus, _, minus = hunk
        self.hunks.append(hunk)
        self.removed += minus
        if plus:
            self.added.append((first, plus))

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
    options = [f"-S{containing}"] if containing else []
    yield from _commits(folder, shas, [*_DIFF, *options], _ChangeReader())


def read_counted_changes(
    folder: GitPlace, shas: Iterable[str]
) -> Iterator[tuple[str, list[LineChange]]]:
    """Yield the same with the lines that `git show --numstat` counts. Where a change can be read in
    two ways, git reads it otherwise if no lines around it are asked for, as `git blame` does."""
    yield from _commits(folder, shas, _counted(_DIFF), _CountingReader())


def _commits(
    folder: GitPlace, shas: Iterable[str], command: Sequence[str], reader: _ChangeReader
) -> Iterator[tuple[str, list[LineChange]]]:
    wanted = "".join(f"{sha}\n" for sha in dict.fromkeys(shas)).encode()
    if wanted:
        with run.stream(folder, command, given=wanted) as git:
            yield from reader.read(git.lines)


def _counted(options: Iterable[str]) -> list[str]:
    return [_COUNTED.get(option, option) for option in options]


def compare_trees(
    folder: GitPlace, old: str, new: str, paths: Sequence[str], *, counted: bool = False
) -> list[LineChange]:
    """Return the files in which two commits differ, below these paths if there are any; with
    `counted`, the lines that `git diff --numstat` counts."""
    options = [option for option in _DIFF if option not in ("--stdin", "--always", "--root")]
    literal = [f":(literal){path}" for path in paths]
    command = [*(_counted(options) if counted else options), old, new, "--", *literal]
    with run.stream(folder, command, given=b"") as git:
        reader = _CountingReader() if counted else _ChangeReader()
        reader.sha = new
        return [change for _, found in reader.read(git.lines) for change in found]


def compare_index(folder: GitPlace, commit: str) -> list[LineChange]:
    """Return the files in which the index differs from a commit. No file is read: what is staged
    are objects."""
    left_out = ("diff-tree", "--stdin", "--always", "--root", "-r")
    options = [option for option in _DIFF if option not in left_out]
    command = ["diff-index", "--cached", *options, commit]
    with run.stream(folder, command, given=b"", index=True) as git:
        reader = _ChangeReader()
        reader.sha = commit
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
                left -= self._line(raw)
            elif raw.startswith(b"@@ "):
                left = self._hunk(raw)
            elif _NAME.fullmatch(raw):
                if self.sha is not None:
                    yield self.sha, self.found
                self.sha, self.found = raw.strip().decode(), []
            else:
                self._header(raw)
        if self.sha is not None:
            yield self.sha, self.found

    def _line(self, raw: bytes) -> int:
        """Return how many lines of the two texts a line of a hunk is."""
        return raw[:1] != b"\\"

    def _hunk(self, head: bytes) -> int:
        hunk = hunk_places(head)
        if self.change is not None:
            self.change.add_hunk(hunk)
        return hunk[1] + hunk[3]

    def _header(self, raw: bytes) -> None:
        if raw.startswith(b":"):
            self.found.append(_listed(raw))
        elif raw.startswith(b"diff --git "):
            self.change = next(self.parts, None)
        elif raw.startswith(b"Binary files ") and self.change is not None:
            self.change.binary = True
        elif raw == b"\n":
            self.parts = _patched(self.found)


class _CountingReader(_ChangeReader):
    """Reads the same with lines around each change."""

    def __init__(self) -> None:
        super().__init__()
        self.new = self.old = 0  # the next lines of both texts
        self.block: tuple[int, int, int, int] | None = None  # the change that is being read

    def _hunk(self, head: bytes) -> int:
        first, plus, gone, minus = hunk_places(head)
        # where nothing stands, git names the line before
        self.new = first if plus else first + 1
        self.old = gone if minus else gone + 1
        return plus + minus

    def _line(self, raw: bytes) -> int:
        sign = raw[:1]
        if sign == b"\\":
            return 0
        if sign in (b"+", b"-"):
            first, plus, gone, minus = self.block or (self.new, 0, self.old, 0)
            came = sign == b"+"
            self.block = (first, plus + came, gone, minus + (not came))
            self.new += came
            self.old += not came
            return 1
        self._end_block()
        self.new += 1
        self.old += 1
        return 2

    def _end_block(self) -> None:
        if self.block is not None and self.change is not None:
            first, plus, gone, minus = self.block
            self.change.add_hunk((first - (not plus), plus, gone - (not minus), minus))
        self.block = None

    def read(self, stream: Iterable[bytes]) -> Iterator[tuple[str, list[LineChange]]]:
        yield from super().read(self._with_ends(stream))

    def _with_ends(self, stream: Iterable[bytes]) -> Iterator[bytes]:
        """End the change that is being read before the next hunk, file or commit begins."""
        for raw in stream:
            if self.block is not None and raw[:1] not in (b"+", b"-", b" ", b"\\"):
                self._end_block()
            yield raw
        self._end_block()


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
        plain=mode in PLAIN_MODES,
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
