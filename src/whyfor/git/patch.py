"""Read the change of a commit for display: files, hunks, lines with their numbers. Limited in size
and in time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from whyfor.git import run
from whyfor.git.place import GitPlace

MOST = 6 << 20  # bytes of a diff that are read; what comes after is counted by its file only
SECONDS = 8.0
LINE_MAX = 2000  # characters of one line: a minified file has one
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_DIFF = tuple(
    "diff-tree --root -r --no-commit-id --raw --numstat -p -U3 -M -l400 -z --full-index --no-color "
    "--no-ext-diff --no-textconv --submodule=short --src-prefix=a/ --dst-prefix=b/".split()
)


class PatchLine(msgspec.Struct, frozen=True):
    sign: str  # + - or a space
    old: int | None
    new: int | None
    text: str


class Hunk(msgspec.Struct, frozen=True):
    old: tuple[int, int]  # first line, how many
    new: tuple[int, int]
    about: str  # what git takes for the function it is in
    lines: list[PatchLine]

    @property
    def added(self) -> int:
        return sum(line.sign == "+" for line in self.lines)

    @property
    def head(self) -> str:
        return f"@@ −{self.old[0]},{self.old[1]} +{self.new[0]},{self.new[1]} @@"


class PatchFile(msgspec.Struct, frozen=True):
    path: str
    old_path: str | None
    status: str  # git's letter
    added: int | None  # none: a binary file
    removed: int | None
    hunks: list[Hunk]
    whole: bool = True  # all of its hunks are here


class Patch(msgspec.Struct, frozen=True):
    files: list[PatchFile]
    whole: bool  # nothing was too large, or took too long


def patch(folder: GitPlace, sha: str) -> Patch:
    """Return what a commit changes against its parent; a merge has none of its own."""
    raw, whole = run.read_output(folder, [*_DIFF, sha], most=MOST, seconds=SECONDS)
    fields, _, body = raw.partition(b"\0\0")
    if not body:
        fields = fields.rstrip(b"\0")
    bodies = iter(_bodies(body))
    files = []
    for listed in _listed(fields.decode("utf-8", "replace").split("\0")):
        hunks = list(next(bodies, []))
        if listed.status == "T":  # a file that became a link, or a link a file: two parts
            hunks += next(bodies, [])
        added = sum(hunk.added for hunk in hunks)
        complete = whole or added == listed.added
        files.append(msgspec.structs.replace(listed, hunks=hunks, whole=complete))
    return Patch(files, whole)


def _listed(fields: list[str]) -> list[PatchFile]:
    """Return the files without their hunks: raw entries (status, names) come first, then counts
    of the same files in the same order."""
    found: list[PatchFile] = []
    counts: list[tuple[int | None, int | None]] = []
    rest = iter(fields)
    for field in rest:
        if field.startswith(":"):
            status = field.rsplit(" ", 1)[1][:1]
            old = next(rest, "") if status in "RC" else None
            found.append(PatchFile(next(rest, ""), old, status, None, None, []))
        elif field.count("\t") >= 2:
            added, removed, name = field.split("\t", 2)
            counts.append((_count(added), _count(removed)))
            if not name:  # a rename's two names follow
                next(rest, None)
                next(rest, None)
    for at, (added_lines, removed_lines) in enumerate(counts[: len(found)]):
        found[at] = msgspec.structs.replace(found[at], added=added_lines, removed=removed_lines)
    return found


def _count(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _bodies(body: bytes) -> list[list[Hunk]]:
    """Return the hunks of each file, in the order the files are listed in."""
    found: list[list[Hunk]] = []
    rest = iter(body.split(b"\n"))
    for raw in rest:
        if raw.startswith(b"diff --git "):
            found.append([])
        elif raw.startswith(b"@@ ") and found:
            head = _HUNK.match(raw.decode("utf-8", "replace"))
            if head is not None:
                found[-1].append(_hunk(head, rest))
    return found


def _hunk(head: re.Match[str], rest: Iterator[bytes]) -> Hunk:
    """Read a hunk's lines. They are counted: inside a hunk nothing is a header."""
    old, old_count, new, new_count = map(int, head.groups("1")[:4])
    at, to = old, new
    lines: list[PatchLine] = []
    while at < old + old_count or to < new + new_count:
        raw = next(rest, None)
        if raw is None:
            break
        sign = raw[:1].decode("ascii", "replace") or " "
        if sign == "\\":
            continue
        text = raw[1:].removesuffix(b"\r").decode("utf-8", "replace")[:LINE_MAX]
        here = at if sign != "+" else None
        there = to if sign != "-" else None
        lines.append(PatchLine(sign, here, there, text))
        at += here is not None
        to += there is not None
    return Hunk((old, old_count), (new, new_count), head[5], lines)
