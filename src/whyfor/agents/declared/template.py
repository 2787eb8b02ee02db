"""The text that a new definition starts from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_TEXT = """\
# How Whyfor reads the sessions of {title}. Try it: whyfor agents check {name}
# Every field: docs/agents.md, "An agent that is not listed"

name = "{name}"
title = "{title}"
mark = "{mark}"
colour = "#8a8f98"
folders = ["{folder}"]   # with ~ and $VARIABLE
files = ["*.jsonl"]
# resume = "{name} --resume {{id}}"

# A file is a transcript if one of its first records looks like this.
[session]
when = {{ {kind} = "session" }}
id = "id"      # where the session's id stands; leave it out if it is the file's name
cwd = "cwd"

# What stands in every record.
[record]
id = "id"
time = "timestamp"

# What its tools do, by their names.
[tools]
shell = ["bash"]
read = ["read"]
edit = ["edit"]
write = ["write"]

[arguments]
path = ["path"]
command = ["command"]
old = ["old"]
new = ["new"]
whole = ["content"]

# What records mean. Every rule whose condition is met applies; records that no rule is for are
# kept, counted, and named by `whyfor doctor`.
[[read]]
when = {{ {kind} = "session" }}
as = "session"
cwd = "cwd"

[[read]]
when = {{ {kind} = "user" }}
as = "prompt"
text = "text"

[[read]]
when = {{ {kind} = "assistant" }}
as = "say"
text = "text"

[[read]]
when = {{ {kind} = "tool_call" }}
as = "call"
call = "call_id"
tool = "name"
input = "input"

[[read]]
when = {{ {kind} = "tool_result" }}
as = "result"
call = "call_id"
text = "output"
exit_code = "exit_code"
"""
_SEEN = "\n# What was seen in the sample, as kind (how often): the paths to its values.\n"
_KINDS = ("type", "kind", "event", "role")
_PATHS_MAX = 40
_DEPTH_MAX = 4
_WORD = re.compile(r"[A-Za-z][\w-]{0,40}")


def definition_text(name: str, records: list[dict[str, object]], folder: str = "") -> str:
    """Return a definition that can be read as it is; of a sample's records, their kinds and the
    paths in them stand at its end. `folder` is where the sample lies."""
    title = name.replace("-", " ").title()
    kind = _kind_path(records)
    place = folder if _is_plain_path(folder) else f"~/.{name}/sessions"
    mark = name[:2].capitalize()
    text = _TEXT.format(name=name, title=title, mark=mark, kind=kind, folder=place)
    return text + "".join(_seen(records, kind)) if records else text


def _kind_path(records: list[dict[str, object]]) -> str:
    """Return the key whose value says what a record is: the one that most records have."""
    found = Counter(
        name for record in records for name in _KINDS if isinstance(record.get(name), str)
    )
    if found and found.most_common(1)[0][1] * 2 >= len(records):
        return found.most_common(1)[0][0]
    return _repeated_key(records) or "type"


def _repeated_key(records: list[dict[str, object]]) -> str:
    """Return the key of most records whose values are words that come again; empty if none is."""
    values: dict[str, list[str]] = {}
    for record in records:
        for name, value in record.items():
            if isinstance(value, str) and _WORD.fullmatch(value) and _WORD.fullmatch(name):
                values.setdefault(name, []).append(value)
    able = {
        name: len(found)
        for name, found in values.items()
        if len(found) * 2 >= len(records) and 1 < len(set(found)) < len(found)
    }
    return max(able, key=lambda name: able[name], default="")


def _is_plain_path(folder: str) -> bool:
    return bool(folder) and not any(char in '"\\$' or not char.isprintable() for char in folder)


def _seen(records: list[dict[str, object]], kind: str) -> Iterator[str]:
    yield _SEEN
    groups: dict[str, list[dict[str, object]]] = {}
    for record in records:
        groups.setdefault(str(record.get(kind)), []).append(record)
    for name, group in groups.items():
        paths: dict[str, None] = {}
        for record in group[:20]:
            paths |= dict.fromkeys(_paths(record, "", _DEPTH_MAX))
        yield f"# {_plain(name)} ({len(group)}): {', '.join(list(paths)[:_PATHS_MAX])}\n"


def _paths(value: object, before: str, depth: int) -> Iterator[str]:
    """Yield the paths to the plain values in a record; no value of it."""
    items: list[tuple[str, object]] = []
    if isinstance(value, dict) and depth:
        items = [(str(key), inner) for key, inner in value.items()]
    elif isinstance(value, list) and depth:
        items = [("0", inner) for inner in value[:1]]
    for key, inner in items:
        yield from _paths(inner, f"{before}.{_plain(key)}".lstrip("."), depth - 1)
    if not items and before:
        yield before


def _plain(text: str) -> str:
    """Return a name that stands on one line of a comment."""
    return "".join(char if char.isprintable() else "?" for char in text)[:60]
