"""What readers of chat-like transcripts share: prompts, words, calls and their results as events,
and which files a call touched."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import unified_diff
from typing import Any

import msgspec

from whyfor.agents.base import SourceShape, as_dict, as_list, as_str, flatten, get_int, get_str
from whyfor.agents.facts import MARKER, AgentFacts
from whyfor.agents.record_place import RecordPlace, known_values, remember
from whyfor.model.events import Usage
from whyfor.model.findings import Record
from whyfor.model.ids import fold

_CALLS_MAX = 500  # calls that are remembered until their results come
_DIFF_MAX = 100_000  # characters of a file that is compared with its later version
_WRITES = ("edit", "write", "patch")
_ACTIONS = {**dict.fromkeys(_WRITES, "write"), "read": "read"}


class CallOutcome(msgspec.Struct, frozen=True):
    """What came of a call, besides its text."""

    failed: bool = False
    exit_code: int | None = None
    diff: str = ""  # a unified diff of what it changed
    path: str = ""  # the file, if the call does not say it
    subagent: str = ""  # the session that did the work
    rejected: bool = False

    def data(self, ident: str) -> Record:
        told = {
            "id": ident,
            "exit_code": self.exit_code,
            "diff": self.diff or None,
            "path": self.path or None,
            "subagent": self.subagent or None,
            "failed": True if self.failed or self.exit_code else None,
            "rejected": True if self.rejected else None,
        }
        return known_values(told)


class ChatReader:
    """A reader of one source. Agents add what their records mean."""

    def __init__(self, state: Record, shape: SourceShape, facts: AgentFacts) -> None:
        self.state = state
        self.shape = shape
        self.facts = facts
        self.calls: dict[str, Any] = state.setdefault("calls", {})

    # -- the session -----------------------------------------------------------------------------

    def locate(self, at: RecordPlace, base: object, **place: object) -> None:
        """Add where the session runs, at its start and whenever it changes: `cwd`, `branch`,
        `version`, `forked_from`; what is empty or no text is not known."""
        known = {name: value for name, value in place.items() if isinstance(value, str) and value}
        before = self.state.get("place")
        if before is None:
            self.state["place"] = known
            at.locate(fold(base, "place"), known, first=True)
        elif news := {name: value for name, value in known.items() if before.get(name) != value}:
            self.state["place"] = {**before, **news}
            at.locate(fold(base, "place"), news, first=False)

    # -- words -----------------------------------------------------------------------------------

    def prompt(self, at: RecordPlace, key: int, text: str, images: Iterable[Record] = ()) -> None:
        """Add what a person typed; in a subagent, the task that an agent gave it."""
        shown = list(images)
        if text.lstrip().startswith(MARKER):  # what a restore added
            at.add("status.changed", key, "system", text)
        elif text.strip() or shown:
            actor = "assistant" if self.shape.parent else "user"
            about: Record | None = {"images": shown} if shown else None
            at.add("user.prompt", key, actor, text, data=about)

    def think(self, at: RecordPlace, key: int, text: str, model: object = None) -> None:
        if text.strip():
            at.add("assistant.thinking", key, "assistant", text, data=_by(model))

    def say(self, at: RecordPlace, key: int, text: str, model: object = None) -> None:
        if text.strip():
            at.add("assistant.message", key, "assistant", text, data=_by(model))

    # -- tools -----------------------------------------------------------------------------------

    def call(
        self, at: RecordPlace, ident: str, name: str, given: object, model: object = None
    ) -> None:
        """Add a call, and remember which file it names."""
        key = fold(ident)
        at.call(key, ident, name, given, **_by(model))
        kind = self._kind(name, given)
        path = _path(self.facts, given)
        remember(self.calls, ident, [kind, path], _CALLS_MAX)
        asked = as_dict(given)
        if kind == "subagent":
            task = get_str(asked, "prompt") or flatten(given)
            text = get_str(asked, "description") or task
            about = {"id": ident, "prompt": task}
            at.add("subagent.started", fold(key, "sub"), "assistant", text, data=about)
        elif kind == "question":
            at.question(key, ident, asked.get("questions"))

    def result(self, at: RecordPlace, ident: str, text: str, outcome: CallOutcome) -> None:
        """Add the result of a call, and the file it read or wrote."""
        key = fold(ident, "result")
        data = outcome.data(ident)
        at.add("tool.result", key, "tool", text, data=data)
        known = as_list(self.calls.get(ident))
        kind, path = known if len(known) == 2 else ("", "")
        if outcome.rejected:
            at.denied(ident)
        if kind == "subagent":
            at.add("subagent.stopped", fold(key, "sub"), "subagent", data={"id": ident})
        path = path or outcome.path
        if path and kind in _ACTIONS and not data.get("failed"):
            at.touch(key, [self._absolute(path)], _ACTIONS[kind])

    def _absolute(self, path: str) -> str:
        """Return a file's place from where the session runs; as it is if that is not known."""
        cwd = get_str(as_dict(self.state.get("place")), "cwd") or self.shape.cwd
        if not cwd or path.startswith(("/", "\\", "~")) or path[1:2] == ":":
            return path
        return f"{cwd.rstrip('/')}/{path.removeprefix('./')}"

    def _kind(self, name: str, given: object) -> str:
        """Return what a tool does, by the agent's own facts."""
        lowered = name.lower()
        told = get_str(as_dict(given), "command")
        by_command = self.facts.tool_commands.get(lowered, {})
        if told in by_command:
            return by_command[told]
        return self.facts.tools.get(lowered) or ""


