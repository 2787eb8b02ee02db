"""`git blame`, asked of commits only: for a file of the work tree git would run the filters that a
repository names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from whyfor.git import run
from whyfor.git.history import unquote_name
from whyfor.git.place import GitPlace
from whyfor.model.errors import BadInput, NotFound

SECONDS = 120.0
_ENTRY = re.compile(rb"(\d{6}) (\w+) ([0-9a-f]+)\t")
_HEAD = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) (\d+) (\d+)(?: (\d+))?\n")
_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
_SYMLINK, _SUBMODULE = b"120000", b"160000"
# How a refusal of git begins that is about what the user asked for.
_LIST = re.compile(r"fatal: (?:invalid object name|could not open object name list)")
_RANGE = re.compile(r"fatal: (?:-L|file .* has only|.*argument)")
_WIDE_NAME = re.compile(rb"^(?:filename|previous \w+) [^\n]*[\x80-\xff]", re.MULTILINE)


class BlameOptions(msgspec.Struct, frozen=True):
    """Options that git takes as they are."""

    ranges: tuple[str, ...] = ()  # -L
    ignore_space: bool = False  # -w
    moved: str | None = None  # -M; empty without a number
    copied: tuple[str, ...] = ()  # -C, as often as it was given
    ignored: tuple[str, ...] = ()  # --ignore-rev
    ignored_files: tuple[str, ...] = ()  # --ignore-revs-file

    def arguments(self, *, ranges: bool = True) -> list[str]:
        """Return them for the command line. Each value is part of its option, so that none can be
        taken for another."""
        found = [f"-L{text}" for text in self.ranges] if ranges else []
        if self.ignore_space:
            found.append("-w")
        if self.moved is not None:
            found.append(f"-M{self.moved}")
        found += [f"-C{number}" for number in self.copied]
        found += [f"--ignore-rev={name}" for name in self.ignored]
        found += [f"--ignore-revs-file={name}" for name in self.ignored_files]
        return found


class BlamedCommit(msgspec.Struct):
    """What git says of a commit beside its lines."""

    sha: str
    author: str = ""
    mail: str = ""
    time: int = 0  # seconds
    summary: str = ""


class BlamedLine(msgspec.Struct, frozen=True):
    """One line: which commit it comes from, and where it stood there."""

    commit: BlamedCommit
    path: str
    old: int  # its number in that commit
    line: int  # its number now
    text: str


class TreeFile(msgspec.Struct, frozen=True):
    """A file of a commit."""

    commit: str
    path: str
    blob: str


def find_file(folder: GitPlace, commit: str, path: str) -> TreeFile | None:
    """Return the file at a path of a commit; None if there is none. Raises BadInput for what is no
    file: a directory, a link, a submodule."""
    done = run.run_git(folder, "ls-tree", "-z", commit, "--", path, variables=_LITERAL)
    found = _ENTRY.match(done.out)
    if not done.ok or found is None:
        return None
    mode, kind, blob = found.groups()
    if kind == b"tree":
        raise BadInput(f"{path} is a directory", "Name a file in it.")
    if mode == _SUBMODULE or kind == b"commit":
        raise BadInput(f"{path} is a submodule", "Ask inside it: its commits are there.")
    if mode == _SYMLINK:
        raise BadInput(f"{path} is a symbolic link", "Name the file that it points to.")
    return TreeFile(commit, path, blob.decode())


def blame_porcelain(
    folder: GitPlace, commit: str, path: str, arguments: Sequence[str], form: str = "--porcelain"
) -> bytes:
    """Return what `git blame` prints of a file of a commit, for programs. Raises BadInput for
    options that git refuses, NotFound if it cannot read the file."""
    command = ["blame", form, "--no-textconv", *arguments, commit, "--", path]
    done = run.run_git(folder, *command, seconds=SECONDS, variables=_LITERAL)
    if done.ok:
        return done.out
    raise _refusal(path, done)


def quoted_porcelain(
    folder: GitPlace, commit: str, path: str, arguments: Sequence[str], form: str
) -> bytes:
    """Return the same with names of files quoted as the user's git quotes them."""
    data = blame_porcelain(folder, commit, path, arguments, form)
    if _WIDE_NAME.search(data) is None:
        return data
    if run.ask(folder, "config", "--type=bool", "core.quotePath") == "false":
        return data
    command = ["blame", form, "--no-textconv", *arguments, commit, "--", path]
    quoted = ("-c", "core.quotePath=true", *command)
    done = run.run_git(folder, *quoted, seconds=SECONDS, variables=_LITERAL)
    return done.out if done.ok else data


def _refusal(path: str, done: run.Answer) -> BadInput | NotFound:
    """Return what to say of a refusal of git."""
    said = done.err.decode("utf-8", "replace").splitlines()
    reason = next((line for line in said if line.startswith("fatal: ")), done.complaint)
    if _LIST.match(reason):
        return BadInput(
            "git cannot read a list of commits to ignore",
            "See: git config --show-origin blame.ignoreRevsFile, and --ignore-revs-file",
        )
    if reason.startswith("usage: "):
        return BadInput("git does not understand these options", "See: whyfor blame --help")
    if done.code is None or not _RANGE.match(reason):
        return NotFound(f"git cannot blame {path}: {reason}", "See: git log -- FILE")
    said_short = reason.removeprefix("fatal: ")
    return BadInput(f"git cannot show these lines: {said_short}", "See: whyfor blame --help")


def read_porcelain(data: bytes) -> Iterator[BlamedLine]:
    """Yield the lines of `--porcelain` or `--line-porcelain`."""
    commits: dict[str, BlamedCommit] = {}
    paths: dict[str, str] = {}
    commit = BlamedCommit("")
    old = line = 0
    for raw in _split(data):
        if raw.startswith(b"\t"):
            text = raw[1:].rstrip(b"\r\n").decode("utf-8", "replace")
            yield BlamedLine(commit, paths.get(commit.sha, ""), old, line, text)
        elif head := _HEAD.fullmatch(raw):
            sha = head[1].decode()
            commit = commits.setdefault(sha, BlamedCommit(sha))
            old, line = int(head[2]), int(head[3])
        else:
            _detail(commit, paths, raw)


def _split(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def _detail(commit: BlamedCommit, paths: dict[str, str], raw: bytes) -> None:
    name, _, value = raw.rstrip(b"\n").partition(b" ")
    text = value.decode("utf-8", "replace")
    if name == b"author":
        commit.author = text
    elif name == b"author-mail":
        commit.mail = text
    elif name == b"author-time" and text.isdigit():
        commit.time = int(text)
    elif name == b"summary":
        commit.summary = text
    elif name == b"filename":
        paths[commit.sha] = unquote_name(value)
