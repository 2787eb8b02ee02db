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
_DIFF = (
    *(
        "diff-tree",
        "--root",
        "-r",
        "--no-commit-id",
        "--raw",
        "--numstat",
        "-p",
        "-U3",
        "-M",
        "-l400",
        "-z",
    ),
    *("--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
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
    """Return the change against the first parent; empty for a merge."""
    raw, whole = run.read(folder, [*_DIFF, sha], most=MOST, seconds=SECONDS)
    fields, _, body = raw.partition(b"\0\0")
    if not body:
        fields = fields.rstrip(b"\0")
    listed = (
        _listed([part.decode("utf-8", "replace") for part in fields.split(b"\0")]) if fields else []
    )
    bodies = iter(_bodies(body))
    files = []
    for status, old, path, added, removed in listed:
        # A file that became a link, or the reverse, is two parts of the patch.
        parts = [hunk for _ in range(2 if status == "T" else 1) for hunk in next(bodies, [])]
        told = sum(line.sign == "+" for hunk in parts for line in hunk.lines)
        files.append(PatchFile(path, old, status, added, removed, parts, whole or told == added))
    return Patch(files, whole)


def _listed(fields: list[str]) -> list[tuple[str, str | None, str, int | None, int | None]]:
    """Parse raw entries (status, names), followed by the counts of the same files in the same
    order."""
    found: list[tuple[str, str | None, str]] = []
    rest = iter(fields)
    counts: list[tuple[int | None, int | None]] = []
    for field in rest:
        if field.startswith(":"):
            status = field.rsplit(" ", 1)[1][:1]
            first = next(rest, "")
            found.append(
                (status, first, next(rest, "")) if status in "RC" else (status, None, first)
            )
        elif field.count("\t") >= 2:
            added, removed, name = field.split("\t", 2)
            counts.append((_count(added), _count(removed)))
            if not name:  # a rename's two names follow
                next(rest, None)
                next(rest, None)
    counts += [(None, None)] * (len(found) - len(counts))
    return [(*entry, *count) for entry, count in zip(found, counts, strict=False)]


def _count(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _bodies(body: bytes) -> list[list[Hunk]]:
    """Return the hunks of each file, in the order of the file list."""
    found: list[list[Hunk]] = []
    rest = iter(body.split(b"\n"))
    for raw in rest:
        if raw.startswith(b"diff --git "):
            found.append([])
        elif (
            raw.startswith(b"@@ ")
            and found
            and (head := _HUNK.match(raw.decode("utf-8", "replace")))
        ):
            found[-1].append(_hunk(head, rest))
    return found


def _hunk(head: re.Match[str], rest: Iterator[bytes]) -> Hunk:
    """Parse one hunk by counting its lines: inside a hunk nothing is a header."""
    old, old_count, new, new_count = (
        int(part) if part is not None else 1 for part in head.groups()[:4]
    )
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
        lines.append(
            PatchLine(sign, at if sign != "+" else None, to if sign != "-" else None, text)
        )
        at += sign != "+"
        to += sign != "-"
    return Hunk((old, old_count), (new, new_count), head[5], lines)