def image_reference(index: int, media_type: object, size: int) -> Record:
    """Describe an image: type and size. Its bytes stay in the segment."""
    return {"block": index, "type": "inline", "media_type": media_type, "bytes": size}


def count_tokens(
    at: RecordPlace,
    key: int,
    model: object,
    counts: dict[str, int | None],
    *,
    lump: bool = False,
    reported: float | None = None,
) -> None:
    """Add the tokens of a response, or of several together (`lump`), and what the agent says they
    cost; nothing if none of them is known."""
    if all(value is None for value in counts.values()):
        return
    found = Usage(key, at.when, as_str(model) or None, lump=lump, reported=reported)
    for name, value in counts.items():
        setattr(found, name, value)
    at.bucket.usage.append(found)


def uncached(given: int | None, cached: int | None) -> int | None:
    """Return the input without what came from the cache, of an agent that counts both as one."""
    if given is None or cached is None:
        return given
    return max(0, given - cached)


def text_diff(before: str, after: str, path: str) -> str:
    """Return a unified diff of two versions of a file; empty if they are equal, or too long to be
    compared."""
    if before == after or len(before) + len(after) > _DIFF_MAX:
        return ""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = unified_diff(old, new, path, path)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def exit_code_in(text: str, pattern: re.Pattern[str]) -> int | None:
    """Return the exit code that the text of a result names last; None if it names none."""
    found = pattern.findall(text)
    return int(found[-1]) if found else None


def joined_text(content: object) -> str:
    """Return the text of content that is a string or a list of parts with text."""
    if isinstance(content, str):
        return content
    parts = [as_dict(part) for part in as_list(content)]
    return "\n".join(get_str(part, "text") for part in parts if part.get("type") == "text")


def decoded_object(text: object) -> Record:
    """Return the object in a text of JSON, or the object itself; empty if it is neither."""
    if not isinstance(text, str):
        return as_dict(text)
    try:
        return as_dict(msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}


def decoded_objects(text: object) -> list[Record]:
    """Return the objects of a list in a text of JSON, or of the list itself."""
    found = text
    if isinstance(text, str):
        try:
            found = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return []
    return [as_dict(each) for each in as_list(found)]


def token_counts(usage: Record, **names: str) -> dict[str, int | None]:
    """Return the counts of a usage, by our names from the agent's."""
    return {ours: get_int(usage, theirs) for ours, theirs in names.items()}


def _by(model: object) -> Record:
    return {"model": model} if isinstance(model, str) and model else {}


def _path(facts: AgentFacts, given: object) -> str:
    asked = as_dict(given)
    return next((get_str(asked, name) for name in facts.arguments.path if asked.get(name)), "")
