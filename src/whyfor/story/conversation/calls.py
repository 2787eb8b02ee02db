"""What a tool call was given and what it changed, as text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from whyfor.agents.edits import PATCH, first_text, path_in
from whyfor.agents.tools import argument_names, tool_kind, was_denied
from whyfor.model.events import StoredEvent

_TELLING = ("pattern", "query", "description", "url")  # beside a command and a path
_HEADS = ("---", "+++", "@@", "Index", "===")


def main_argument(call: StoredEvent) -> str:
    """Return the most informative argument of a call."""
    given = call.get("input")
    if not isinstance(given, dict):
        return call.text
    names = argument_names()
    telling = (*names.command, *names.path, *_TELLING)
    texts = (given[name] for name in telling if isinstance(given.get(name), str))
    return next(texts, call.text)


def question_calls(events: Iterable[StoredEvent]) -> set[str]:
    """Return the ids of calls that ask the person something and need not be shown: their questions
    are events of their own, and no answer is only in the result's text."""
    asked, in_words = set(), set()
    for event in events:
        data = event.data or {}
        if event.kind == "question.asked" and data.get("id"):
            asked.add(data["id"])
        answered = isinstance(data.get("answers"), dict) or data.get("failed")
        if event.kind == "tool.result" and not answered:
            in_words.add(data.get("id"))
    return asked - in_words


def call_outcome(result: StoredEvent | None) -> str:
    """What became of a call, in one word: denied, failed, or nothing to say of it."""
    if result is None:
        return ""
    if was_denied(result.data, result.text):
        return "denied"
    return "failed" if result.get("failed") else ""


def diff(call: StoredEvent, result: StoredEvent | None) -> list[str]:
    """Return the lines an edit removed and added: from the agent's own patch, else from the call's
    arguments."""
    outcome = (result or call).data or {}
    if isinstance(outcome.get("patch"), list):
        return _patch_lines(outcome["patch"])
    if isinstance(outcome.get("diff"), str):
        return _diff_lines(outcome["diff"])
    given = call.get("input")
    asked = _asked_lines(given) if isinstance(given, dict) else None
    if asked is not None:
        return asked
    if tool_kind(call.name or "") == "patch" or PATCH in call.text:
        lines = call.text.splitlines()
        return [line for line in lines if line[:1] in "+-" or line.startswith("*** ")]
    return []


def _patch_lines(patch: list[Any]) -> list[str]:
    """Return the lines of a patch that is stored hunk by hunk."""
    hunks = [hunk.get("lines", []) for hunk in patch if isinstance(hunk, dict)]
    return [line for hunk in hunks for line in hunk if isinstance(line, str)]


def _diff_lines(text: str) -> list[str]:
    """Return a unified diff without its headers."""
    return [line for line in text.splitlines() if not line.startswith(_HEADS)]


def _asked_lines(given: dict[str, Any]) -> list[str] | None:
    """Return the lines from a call's arguments: replaced text, or a whole file; None if it has
    neither."""
    names = argument_names()
    old, new = first_text(given, *names.old), first_text(given, *names.new)
    if old and new:
        return list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[3:]
    content = first_text(given, *names.whole)
    if content and path_in(given):
        return ["+" + line for line in content.splitlines()]
    return None
