"""Read commits and their changes in batches: two git processes for a whole history, using plumbing
commands only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from whyfor.git import run
from whyfor.git.place import GitPlace
from whyfor.model.errors import BadInput
from whyfor.model.paths import to_name
from whyfor.model.stories import Commit as Commit

try:
    from _blake2 import blake2b  # hashlib would bring OpenSSL along
except ImportError:
    from hashlib import blake2b

# per commit; a commit with more lines is generated or vendored, and its size is enough
MAX_LINES = 50_000
_FIELDS = ("%H", "%P", "%an", "%ae", "%at", "%ct", "%s", "%b", "%cn", "%ce")
# NUL is the only byte that cannot occur in a name or a message.
_FORMAT = "".join(f"{field}%x00" for field in _FIELDS)
# Plumbing ignores most user settings (colours, external diffs, prefixes, submodules); these options
# turn off the rest.
_DIFF = tuple(
    "--stdin --always --root -r --raw -p -U0 --full-index --abbrev=40 --no-color "
    "--no-ext-diff --no-textconv --submodule=short --src-prefix=a/ --dst-prefix=b/".split()
)
_RENAMES = ("-M", "-l400")
PLAIN_MODES = (b"100644", b"100755")  # of files that are no links and no submodules
_PLUS, _MINUS, _AT, _BACKSLASH = b"+-@\\"
_PATHS = 48  # in one question: git compares each name in a tree with each of them
_HEX = re.compile(r"[0-9a-f]{4,64}")
_NAME = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\n")
_BLANKS = b" \t\r\v\f\x1c\x1d\x1e\x1f"  # what str.split() takes for white space, but the line's end
_ESCAPE = re.compile(rb'\\([abfnrtv"\\]|[0-7]{3})')
_PLAIN = dict(zip(b'abfnrtv"\\', b'\a\b\f\n\r\t\v"\\', strict=True))


class FileChange(msgspec.Struct):
    """The change of one file in a commit: lines up to a limit, counts in full. Lines are bytes as
    git has them, without their ends: of most nothing but a key is ever needed."""

    path: str
    old_path: str | None = None  # where it was before a rename
    status: str = "M"  # git's letter: A added, D deleted, M modified, R renamed, T another type
    added: list[bytes] = msgspec.field(default_factory=list)
    removed: list[bytes] = msgspec.field(default_factory=list)
    plus: int = 0
    minus: int = 0
    blob: str = ""  # what the file is after it
    # where in `added` each block of lines begins that stand together
    starts: list[int] = msgspec.field(default_factory=list)
    old_blob: str = ""  # what it was before
    plain: bool = True  # a file, not a link or a submodule
    # of each block its first line and how many come, the first that goes for them and how many
    hunks: list[tuple[int, int, int, int]] = msgspec.field(default_factory=list)


# -- commits -------------------------------------------------------------------------------------


class CommitLimits(msgspec.Struct, frozen=True):
    """More conditions on commits: a time in ms, a part of the author, paths from the top."""

    until: int | None = None
    author: str | None = None
    paths: tuple[str, ...] = ()

    def options(self) -> list[str]:
        found = []
        if self.until is not None:
            found.append(f"--min-age={self.until // 1000}")
        if self.author is not None:
            found += ["--fixed-strings", "--regexp-ignore-case", f"--author={self.author}"]
        return found


def commits(
    folder: GitPlace,
    revisions: Iterable[str],
    *,
    limit: int | None = None,
    since: int | None = None,
    among: CommitLimits | None = None,
) -> list[Commit]:
    """Return commits, oldest first, parents before children; `since` in ms, by committer date.

    With `limit`, return the newest by date only, because ordering by parents makes git walk the
    whole history.
    """
    asked = list(revisions)
    options = [name for name in asked if name.startswith("-")]
    if limit is not None:
        options = ["--reverse", f"--max-count={limit}", *options]
    elif not any(name.startswith("--no-walk") for name in options):
        options = ["--topo-order", "--reverse", *options]
    if since is not None:
        options.append(f"--max-age={since // 1000}")
    names = "".join(f"{name}\n" for name in asked if not name.startswith("-"))
    if among is not None:
        options += among.options()
        names += "".join(f"{line}\n" for line in ("--", *among.paths))
    done = _run(
        folder,
        ["rev-list", *options, "--encoding=UTF-8", f"--format={_FORMAT}", "--stdin"],
        names.encode("utf-8", "surrogateescape"),
    )
    if not done.ok:
        raise BadInput(
            f"git does not understand {' '.join(asked)[:200]!r}: {done.complaint}",
            "Give a commit, a branch, or a range such as main..HEAD.",
        )
    return _commits_of(done.text)


def _commits_of(text: str) -> list[Commit]:
    fields = text.split("\0")
    width = len(_FIELDS)
    return [_commit(fields[at : at + width]) for at in range(0, len(fields) - width + 1, width)]


def _commit(fields: Sequence[str]) -> Commit:
    sha, parents, author, email, authored, committed, subject, body, *committer = fields
    # The first field follows a line that repeats the commit's id.
    name = sha.rsplit("\n", 1)[-1]
    return Commit(
        name,
        tuple(parents.split()),
        author,
        email,
        _ms(authored),
        _ms(committed),
        subject,
        body.strip(),
        *committer,
    )


def _ms(seconds: str) -> int:
    """Return the time in ms; 0 for a damaged commit without a date."""
    return int(seconds) * 1000 if seconds.lstrip("-").isdigit() else 0


def head_commit(folder: GitPlace) -> str | None:
    return resolve_commits(folder, ["HEAD"]).get("HEAD")


def resolve_commits(folder: GitPlace, names: Iterable[str]) -> dict[str, str]:
    """Map abbreviated hashes to full ones; commits that no longer exist are left out."""
    asked = [name for name in names if name == "HEAD" or _HEX.fullmatch(name)]
    if not asked:
        return {}
    lines = "".join(f"{name}^{{commit}}\n" for name in asked).encode()
    done = _run(folder, ["cat-file", "--batch-check=%(objectname) %(objecttype)"], lines)
    found = {}
    for name, answer in zip(asked, done.text.splitlines(), strict=False):
        sha, *kind = answer.split(" ")
        if kind == ["commit"]:
            found[name] = sha
    return found


# -- what they change ----------------------------------------------------------------------------


def read_changes(folder: GitPlace, shas: Iterable[str]) -> Iterator[tuple[str, list[FileChange]]]:
    """Yield each commit with its changed files and lines; no files for merges and for the boundary
    of a shallow clone."""
    yield from _read(folder, dict.fromkeys(shas), _edge(folder), _RENAMES)


def read_file_changes(
    folder: GitPlace, wanted: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, list[FileChange]]]:
    """Yield each commit with the changes of some of its files, at least of those wanted: where a
    commit is large, that is far less. A renamed file is one that goes and one that comes."""
    edge = _edge(folder)
    for shas, paths in _bundles(wanted):
        options = ("--no-renames", "--", *(f":(literal){to_name(path)}" for path in paths))
        yield from _read(folder, shas, edge, options)


def read_changes_of(
    folder: GitPlace, shas: Sequence[str], paths: Sequence[str]
) -> Iterator[tuple[str, list[FileChange]]]:
    """Yield commits with the changes of the same files; a commit may come more than once, each
    time with other files."""
    for first in range(0, len(paths), _PATHS):
        few = paths[first : first + _PATHS]
        yield from read_file_changes(folder, dict.fromkeys(shas, few))


def _bundles(wanted: Mapping[str, Iterable[str]]) -> Iterator[tuple[list[str], set[str]]]:
    """Put commits together that are asked about at once, and the paths of all of them."""
    shas: list[str] = []
    paths: set[str] = set()
    for sha, own in wanted.items():
        both = paths.union(own)
        if shas and len(both) > _PATHS:
            yield shas, paths
            shas, both = [], set(own)
        shas.append(sha)
        paths = both
    if shas:
        yield shas, paths


def _read(
    folder: GitPlace, shas: Iterable[str], edge: set[str], options: Sequence[str]
) -> Iterator[tuple[str, list[FileChange]]]:
    wanted = list(shas)
    for sha in edge.intersection(wanted):
        yield sha, []
    left = [sha for sha in wanted if sha not in edge]
    while left:
        done = 0
        for sha, found in _diffed(folder, left, options):
            yield sha, found
            done = left.index(sha, done) + 1
        # Git stops at an object it cannot read (a damaged or partial clone). Only that commit stays
        # unknown.
        if done < len(left):
            yield left[done], []
        left = left[done + 1 :]


def changed_paths(folder: GitPlace, shas: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return by commit the paths that it changes, and of each git's letter: A, D, M, T. A renamed
    file goes and comes; merges and what git cannot read have none. Far cheaper than the changes
    themselves."""
    wanted = list(dict.fromkeys(shas))
    found: dict[str, dict[str, str]] = {sha: {} for sha in wanted}
    given = "".join(f"{sha}\n" for sha in wanted).encode()
    options = ("--stdin", "--always", "--root", "-r", "--name-status", "--no-renames", "-z")
    done = _run(folder, ["diff-tree", *options], given)
    current: dict[str, str] = {}
    fields = iter(done.text.split("\0"))
    for field in fields:
        if field in found:
            current = found[field]
        elif field:
            current[next(fields, "")] = field
    return found


