"""Read a log of Droid, and the totals in the settings beside it."""

from __future__ import annotations

import re
from collections.abc import Callable

from whyfor.agents.base import SourceShape, as_dict, as_list, get_dict, get_int, get_list, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    decoded_object,
    exit_code_in,
    joined_text,
    token_counts,
)
from whyfor.agents.droid.facts import FORK
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT, TITLE_PERSON

_EXIT = re.compile(r"\[Process exited with code (-?\d{1,9})\]")
_SILENT = ("todo_state", "session_end", "compaction_state", "agent_turn_outcome")
_SIGNS = {"added": "+", "removed": "-", "unchanged": " "}
_REFUSED = "The user rejected"


class DroidReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind = get_str(record, "type")
        at = RecordPlace(out.main, parse_iso(record.get("timestamp")) or self.state.get("at"))
        base = get_str(record, "id") or str(fold_bytes(offset, line))
        if at.when is not None:
            self._begun(at)
        if handler := _RECORDS.get(kind):
            handler(self, record, base, at)
        elif kind not in _SILENT:
            out.unknown_type(record.get("type"))
        if origin := get_str(record, "restoredFrom"):
            out.main.mark_copied(origin)

    def _begun(self, at: RecordPlace) -> None:
        """The start has no time of its own: it is that of the first message."""
        self.state["at"] = at.when
        if place := self.state.pop("start", None):
            self.locate(at, at.bucket.session_id, **as_dict(place))

    def _start(self, record: Record, base: str, at: RecordPlace) -> None:
        is_persons = record.get("isSessionTitleManuallySet") is True
        at.bucket.title(TITLE_PERSON if is_persons else TITLE_AGENT, record.get("title"))
        place = {"cwd": get_str(record, "cwd"), "forked_from": get_str(record, "parent")}
        if place["cwd"]:
            at.bucket.facts.setdefault("cwd", place["cwd"])
        if "place" not in self.state:
            self.state["start"] = place

    def _message(self, record: Record, base: str, at: RecordPlace) -> None:
        message = get_dict(record, "message")
        blocks = [as_dict(block) for block in as_list(message.get("content"))]
        if message.get("role") == "assistant":
            self._assistant(message, blocks, base, at)
        elif message.get("visibility") != "user_only":  # else what a hook did
            self._user(blocks, base, at, is_added=base.startswith("context-"))

    def _user(self, blocks: list[Record], base: str, at: RecordPlace, *, is_added: bool) -> None:
        for index, block in enumerate(blocks):
            if block.get("type") == "tool_result":
                self._result(block, get_str(block, "tool_use_id") or f"{base}:{index}", at)
        texts = [get_str(block, "text") for block in blocks if block.get("type") == "text"]
        typed = [text for text in texts if not text.lstrip().startswith("<system-reminder>")]
        if not is_added:
            self.prompt(at, fold(base, "text"), "\n".join(typed))

    def _assistant(self, message: Record, blocks: list[Record], base: str, at: RecordPlace) -> None:
        model = message.get("modelId")
        for index, block in enumerate(blocks):
            kind = block.get("type")
            if kind == "thinking":
                self.think(at, fold(base, "thought", index), get_str(block, "thinking"), model)
            elif kind == "text":
                self.say(at, fold(base, "text", index), get_str(block, "text"), model)
            elif kind == "tool_use":
                ident = get_str(block, "id") or f"{base}:{index}"
                self.call(at, ident, get_str(block, "name"), get_dict(block, "input"), model)

    def _result(self, block: Record, ident: str, at: RecordPlace) -> None:
        content = block.get("content")
        text = joined_text(content)
        told = decoded_object(content)
        failed = block.get("is_error") is True or told.get("success") is False
        outcome = CallOutcome(
            failed=failed,
            exit_code=exit_code_in(text, _EXIT),
            diff=_diff(told),
            path=get_str(told, "file_path"),
            rejected=failed and text.startswith(_REFUSED),
        )
        self.result(at, ident, text, outcome)

    def _compaction(self, record: Record, base: str, at: RecordPlace) -> None:
        text = get_str(record, "summary") or get_str(record, "summaryText")
        about = {"summary": True} if text else None
        at.add("compaction", fold(base, "compaction"), "system", text, data=about)


class TotalsReader:
    """The settings of a session: its tokens so far. Of a fork they are not known, for they begin
    with those of its origin."""

    def __init__(self, state: Record, shape: SourceShape) -> None:
        self.state = state
        self.shape = shape

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        if self.shape.sidecar == FORK:
            return
        counts = token_counts(
            get_dict(record, "tokenUsage"),
            input="inputTokens",
            cache_read="cacheReadTokens",
            cache_write="cacheCreationTokens",
            output="outputTokens",
            reasoning="thinkingTokens",
        )
        if not any(counts.values()):
            return
        at = RecordPlace(out.main, parse_iso(record.get("providerLockTimestamp")))
        count_tokens(at, fold("droid", out.main.session_id), record.get("model"), counts, lump=True)


Handler = Callable[[DroidReader, Record, str, RecordPlace], None]
_RECORDS: dict[str, Handler] = {
    "session_start": DroidReader._start,
    "message": DroidReader._message,
    "compaction": DroidReader._compaction,
    "summary": DroidReader._compaction,
}


def _diff(told: Record) -> str:
    """Return the lines that a result shows of a change, as a unified diff."""
    rows = [as_dict(row) for row in get_list(told, "diffLines")]
    shown = [(_SIGNS.get(get_str(row, "type"), " "), row) for row in rows]
    if not any(sign in "+-" for sign, _ in shown):
        return ""
    path = get_str(told, "file_path")
    numbers = [get_dict(row, "lineNumber") for row in rows]
    old = [number for each in numbers if (number := get_int(each, "old"))]
    new = [number for each in numbers if (number := get_int(each, "new"))]
    first = f"-{min(old, default=0)},{len(old)} +{min(new, default=0)},{len(new)}"
    lines = [f"{sign}{get_str(row, 'content')}" for sign, row in shown]
    return "\n".join((f"--- {path}", f"+++ {path}", f"@@ {first} @@", *lines, ""))
