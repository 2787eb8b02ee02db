"""The text of what a tool call changed in files, in every shape the agents tell it.

The files come in the same order as `story/links/edits.py` lists them, so that both can be laid
side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from whyfor.agents.edits import (
    PATCH,
    AskedChange,
    AskedEdit,
    asked_edits,
    changes_in,
    first_text,
    patch_in,
    patched_files,
    path_in,
    told_changes,
)
from whyfor.model.shell_edits import ShellEdits
from whyfor.story.shell import Effect, effects

NOTEBOOK = ".ipynb"
_NEW_HEAD = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")
_HEAD = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+")


class EditPiece(msgspec.Struct, frozen=True):
    """One place of a file: the lines that stood there, what stands there now."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int | None = None  # where the old lines began, from 1; None if it was not told
    every: bool = False  # all places with the old text change
    inline: bool = False  # the text begins and ends anywhere in a line


class TextEdit(msgspec.Struct, frozen=True):
    """What one call did to one file."""

    path: str
    pieces: tuple[EditPiece, ...] = ()
    whole: tuple[str, ...] | None = None  # the file from then on
    added: tuple[str, ...] | None = None  # put at its end
    loose: tuple[str, ...] = ()  # lines that it may have put somewhere
    old: str | None = None  # where a moved file was
    kind: str = "edit"  # edit | gone | moved | touched
    shell: bool = False
    seen: bool = False  # in the file itself: the lines around it were as it tells
    fresh: frozenset[int] | None = None  # of the whole, counted from 0, the lines that may be new


def text_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends, whichever they are; the last line may have
    none."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


# -- through the shell ---------------------------------------------------------------------------


def shell_texts(command: str, *, failed: bool) -> list[TextEdit]:
    """Return what a command wrote, as far as its text says."""
    found = []
    for effect in effects(command, ""):
        if effect.kind in ("gone", "moved") and failed:
            continue
        found.append(_shell_text(effect))
    return found


def _shell_text(effect: Effect) -> TextEdit:
    lines = tuple(line.removesuffix("\r") for line in effect.lines)
    if effect.kind == "wrote":
        return TextEdit(effect.path, whole=_without_last(lines), shell=True)
    if effect.kind == "added":
        return TextEdit(effect.path, added=_without_last(lines), shell=True)
    if effect.kind in ("gone", "moved"):
        return TextEdit(effect.path, old=effect.old, kind=effect.kind, shell=True)
    kind = "touched" if effect.kind == "touched" else "edit"
    return TextEdit(effect.path, loose=lines, kind=kind, shell=True)


def recorded_texts(told: ShellEdits) -> list[TextEdit]:
    """Return what a command changed, as it was seen."""
    found = []
    for file in told.files:
        path = f"{told.top}/{file.path}"
        if file.gone:
            found.append(TextEdit(path, kind="gone", shell=True))
        elif file.whole is not None:
            lines = tuple(text_lines(file.whole))
            fresh = _added_places(file.diff) if file.diff else None
            found.append(TextEdit(path, whole=lines, shell=True, seen=True, fresh=fresh))
        else:
            pieces = _pieces(file.diff.split("\n"))
            found.append(TextEdit(path, pieces, shell=True, seen=True))
    return found


def _added_places(diff: str) -> frozenset[int]:
    """The places of the lines that a unified diff adds, counted from 0."""
    found = set()
    at = 0
    for line in diff.split("\n"):
        if head := _NEW_HEAD.match(line):
            at = int(head[1]) - 1
        elif line[:1] == "+":
            found.add(at)
            at += 1
        elif line[:1] == " ":
            at += 1
    return frozenset(found)


def _without_last(lines: tuple[str, ...]) -> tuple[str, ...]:
    return lines[:-1] if lines and lines[-1] == "" else lines


# -- through a tool ------------------------------------------------------------------------------


def tool_texts(given: Any, outcome: dict[str, Any]) -> list[TextEdit]:
    """Return what a call of an editing tool changed: the patch the program kept of it is exact;
    else what the call asked for."""
    path = path_in(given) or first_text(outcome, "path")
    text = patch_in(given)
    if PATCH in text:
        return [edit for file in patched_files(text) for edit in _patched(file)]
    changes = changes_in(given)
    if changes is not None:
        return [edit for file in told_changes(changes) for edit in _told(file)]
    if isinstance(outcome.get("patch"), list) and path:
        return [TextEdit(path, _structured(outcome["patch"]))]
    if isinstance(outcome.get("diff"), str) and outcome["diff"]:
        return list(_unified(outcome["diff"], path))
    if path and isinstance(given, dict):
        return [edit for asked in asked_edits(given) for edit in _asked(path, asked)]
    return []