def _edge(folder: GitPlace) -> set[str]:
    """Return the commits whose parents were not cloned: they seem to add every file."""
    done = _run(folder, ["rev-parse", "--path-format=absolute", "--git-path", "shallow"])
    try:
        return set(Path(os.fsdecode(done.out.rstrip(b"\n"))).read_text().split())
    except OSError:
        return set()


def _diffed(
    folder: GitPlace, shas: Sequence[str], options: Sequence[str]
) -> Iterator[tuple[str, list[FileChange]]]:
    """Yield only complete answers: a commit at which git stopped is left out."""
    wanted = "".join(f"{sha}\n" for sha in shas).encode()
    with run.stream(folder, ["diff-tree", *_DIFF, *options], given=wanted) as git:
        last: tuple[str, list[FileChange]] | None = None
        for found in _DiffReader().read(git.lines):
            if last is not None:
                yield last
            last = found
        if git.ok and last is not None:
            yield last


class _DiffReader:
    """Reads what `git diff-tree --raw -p` prints, line by line."""

    def __init__(self) -> None:
        self._begin(None)

    def _begin(self, sha: str | None) -> None:
        self.sha = sha
        self.found: list[FileChange] = []
        # the change each part of the patch belongs to, in the order of the raw lines
        self.parts: Iterator[FileChange] = iter(())
        self.change = FileChange("")
        self.budget = MAX_LINES

    def read(self, stream: Iterable[bytes]) -> Iterator[tuple[str, list[FileChange]]]:
        """Yield each commit and its files when all of its lines were read."""
        lines = iter(stream)
        for raw in lines:
            if raw.startswith(b"@@ "):
                raw = self._hunks(raw, lines)
            if _NAME.fullmatch(raw):
                if self.sha is not None:
                    yield self.sha, self.found
                self._begin(raw.strip().decode())
            else:
                self._header(raw)
        if self.sha is not None:
            yield self.sha, self.found

    def _hunks(self, head: bytes, lines: Iterator[bytes]) -> bytes:
        """Take the hunks of a file, from the head of the first on, and keep their lines as far as
        there is room. Return the line after them: the first without a sign."""
        change = self.change
        room = max(0, self.budget)
        added: list[bytes] = []
        removed: list[bytes] = []
        for raw in chain([head], lines):
            sign = raw[0]
            if sign == _PLUS:
                if len(added) < room:
                    added.append(raw)
            elif sign == _MINUS:
                if len(removed) < room:
                    removed.append(raw)
            elif sign == _AT:
                self._hunk(raw, len(change.added) + len(added))
            elif sign != _BACKSLASH:  # "\ No newline at end of file"
                break
        else:
            raw = b""
        change.removed += [line[1:].rstrip(b"\r\n") for line in removed]
        change.added += [line[1:].rstrip(b"\r\n") for line in added[: room - len(removed)]]
        return raw

    def _hunk(self, raw: bytes, start: int) -> None:
        hunk = hunk_places(raw)
        change = self.change
        change.hunks.append(hunk)
        change.starts.append(start)
        change.plus += hunk[1]
        change.minus += hunk[3]
        self.budget -= hunk[1] + hunk[3]

    def _header(self, raw: bytes) -> None:
        if raw.startswith(b":"):
            self.found.append(_listed(raw))
        elif raw.startswith(b"diff --git "):
            self.change = next(self.parts, self.change)
        elif raw == b"\n":
            self.parts = _patch_parts(self.found)


