"""What a call of an editing tool asks for, in every form the agents use: replaced text, whole
files, patches, changes by path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from whyfor.agents.tools import argument_names, command_of

PATCH = "*** Begin Patch"
_END = "*** End Patch"
_HEAD = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$")
# The line's start is checked after `*** `: beginning with a literal, the search is four times as
# fast.
_PATHS = re.compile(r"\*\*\* (?<![^\n]....)(?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.M)
_WHAT = {"Add File": "add", "Update File": "update", "Delete File": "delete"}


class AskedEdit(msgspec.Struct, frozen=True):
    """One edit: the text that goes, the text that comes; or the whole file."""

    old: str
    new: str
    whole: str | None
    every: bool = False  # everywhere the old text stands
    line: int | None = None  # the new text comes after this line


class AskedChange(msgspec.Struct):
    """What a patch, or an account of one, says of a file."""

    path: str
    what: str  # add | update | delete
    moved_to: str = ""
    lines: list[str] = []  # each after its sign
    diff: str = ""  # or a unified diff
    content: str | None = None  # or all of the file


def first_text(given: Any, *names: str) -> str:
    """The first of these arguments that is a text; empty if none is."""
    if not isinstance(given, dict):
        return ""
    return next((given[name] for name in names if isinstance(given.get(name), str)), "")


def path_in(given: Any) -> str:
    """The file that a call names; empty if it names none."""
    return first_text(given, *argument_names().path)


def is_edit(given: Any, text: str) -> bool:
    """Return whether a call with these arguments, or this text, edits files."""
    if PATCH in text:
        return True
    if not isinstance(given, dict):
        return False
    if changes_in(given) is not None:
        return True
    names = argument_names()
    asked = (*names.old, *names.new, *names.whole, *names.edits)
    asks = any(name in given for name in asked)
    return asks and any(name in given for name in names.path)


def asked_edits(given: dict[str, Any]) -> list[AskedEdit]:
    """The edits of one file that a call asks for: a list of them, or itself."""
    names = argument_names()
    lists = (given.get(name) for name in names.edits)
    several = next((each for each in lists if isinstance(each, list)), [given])
    return [_asked(piece) for piece in several if isinstance(piece, dict)]


def _asked(piece: dict[str, Any]) -> AskedEdit:
    names = argument_names()
    wholes = (piece[name] for name in names.whole if isinstance(piece.get(name), str))
    lines = (piece.get(name) for name in names.line)
    return AskedEdit(
        first_text(piece, *names.old),
        first_text(piece, *names.new),
        next(wholes, None),
        every=any(piece.get(name) is True for name in names.every),
        line=next((line for line in lines if isinstance(line, int)), None),
    )


def patch_in(given: Any) -> str:
    """The text of the patch that a call is given, or what else it is given as text."""
    if isinstance(given, str):
        return given
    return first_text(given, *argument_names().patch) or command_of(given)


def patched_files(text: str) -> Iterator[AskedChange]:
    """The files of a patch in Codex's own format: `*** Update File: path`, then signed lines."""
    change: AskedChange | None = None
    for line in text.split("\n"):
        head = _HEAD.match(line.rstrip("\r"))
        if head is not None and head[1] in _WHAT:
            if change is not None:
                yield change
            change = AskedChange(head[2].strip(), _WHAT[head[1]], lines=[])
        elif change is None:
            continue
        elif head is not None:
            change.moved_to = head[2].strip()
        elif line.startswith(_END):
            yield change
            change = None
        elif not line.startswith("*** "):
            change.lines.append(line)
    if change is not None:
        yield change


def patched_paths(text: str) -> list[str]:
    """The files that a patch names, in its order; one may be named more than once."""
    return _PATHS.findall(text)


def changes_in(given: Any) -> dict[str, Any] | None:
    """What a call says of each file it changes, by path; None if it says it in another way."""
    if not isinstance(given, dict):
        return None
    found = (given.get(name) for name in argument_names().changes)
    return next((changes for changes in found if isinstance(changes, dict)), None)


def written_paths(given: Any, text: str) -> list[str]:
    """The files that a call asks to change; none if it is no edit."""
    if not is_edit(given, text):
        return []
    changes = changes_in(given)
    if changes is not None:
        return [str(path) for path in changes]
    path = path_in(given)
    return patched_paths(text) or ([path] if path else [])


def told_changes(changes: dict[str, Any]) -> Iterator[AskedChange]:
    """Codex's account of a patch: by path an addition, a removal or a diff; newer ones say
    `type`, older nest."""
    for path, told in changes.items():
        if not isinstance(told, dict):
            continue
        kind = str(told.get("type") or next(iter(told), None))
        inner = told if "type" in told else told.get(kind)
        yield AskedChange(
            path,
            kind,
            first_text(inner, "move_path"),
            diff=first_text(inner, "unified_diff"),
            content=first_text(inner, "content"),
        )
