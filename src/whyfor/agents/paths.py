"""Which files a record names and which calls it is about. All agents use the same names for
these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

_PATH = frozenset(
    "file_path filePath path notebook_path notebookPath absolute_path absolutePath relative_path "
    "relativePath "
    "target_file targetFile filename fileName move_path movePath workdir working_directory "
    "workingDirectory directory "
    "dir_path dirPath url uri".split()
)
_PATHS = frozenset("paths file_paths filePaths files".split())
_BY_PATH = frozenset(("changes", "trackedFileBackups"))  # objects whose keys are paths
_CALL = frozenset(
    "call_id callID callId tool_use_id toolUseId toolUseID sourceToolUseID toolCallId "
    "tool_call_id".split()
)
_PATCHED = re.compile(r"\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.M)
_DEPTH = 2  # JSON in a string of JSON


def named_paths(value: Any) -> Iterator[str]:
    """Return the paths in a record: values of path arguments, and files of patches."""
    for key, item in _members(value):
        if isinstance(item, str):
            if key in _PATH and not item.startswith(("http:", "https:", "data:")):
                yield item.removeprefix("file://")
            elif "*** " in item:
                yield from _PATCHED.findall(item)
        elif isinstance(item, list) and key in _PATHS:
            yield from (each.removeprefix("file://") for each in item if isinstance(each, str))
        elif isinstance(item, dict) and key in _BY_PATH:
            yield from item


def call_ids(value: Any) -> Iterator[str]:
    """Return the ids of the calls that a record answers or mentions."""
    for key, item in _members(value):
        if key in _CALL and isinstance(item, str) and item:
            yield item


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every value of a structure with its key; strings that contain JSON are decoded."""
    todo: list[tuple[str, Any, int]] = [("", value, 0)]
    while todo:
        key, item, depth = todo.pop()
        if isinstance(item, dict):
            todo.extend((name, inner, depth) for name, inner in item.items())
        elif isinstance(item, list):
            todo.extend((key, inner, depth) for inner in item if not isinstance(inner, str))
            todo.extend(("", inner, depth) for inner in item if isinstance(inner, str))
        elif (
            isinstance(item, str)
            and depth < _DEPTH
            and item[:1] == "{"
            and item.rstrip()[-1:] == "}"
        ):
            todo.append((key, _decoded(item), depth + 1))
        yield key, item


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