def _structured(hunks: list[Any]) -> tuple[EditPiece, ...]:
    """Hunks with their lines after a sign, as a program kept them."""
    found = []
    for hunk in hunks:
        if isinstance(hunk, dict):
            lines = [line for line in hunk.get("lines") or [] if isinstance(line, str)]
            start = hunk.get("oldStart")
            found.append(_signed(lines, start if isinstance(start, int) else None))
    return tuple(found)


def _signed(lines: Sequence[str], start: int | None = None) -> EditPiece:
    old: list[str] = []
    new: list[str] = []
    for line in lines:
        sign, text = line[:1], line[1:].removesuffix("\r")
        if sign == "\\":
            continue
        if sign != "+":
            old.append(text)
        if sign != "-":
            new.append(text)
    return EditPiece(tuple(old), tuple(new), start)


def _asked(path: str, asked: AskedEdit) -> Iterator[TextEdit]:
    old, new, whole = asked.old, asked.new, asked.whole
    if path.endswith(NOTEBOOK) and new:
        yield TextEdit(path, loose=tuple(notebook_lines(new)))
    elif whole is not None and not old:
        yield TextEdit(path, whole=tuple(text_lines(whole)))
    elif asked.line is not None and not old:
        yield TextEdit(path, (EditPiece((), tuple(text_lines(new)), asked.line + 1),))
    elif old or new:
        plain = [text.replace("\r\n", "\n").split("\n") for text in (old, new)]
        piece = EditPiece(tuple(plain[0]), tuple(plain[1]), every=asked.every, inline=True)
        yield TextEdit(path, (piece,))


def notebook_lines(source: str) -> list[str]:
    """Return a cell's lines as they stand in the file: strings of JSON, the last without a line
    end."""
    quoted = [msgspec.json.encode(line).decode() for line in source.split("\n")]
    return [f'{text[:-1]}\\n",' for text in quoted] + quoted[-1:]


def _unified(diff: str, path: str) -> Iterator[TextEdit]:
    """A unified diff of one file or several; if the call does not name the file, the diff does."""
    at, lines = path, list[str]()
    for line in diff.split("\n"):
        if line.startswith("+++ ") and lines and lines[-1].startswith("--- "):
            lines.pop()
            yield from _hunks(at, lines)
            name = line[4:].split("\t")[0].strip()
            at, lines = path or re.sub(r"^[ab]/", "", name), []
        else:
            lines.append(line)
    yield from _hunks(at, lines)


def _hunks(path: str, lines: list[str]) -> Iterator[TextEdit]:
    """What stands before the first hunk are headers."""
    start = next((at for at, line in enumerate(lines) if line.startswith("@@")), None)
    if path and start is not None:
        yield TextEdit(path, _pieces(lines[start:]))


def _pieces(lines: Sequence[str]) -> tuple[EditPiece, ...]:
    """The hunks of a patch; each begins with a line `@@`, which may say where it belongs."""
    found: list[EditPiece] = []
    hunk: list[str] = []
    start: int | None = None
    for line in [*lines, "@@"]:
        if not line.startswith("@@"):
            hunk.append(line)
            continue
        if any(text[:1] in ("+", "-") for text in hunk):
            found.append(_signed(_ended(hunk), start))
        head = _HEAD.match(line)
        start = int(head[1]) if head else None
        hunk = []
    return tuple(found)


def _ended(hunk: list[str]) -> list[str]:
    """Without what comes after the last line of a diff: an empty line has no sign."""
    while hunk and hunk[-1] == "":
        hunk = hunk[:-1]
    return hunk


def _patched(file: AskedChange) -> Iterator[TextEdit]:
    """A file of a patch."""
    path = file.path
    if file.moved_to:
        yield TextEdit(file.moved_to, kind="moved", old=path)
        path = file.moved_to
    if file.what == "delete":
        yield TextEdit(path, kind="gone")
    elif file.what == "add":
        lines = [line[1:].removesuffix("\r") for line in file.lines if line[:1] == "+"]
        yield TextEdit(path, whole=tuple(lines))
    else:
        yield TextEdit(path, _pieces(file.lines))


def _told(file: AskedChange) -> Iterator[TextEdit]:
    """A file of an account of changes."""
    path = file.path
    if file.moved_to:
        yield TextEdit(file.moved_to, kind="moved", old=path)
        path = file.moved_to
    if file.what == "delete":
        yield TextEdit(path, kind="gone")
    elif file.diff:
        yield from _unified(file.diff, path)
    else:
        yield TextEdit(path, whole=tuple(text_lines(file.content or "")))
