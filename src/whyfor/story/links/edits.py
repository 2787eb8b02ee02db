"""Which lines a tool call put into which files and took out of them, in every shape the agents
tell it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from whyfor.story.links.line_keys import WIDTH, keys
from whyfor.story.shell import absolute, effects

PATCH = "*** Begin Patch"
_PATCH_FILE = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$")
PATHS = (
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "absolute_path",
    "relative_path",
    "target_file",
)
OLD = ("old_string", "oldString", "old_str", "old_text", "oldText")
NEW = ("new_string", "newString", "new_str", "new_text", "newText", "new_source", "body")
WHOLE = ("content", "file_text", "contents")
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


def is_edit(given: Any, text: str) -> bool:
    if PATCH in text:
        return True
    if not isinstance(given, dict):
        return False
    asks = any(name in given for name in (*OLD, *NEW, *WHOLE, "edits"))
    return isinstance(given.get("changes"), dict) or (asks and any(name in given for name in PATHS))


def command_of(given: Any) -> str:
    if isinstance(given, dict):
        given = next((given[name] for name in ("command", "cmd") if name in given), "")
    if isinstance(given, list):
        words = [str(word) for word in given]
        return words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return given if isinstance(given, str) else ""


def first(given: Any, *names: str) -> str:
    if not isinstance(given, dict):
        return ""
    return next((given[name] for name in names if isinstance(given.get(name), str)), "")


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
    path = absolute(first(given, *PATHS) or first(outcome, "path"), cwd)
    text = (
        given
        if isinstance(given, str)
        else first(given, "input", "patch", "patchText") or command_of(given)
    )
    if PATCH in text:
        yield from _patch(text, cwd)
    elif isinstance(given, dict) and isinstance(given.get("changes"), dict):
        yield from _changes(given["changes"], cwd)
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
    edits = given.get("edits")
    pieces = (
        [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else [given]
    )
    for piece in pieces:
        old, new = first(piece, *OLD), first(piece, *NEW)
        whole = next((piece[name] for name in WHOLE if isinstance(piece.get(name), str)), None)
        if path.endswith(".ipynb") and new:
            yield Edit(path, keys(_in_notebook(new)))
        elif whole is not None and not old:
            yield _whole(contents, path, whole.split("\n"))
        elif old or new:
            added, removed = _difference(old.split("\n"), new.split("\n"))
            yield Edit(path, keys(added), keys(removed))


def _in_notebook(source: str) -> list[str]:
    """A cell's lines as they stand in the file: strings of JSON, the last without a line end."""
    quoted = [msgspec.json.encode(line).decode() for line in source.split("\n")]
    return [f'{text[:-1]}\\n",' for text in quoted] + quoted[-1:]


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


def _patch(text: str, cwd: str) -> Iterator[Edit]:
    """Codex's own format: *** Update File: path, then lines with + and -."""
    path, lines, kind = "", list[str](), ""
    for line in text.split("\n"):
        head = _PATCH_FILE.match(line.rstrip("\r"))
        if head is None:
            lines.append(line)
        elif head[1] == "Move to":
            moved = absolute(head[2].strip(), cwd)
            yield Edit(moved, kind="moved", old=path)
            path = moved
        else:
            yield from _patched(path, kind, lines)
            path, lines, kind = absolute(head[2].strip(), cwd), [], head[1]
    yield from _patched(path, kind, lines)


def _patched(path: str, kind: str, lines: list[str]) -> Iterator[Edit]:
    if path:
        yield Edit(path, kind="gone") if kind == "Delete File" else _signed(path, lines)


def _changes(changes: dict[str, Any], cwd: str) -> Iterator[Edit]:
    """Codex's account of a patch: by path an addition, a removal or a diff; newer ones say
    `type`, older nest."""
    for name, change in changes.items():
        if not isinstance(change, dict):
            continue
        kind = change.get("type") or next(iter(change), None)
        inner = change if "type" in change else change.get(str(kind))
        path = absolute(name, cwd)
        if moved := first(inner, "move_path"):
            yield Edit(absolute(moved, cwd), kind="moved", old=path)
            path = absolute(moved, cwd)
        if kind == "delete":
            yield Edit(path, kind="gone")
        elif diff := first(inner, "unified_diff"):
            yield from _unified(diff, path, cwd)
        else:
            yield Edit(path, keys(first(inner, "content").split("\n")))


def _difference(old: Sequence[_Line], new: Sequence[_Line]) -> tuple[list[_Line], list[_Line]]:
    before, after = Counter(old), Counter(new)
    return list((after - before).elements()), list((before - after).elements())
