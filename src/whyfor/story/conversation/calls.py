"""What a tool call was given and what it changed, as people read it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from whyfor.agents.edits import PATCH, first, path_in
from whyfor.agents.tools import argument_names, tool_kind
from whyfor.model.events import StoredEvent

_TELLING = ("pattern", "query", "description", "url")  # beside a command and a path


def argument(call: StoredEvent) -> str:
    """The one input that says most."""
    given = (call.data or {}).get("input")
    if not isinstance(given, dict):
        return call.text
    names = argument_names()
    telling = (*names.command, *names.path, *_TELLING)
    texts = (given[name] for name in telling if isinstance(given.get(name), str))
    return next(texts, call.text)


def question_calls(events: Iterable[StoredEvent]) -> set[str]:
    """Ids of calls that ask the person something and need not be shown: events of their own tell
    the questions, and no answer stands in the result as text alone."""
    asked, in_words = set(), set()
    for event in events:
        data = event.data or {}
        if event.kind == "question.asked" and data.get("id"):
            asked.add(data["id"])
        answered = isinstance(data.get("answers"), dict) or data.get("failed")
        if event.kind == "tool.result" and not answered:
            in_words.add(data.get("id"))
    return asked - in_words


def failed(result: StoredEvent | None) -> bool:
    return bool(result and (result.data or {}).get("failed"))


def diff(call: StoredEvent, result: StoredEvent | None) -> list[str]:
    """The lines an edit took away and put in: the agent's own patch if it kept one, else from
    what it asked for."""
    data = (result or call).data or {}
    patch = data.get("patch")
    if isinstance(patch, list):
        return [
            line
            for hunk in patch
            if isinstance(hunk, dict)
            for line in hunk.get("lines", [])
            if isinstance(line, str)
        ]
    if isinstance(data.get("diff"), str):
        return [
            line
            for line in data["diff"].splitlines()
            if not line.startswith(("---", "+++", "@@", "Index", "==="))
        ]
    given = (call.data or {}).get("input")
    given = given if isinstance(given, dict) else {}
    names = argument_names()
    old, new = first(given, *names.old), first(given, *names.new)
    if old and new:
        return list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[3:]
    content = first(given, *names.whole)
    if content and path_in(given):
        return ["+" + line for line in content.splitlines()]
    if tool_kind(call.name or "") == "patch" or PATCH in call.text:
        return [
            line for line in call.text.splitlines() if line[:1] in "+-" or line.startswith("*** ")
        ]
    return []