def _patch_parts(found: list[FileChange]) -> Iterator[FileChange]:
    """Yield the file of each part of a patch; a file that became a link, or the reverse, has two
    parts."""
    for change in found:
        yield change
        if change.status == "T":
            yield change


def _listed(raw: bytes) -> FileChange:
    """Parse a raw line: `:100644 100644 <sha> <sha> R087<tab>old<tab>new`."""
    about, *names = raw.rstrip(b"\n").split(b"\t")
    _, mode, old_blob, blob, status = about.split(b" ")
    paths = [unquote_name(name) for name in names]
    return FileChange(
        path=paths[-1],
        old_path=paths[0] if len(paths) > 1 else None,
        status=status[:1].decode(),
        blob=blob.decode(),
        old_blob=old_blob.decode(),
        plain=mode in PLAIN_MODES,
    )


def hunk_places(head: bytes) -> tuple[int, int, int, int]:
    """Parse `@@ -a,b +c,d @@`: return c, d, a, b; a count that is left out is 1."""
    _, old, new, _ = head.split(b" ", 3)
    first, _, plus = new.partition(b",")
    gone, _, minus = old.partition(b",")
    return int(first), int(plus or 1), -int(gone), int(minus or 1)


def unquote_name(name: bytes) -> str:
    """Decode a file name; git quotes names with unusual characters like C strings."""
    if name.startswith(b'"'):
        name = _ESCAPE.sub(
            lambda m: bytes([_PLAIN[m[1][0]] if len(m[1]) == 1 else int(m[1], 8)]), name[1:-1]
        )
    return name.decode("utf-8", "replace")


