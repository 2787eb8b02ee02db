"""What a session did that a commit may show: lines it wrote and took away, commits it made or named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from backstory.model.events import StoredEvent

_SHELLS = frozenset("bash shell exec_command shell_command run_shell_command local_shell".split())
_MADE = re.compile(r"^\s*\[(?:detached HEAD|[^\s\]]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.M)
_COMMITS = re.compile(r"\bgit\b[^|;&\n]*\b(commit|rebase|cherry-pick|merge|revert|am)\b")
_REWRITES = re.compile(r"\bgit\b[^|;&\n]*\b(rebase|cherry-pick)\b")
_PATCH_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$")


class Written(msgspec.Struct, frozen=True):
    """One successful edit: the lines it put in and took out of a file."""

    at: int
    path: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    seq: int
    call: str | None  # the call's own id: a fork's copy has the same


class Made(msgspec.Struct, frozen=True):
    """One command that may have made commits, from its start to its result."""

    called_at: int
    done_at: int
    command: str
    printed: tuple[tuple[str, str], ...]  # abbreviated sha and subject, as git prints them
    rewrites: bool
    seq: int
    call: str | None


class Acts(msgspec.Struct):
    written: list[Written] = []
    made: list[Made] = []
    first_at: int | None = None
    last_at: int | None = None


def acts(events: Iterable[StoredEvent]) -> Acts:
    found = Acts([], [])
    calls: dict[Any, StoredEvent] = {}
    for event in events:
        if event.created_at is not None:
            found.first_at = event.created_at if found.first_at is None else min(found.first_at, event.created_at)
            found.last_at = event.created_at if found.last_at is None else max(found.last_at, event.created_at)
        ident = (event.data or {}).get("id")
        if event.kind == "tool.call" and ident is not None:
            calls[ident] = event
        elif event.kind == "tool.result" and (call := calls.pop(ident, None)) is not None:
            _pair(found, call, event)
    return found


def _pair(found: Acts, call: StoredEvent, result: StoredEvent) -> None:
    at = result.created_at or call.created_at
    if at is None:
        return
    ident = (call.data or {}).get("id")
    name = (call.name or "").lower()
    if name in _SHELLS:
        command = _command(call)
        printed = tuple(_MADE.findall(result.text))
        sha = (
            ((result.data or {}).get("git") or {}).get("commit")
            if isinstance((result.data or {}).get("git"), dict)
            else None
        )
        if isinstance(sha, dict) and isinstance(sha.get("sha"), str):
            printed = (*printed, (sha["sha"], ""))
        if printed or _COMMITS.search(command):
            rewrites = bool(_REWRITES.search(command))
            found.made.append(Made(call.created_at or at, at, command, printed, rewrites, result.seq, ident))
        if "*** Begin Patch" not in command:
            return
    if (result.data or {}).get("failed"):
        return
    for path, added, removed in _edits(call, result):
        if path and (added or removed):
            found.written.append(Written(at, path.replace("\\", "/"), tuple(added), tuple(removed), result.seq, ident))


def _command(call: StoredEvent) -> str:
    given = (call.data or {}).get("input")
    if isinstance(given, dict):
        for name in ("command", "cmd"):
            value = given.get(name)
            if isinstance(value, str):
                return value
            if isinstance(value, list):
                return " ".join(map(str, value))
    return call.text


# -- edits, in every shape the agents give them ----------------------------------------------------

_Edit = tuple[str, list[str], list[str]]


def _edits(call: StoredEvent, result: StoredEvent) -> Iterator[_Edit]:
    data = result.data or {}
    given = (call.data or {}).get("input")
    given = given if isinstance(given, dict) else {}
    path = _first(given, "file_path", "filePath", "path", "notebook_path", "absolute_path")
    text = _first(given, "input", "patch", "patchText", "command", "cmd") or call.text
    if "*** Begin Patch" in text:
        yield from _patch(text)
    elif isinstance(data.get("patch"), list) and path:
        lines = [line for hunk in data["patch"] if isinstance(hunk, dict) for line in hunk.get("lines") or []]
        yield path, [x[1:] for x in lines if x[:1] == "+"], [x[1:] for x in lines if x[:1] == "-"]
    elif isinstance(data.get("diff"), str) and path:
        yield path, *_unified(data["diff"])
    elif path:
        yield from _asked(path, given)


def _asked(path: str, given: dict[str, Any]) -> Iterator[_Edit]:
    """No patch was kept: what the call asked for."""
    edits = given.get("edits")
    pieces = [e for e in edits if isinstance(e, dict)] if isinstance(edits, list) else [given]
    for piece in pieces:
        old = _first(piece, "old_string", "oldString", "old_str", "old_text")
        new = _first(piece, "new_string", "newString", "new_str", "new_text", "new_source", "content", "file_text")
        if old or new:
            yield path, *_difference(old or "", new or "")


def _first(given: dict[str, Any], *names: str) -> str:
    return next((given[name] for name in names if isinstance(given.get(name), str)), "")


def _difference(old: str, new: str) -> tuple[list[str], list[str]]:
    before, after = Counter(old.splitlines()), Counter(new.splitlines())
    return list((after - before).elements()), list((before - after).elements())


def _unified(diff: str) -> tuple[list[str], list[str]]:
    lines = [line for line in diff.splitlines() if not line.startswith(("+++", "---"))]
    return [x[1:] for x in lines if x[:1] == "+"], [x[1:] for x in lines if x[:1] == "-"]


def _patch(text: str) -> Iterator[_Edit]:
    """Codex's own format: *** Update File: path, then lines with + and -."""
    path, added, removed = "", list[str](), list[str]()
    for line in text.splitlines():
        if head := _PATCH_FILE.match(line):
            if path:
                yield path, added, removed
            path, added, removed = head[2].strip(), [], []
        elif line.startswith("+"):
            added.append(line[1:])
        elif line.startswith("-"):
            removed.append(line[1:])
    if path:
        yield path, added, removed
