"""Read a session of Continue. It has no times, no thoughts, and no exit codes."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from whyfor.agents.base import as_dict, get_dict, get_int, get_list, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    decoded_object,
    joined_text,
    uncached,
)
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.titles import TITLE_AGENT

_NO_TITLE = ("Untitled Session", "New Session")
_DIFF = re.compile(r"(?s)\nDiff:\n(?:Index: [^\n]*\n=+\n)?(--- .*)\Z")
_OPEN = ("generating", "generated", "calling")


class HistoryItems(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        if "history" not in record:
            out.unknown_type(record.get("type"))
            return
        at = RecordPlace(out.main, None)
        self.locate(at, out.main.session_id, cwd=_folder(get_str(record, "workspaceDirectory")))
        title = get_str(record, "title")
        if title not in _NO_TITLE:
            out.main.title(TITLE_AGENT, title)
        for index, item in enumerate(map(as_dict, get_list(record, "history"))):
            self._item(item, f"{out.main.session_id}:{index}", at, out)

    def _item(self, item: Record, base: str, at: RecordPlace, out: Sink) -> None:
        message = get_dict(item, "message")
        role, text = message.get("role"), joined_text(message.get("content"))
        if role == "user":
            self.prompt(at, fold(base, "text"), text)
        elif role == "assistant":
            self._assistant(item, message, text, base, at)
        elif role == "thinking":
            self.think(at, fold(base, "thought"), text)
        elif role not in ("system", "tool"):
            out.unknown_type(f"message {role}")

    def _assistant(
        self, item: Record, message: Record, text: str, base: str, at: RecordPlace
    ) -> None:
        usage = get_dict(message, "usage")
        model = usage.get("model")
        self._count(usage, base, at)
        self.think(at, fold(base, "thought"), get_str(get_dict(item, "reasoning"), "text"), model)
        self.say(at, fold(base, "text"), text, model)
        for index, call in enumerate(map(as_dict, get_list(message, "toolCalls"))):
            asked = get_dict(call, "function")
            ident = get_str(call, "id") or f"{base}:{index}"
            given = decoded_object(asked.get("arguments"))
            self.call(at, ident, get_str(asked, "name"), given, model)
        for state in map(as_dict, get_list(item, "toolCallStates")):
            self._result(state, get_str(state, "toolCallId") or base, at)

    def _count(self, usage: Record, base: str, at: RecordPlace) -> None:
        """Its input includes what came from the cache."""
        cached = get_int(get_dict(usage, "prompt_tokens_details"), "cached_tokens")
        thought = get_int(get_dict(usage, "completion_tokens_details"), "reasoning_tokens")
        counts = {
            "input": uncached(get_int(usage, "prompt_tokens"), cached),
            "cache_read": cached,
            "output": get_int(usage, "completion_tokens"),
            "reasoning": thought,
        }
        count_tokens(at, fold("continue", base), usage.get("model"), counts)

    def _result(self, state: Record, ident: str, at: RecordPlace) -> None:
        status = get_str(state, "status")
        if status in _OPEN:
            return
        parts = [as_dict(part) for part in get_list(state, "output")]
        text = "\n".join(get_str(part, "content") for part in parts)
        shown = _DIFF.search(text)
        outcome = CallOutcome(
            failed=status in ("errored", "canceled"),
            diff=shown[1] if shown else "",
            rejected=status == "canceled",
        )
        self.result(at, ident, text, outcome)


def _folder(place: str) -> str:
    """Return a folder that an editor may name by its address."""
    return unquote(urlsplit(place).path) if place.startswith("file://") else place
