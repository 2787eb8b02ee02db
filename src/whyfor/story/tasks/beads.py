"""What beads is told and what it says: arguments of `bd`, calls of its tools, and the issues that
it exports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from whyfor.model.tasks import TaskAction, TaskIssue
from whyfor.story.shell import simple_commands

SOURCE = "beads"
EXPORT = "issues.jsonl"  # in the folder .beads
_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*-[a-z0-9]+(?:\.\d+)*")
_FLAGS = frozenset(  # that take no value
    "--claim --json --force -f --continue --no-auto --suggest-next -q --quiet -v --verbose --help "
    "-h --sandbox --readonly --no-db --no-daemon --ephemeral --persistent --allow-stale".split()
)
_CLOSED = ("closed", "done")
_BACK = ("open", "deferred")
_FAILED = re.compile(r"^\s*(?:error\b|✗|❌|fatal:)", re.I | re.M)
_TOOLS: dict[str, TaskAction] = {"claim": "claim", "close": "close", "reopen": "reopen"}


class TrackerCall(msgspec.Struct, frozen=True):
    """What a call did to a task; without a key its result says which."""

    action: TaskAction
    key: str
    hidden: bool = False  # how it ended cannot be told from how the whole command ended


def shell_calls(command: str) -> Iterator[TrackerCall]:
    """Yield what a shell command tells beads about tasks."""
    if "bd" not in command:
        return
    for one in simple_commands(command):
        if one.name == "bd":
            yield from _bd(one.words, one.hidden)


def _bd(words: Sequence[str], hidden: bool) -> Iterator[TrackerCall]:
    options, names = _arguments(words)
    verb, ids = (names[0], names[1:]) if names else ("", [])
    action = _action(verb, options)
    if action is None:
        return
    if verb == "ready":
        yield TrackerCall(action, "", hidden)
    for key in ids:
        if _ID.fullmatch(key):
            yield TrackerCall(action, key, hidden)


def _arguments(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Tell options and their values from the other words."""
    options: dict[str, str] = {}
    names: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            names.append(word)
        elif "=" in word:
            name, _, value = word.partition("=")
            options[name] = value
        elif word in _FLAGS:
            options[word] = ""
        else:
            options[word] = next(rest, "")
    return options, names


def _action(verb: str, options: dict[str, str]) -> TaskAction | None:
    if verb in ("close", "done"):
        return "close"
    if verb == "reopen":
        return "reopen"
    if verb == "ready":
        return "claim" if "--claim" in options else None
    if verb != "update":
        return None
    if "--claim" in options:
        return "claim"
    return _status_action(options.get("--status", options.get("-s", "")))


def _status_action(status: str) -> TaskAction | None:
    if status == "in_progress":
        return "claim"
    if status in _CLOSED:
        return "close"
    return "unclaim" if status in _BACK else None


def tool_calls(name: str, given: Any) -> Iterator[TrackerCall]:
    """Yield what a call of a tool of beads' MCP server does to tasks."""
    lowered = name.lower()
    if "beads" not in lowered or not isinstance(given, dict):
        return
    verb = re.split(r"__|[./]", lowered)[-1]
    action = _TOOLS.get(verb)
    if verb == "update":
        action = _status_action(str(given.get("status") or ""))
    if action is None:
        return
    for field in ("issue_id", "issue_ids", "id", "ids"):
        listed = given.get(field)
        for key in listed if isinstance(listed, list) else [listed]:
            if isinstance(key, str) and _ID.fullmatch(key):
                yield TrackerCall(action, key)


def says_error(result: str) -> bool:
    """Return whether what beads printed says that it did not do it."""
    return _FAILED.search(result) is not None


def claimed_key(result: str) -> str:
    """Return which issue `bd ready --claim` claimed, as its result says; empty if it does not."""
    try:
        told = msgspec.json.decode(result)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = _ID.search(result)
        return found[0] if found else ""
    first = told[0] if isinstance(told, list) and told else told
    key = first.get("id") if isinstance(first, dict) else None
    return key if isinstance(key, str) and _ID.fullmatch(key) else ""


class _ExportedIssue(msgspec.Struct, frozen=True):
    """A line of the export, as far as it is read."""

    id: str
    title: str = ""
    status: str = ""
    assignee: str | None = None
    started_at: str | None = None
    closed_at: str | None = None
    close_reason: str | None = None
    closed_by_session: str | None = None


_issue = msgspec.json.Decoder(_ExportedIssue).decode


def read_export(text: bytes, project: str, read_at: int) -> list[TaskIssue]:
    """Return the issues of an export; lines that are no issue are left out."""
    found = []
    for line in text.split(b"\n"):
        try:
            told = _issue(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        found.append(
            TaskIssue(
                project=project,
                key=told.id,
                source=SOURCE,
                title=told.title,
                status=told.status,
                assignee=told.assignee or "",
                started_at=_time(told.started_at),
                closed_at=_time(told.closed_at),
                close_reason=told.close_reason or "",
                closed_by=told.closed_by_session or "",
                read_at=read_at,
            )
        )
    return found


def _time(text: str | None) -> int | None:
    """Return an ISO time in ms; None if it is none."""
    if not text:
        return None
    try:
        return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def merge_issue(before: TaskIssue | None, now: TaskIssue) -> TaskIssue | None:
    """Return what is to be kept of an issue that was read again; None if it says nothing new."""
    if before is None:
        return now
    reopened = before.reopened_at
    if before.closed and not now.closed:
        reopened = now.read_at
    merged = msgspec.structs.replace(now, reopened_at=reopened)
    same = msgspec.structs.replace(merged, read_at=before.read_at) == before
    return None if same else merged
