"""Tool calls in few words, for the tools of all agents: kind of work, argument, outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from whyfor.agents.edits import first_text, path_in
from whyfor.agents.tools import command_of, tool_kind
from whyfor.model.events import StoredEvent
from whyfor.model.paths import path_within, shorten_paths
from whyfor.model.text import one_line, plural
from whyfor.model.tools import MCP, ToolKind
from whyfor.story.conversation import calls

# What is shown alike; all other kinds are `other`.
_FAMILY: dict[ToolKind, str] = {
    "shell": "run",
    "typed": "run",
    "read": "read",
    "list": "search",
    "search": "search",
    "tools": "search",
    "edit": "edit",
    "patch": "edit",
    "write": "write",
    "web": "web",
    "fetch": "web",
    "plan": "plan",
    "todo": "plan",
    "mode": "plan",
}
_VERB = {
    "read": "Read",
    "search": "Search",
    "edit": "Edit",
    "write": "Write",
    "run": "Run",
    "plan": "Plan",
}
_ICON = {
    "read": "i-file",
    "search": "i-find",
    "edit": "i-edit",
    "write": "i-edit",
    "run": "i-term",
    "web": "i-search",
    "plan": "i-list",
}
_DONE = {
    "read": ("read", "file"),
    "search": ("searched", "time"),
    "edit": ("edited", "file"),
    "write": ("wrote", "file"),
    "run": ("ran", "command"),
    "web": ("looked up", "page"),
    "plan": ("planned", "time"),
}
_RANGE = (("offset", "start_line"), ("limit", "number_of_lines"))
_LISTED = 12  # inputs of an unknown tool that are shown


def call_kind(call: StoredEvent, agent: str = "") -> str:
    return _FAMILY.get(tool_kind(call.name or "", agent, given(call)), "other")


def is_patch(call: StoredEvent, agent: str = "") -> bool:
    """Return whether the call's text is a patch, which names its files itself."""
    return tool_kind(call.name or "", agent) == "patch"


def verb(call: StoredEvent, shown_as: str, agent: str = "") -> str:
    name = one_line(call.name) or "Tool"
    if name.startswith(MCP):
        server, _, tool = name.removeprefix(MCP).partition("__")
        return f"{server}: {tool}" if tool else server
    if name.lower() in ("bash", "powershell"):
        return name.capitalize() if name.islower() else name
    kind = tool_kind(call.name or "", agent)
    own = {"list": "List", "fetch": "Fetch", "web": "Web"}.get(kind)
    return own or _VERB.get(shown_as) or name


def icon(kind: str) -> str:
    return _ICON.get(kind, "i-list")


def given(call: StoredEvent) -> Any:
    return call.get("input")


def argument_line(call: StoredEvent, kind: str, cwd: str | None) -> str:
    """Return the most informative argument on one line; paths below the session's folder are
    relative."""
    asked = given(call)
    if kind == "run":
        text = command_of(asked) or call.text
    elif kind == "search" and isinstance(asked, dict):
        what, where = (
            first_text(asked, "pattern", "query"),
            first_text(asked, "path", "dir_path", "include"),
        )
        text = f"{what}  in {where}" if what and where else what or where or call.text
    elif kind == "plan" and isinstance(asked, dict):
        items = next(
            (asked[name] for name in ("todos", "plan") if isinstance(asked.get(name), list)), None
        )
        text = plural(len(items), "item") if items is not None else calls.main_argument(call)
    elif path := path_in(asked):
        return one_line(path_within(path, cwd))
    else:
        text = first_text(asked, "url", "query", "prompt") or calls.main_argument(call)
    return one_line(shorten_paths(text, cwd))


def whole_input(call: StoredEvent, kind: str) -> str:
    """Return a call's input in full, if it does not fit on one line."""
    asked = given(call)
    if kind == "run":
        command = command_of(asked) or call.text
        return command if "\n" in command.strip() or len(command) > 90 else ""
    if kind in ("read", "edit", "write", "search") or not isinstance(asked, dict):
        return (
            asked
            if isinstance(asked, str) and len(asked) > 90 and kind not in ("edit", "write")
            else ""
        )
    lines = [f"{name}: {_said(value)}" for name, value in list(asked.items())[:_LISTED]]
    return "\n".join(lines) if len(asked) > 1 or len("".join(lines)) > 90 else ""


def _said(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def lines_read(call: StoredEvent) -> str:
    """Return which lines of a file a call reads."""
    asked = given(call)
    if not isinstance(asked, dict):
        return ""
    start, number = (
        next((asked[n] for n in names if isinstance(asked.get(n), int)), None) for names in _RANGE
    )
    if start is None and number is None:
        return ""
    begin = max(1, start or 1)
    return f"{begin}–{begin + number - 1}" if number and number > 0 else f"from {begin}"


def counted(kinds: Iterable[str], denied: int) -> str:
    """Return a summary such as: read 2 files, edited 2, ran 3 commands."""
    found = Counter(kinds)
    told, nouns = [], set[str]()
    for kind, (done, noun) in _DONE.items():
        if number := found.pop(kind, 0):
            times = {"time": {1: "once", 2: "twice"}.get(number, f"{number} times")}.get(noun)
            told.append(
                f"{done} {times or (str(number) if noun in nouns else plural(number, noun))}"
            )
            nouns.add(noun)
    if others := sum(found.values()):
        told.append(f"{others} other")
    if denied:
        told.append(f"{denied} denied")
    return ", ".join(told)