def patch_id(changed: Iterable[FileChange]) -> str | None:
    """Return a hash that is equal for equal changes: paths and lines, without positions and white
    space. None if nothing changed."""
    digest = blake2b(digest_size=16)
    empty = True
    for change in sorted(changed, key=lambda change: change.path):
        empty = False
        known = change.plus or change.minus or change.status == "R"
        blob = "" if known else change.blob  # a binary file has no lines to tell it by
        about = (change.old_path, change.path, change.plus, change.minus, blob)
        digest.update("\0".join(map(str, about)).encode("utf-8", "replace"))
        digest.update(_without_blanks(b"+", change.added))
        digest.update(_without_blanks(b"-", change.removed))
    return None if empty else digest.hexdigest()


def _without_blanks(sign: bytes, lines: list[bytes]) -> bytes:
    """The lines, each after its sign and without white space."""
    if not lines:
        return b""
    text = sign + (b"\n" + sign).join(lines) + b"\n"
    if text.isascii():
        return text.translate(None, _BLANKS)
    # the white space of all alphabets
    words = ("".join(line.decode("utf-8", "replace").split()) for line in lines)
    return "".join(f"{sign.decode()}{word}\n" for word in words).encode()


# -- asking --------------------------------------------------------------------------------------


def _run(folder: GitPlace, arguments: Sequence[str], given: bytes = b"") -> run.Answer:
    return run.run_git(folder, *arguments, given=given, seconds=run.LONG)
