"""Which lines a tool call put into which files and took out of them, in every shape the agents
tell it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from whyfor.agents.edits import (
    PATCH,
    AskedChange,
    asked_edits,
    changes_in,
    first_text,
    patch_in,
    patched_files,
    path_in,
    told_changes,
)
from whyfor.story.lines.text_edits import notebook_lines
from whyfor.story.links.line_keys import WIDTH, keys
from whyfor.story.shell import absolute, effects

_Line = TypeVar("_Line", str, bytes)
Contents = dict[str, bytes]  # what is known of files that were written as a whole


class Edit(msgspec.Struct, frozen=True):
    """One file: keys of the lines put in and taken out."""

    path: str
    added: bytes = b""
    removed: bytes = b""
    # edit | whole (all of the file; what was there before is not known) | gone | moved
    kind: str = "edit"
    old: str | None = None  # where a moved file was


# -- through the shell ---------------------------------------------------------------------------


def by_shell(command: str, cwd: str, contents: Contents, *, failed: bool) -> Iterator[Edit]:
    """Of a command that failed in the end, what it wrote on the way still stands."""
    for effect in effects(command, cwd):
        if effect.kind == "wrote":
            yield _whole(contents, effect.path, effect.lines)
        elif effect.kind in ("added", "script", "touched"):
            yield Edit(effect.path, keys(effect.lines))
        elif not failed:
            contents.pop(effect.old or effect.path, None)
            yield Edit(effect.path, kind=effect.kind, old=effect.old)


def _whole(contents: Contents, path: str, lines: Iterable[str]) -> Edit:
    """All lines of a file; new are those it did not have when the session last wrote it as a
    whole."""
    now = keys(lines)
    before = contents.get(path)
    contents[path] = now
    if before is None:
        return Edit(path, now, kind="whole")
    added, removed = _difference(_split(before), _split(now))
    return Edit(path, b"".join(added), b"".join(removed))


def _split(packed: bytes) -> list[bytes]:
    return [packed[at : at + WIDTH] for at in range(0, len(packed), WIDTH)]


# -- through a tool ------------------------------------------------------------------------------


def by_tool(given: Any, outcome: dict[str, Any], cwd: str, contents: Contents) -> Iterator[Edit]:
    """The patch the program kept of it is exact; else what the call asked for."""
    path = absolute(path_in(given) or first_text(outcome, "path"), cwd)
    text = patch_in(given)
    if PATCH in text:
        for file in patched_files(text):
            yield from _patched(file, cwd)
    elif (changes := changes_in(given)) is not None:
        for file in told_changes(changes):
            yield from _told(file, cwd)
    elif isinstance(outcome.get("patch"), list) and path:
        lines = [
            line
            for hunk in outcome["patch"]
            if isinstance(hunk, dict)
            for line in hunk.get("lines") or []
        ]
        yield _signed(path, [line for line in lines if isinstance(line, str)])
    elif isinstance(outcome.get("diff"), str) and outcome["diff"]:
        yield from _unified(outcome["diff"], path, cwd)
    elif path and isinstance(given, dict):
        yield from _asked(path, given, contents)


def _signed(path: str, lines: Sequence[str]) -> Edit:
    """Lines of a diff, each after its sign."""
    added, removed = (keys(line[1:] for line in lines if line[:1] == sign) for sign in "+-")
    return Edit(path, added, removed)


def _asked(path: str, given: dict[str, Any], contents: Contents) -> Iterator[Edit]:
    for asked in asked_edits(given):
        old, new, whole = asked.old, asked.new, asked.whole
        if path.endswith(".ipynb") and new:
            yield Edit(path, keys(notebook_lines(new)))
        elif whole is not None and not old:
            yield _whole(contents, path, whole.split("\n"))
        elif old or new:
            added, removed = _difference(old.split("\n"), new.split("\n"))
            yield Edit(path, keys(added), keys(removed))


def _unified(diff: str, path: str, cwd: str) -> Iterator[Edit]:
    """A unified diff of one file or several; if the call does not name the file, the diff does."""
    at, lines = path, list[str]()
    for line in diff.split("\n"):
        if line.startswith("+++ ") and lines and lines[-1].startswith("--- "):
            lines.pop()
            yield from _hunks(at, lines)
            name = line[4:].split("\t")[0].strip()
            at, lines = path or absolute(re.sub(r"^[ab]/", "", name), cwd), []
        else:
            lines.append(line)
    yield from _hunks(at, lines)


def _hunks(path: str, lines: list[str]) -> Iterator[Edit]:
    """What stands before the first hunk are headers."""
    start = next((number for number, line in enumerate(lines) if line.startswith("@@")), None)
    if path and start is not None:
        yield _signed(path, lines[start:])


def edit_of_diff(path: str, hunks: str) -> Edit:
    """Return the edit of one file from the hunks of a unified diff."""
    return _signed(path, hunks.split("\n"))


def _patched(file: AskedChange, cwd: str) -> Iterator[Edit]:
    """A file of a patch."""
    path = absolute(file.path, cwd)
    if file.moved_to:
        moved = absolute(file.moved_to, cwd)
        yield Edit(moved, kind="moved", old=path)
        path = moved
    yield Edit(path, kind="gone") if file.what == "delete" else _signed(path, file.lines)


def _told(file: AskedChange, cwd: str) -> Iterator[Edit]:
    """A file of an account of changes."""
    path = absolute(file.path, cwd)
    if file.moved_to:
        moved = absolute(file.moved_to, cwd)
        yield Edit(moved, kind="moved", old=path)
        path = moved
    if file.what == "delete":
        yield Edit(path, kind="gone")
    elif file.diff:
        yield from _unified(file.diff, path, cwd)
    else:
        yield Edit(path, keys((file.content or "").split("\n")))


def _difference(old: Sequence[_Line], new: Sequence[_Line]) -> tuple[list[_Line], list[_Line]]:
    before, after = Counter(old), Counter(new)
    return list((after - before).elements()), list((before - after).elements())
