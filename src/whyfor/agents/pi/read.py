"""Read a log of Pi. A fork copies entries with their ids and times, so these identify them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath

from whyfor.agents.base import as_dict, as_list, get_dict, get_dollars, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    exit_code_in,
    image_reference,
    joined_text,
    token_counts,
)
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_PERSON

_EXIT = re.compile(r"(?m)^Command exited with code (-?\d{1,9})$")
# the state of the program and of its extensions
_SILENT = ("model_change", "thinking_level_change", "custom", "label", "context_edit")


class PiReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind = get_str(record, "type")
        at = RecordPlace(out.main, parse_iso(record.get("timestamp")))
        base = get_str(record, "id") or str(fold_bytes(offset, line))
        if handler := _ENTRIES.get(kind):
            handler(self, record, base, at, out)
        elif kind not in _SILENT:
            out.unknown_type(record.get("type"))
        if origin := get_str(record, "restoredFrom"):
            out.main.mark_copied(origin)

    # -- entries ---------------------------------------------------------------------------------

    def _session(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        """A fork names the file it was copied from; the file's name ends with the session's id."""
        parent = PurePath(get_str(record, "parentSession")).stem
        origin = parent.rpartition("_")[2]
        self.locate(at, base, cwd=record.get("cwd"), forked_from=origin)

    def _message(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        message = get_dict(record, "message")
        role = get_str(message, "role")
        if role == "user":
            self._user(message, base, at)
        elif role == "assistant":
            self._assistant(message, base, record, at)
        elif role == "toolResult":
            self._result(message, base, at)
        elif role == "bashExecution":
            self._ran(message, base, at)
        elif role in ("compactionSummary", "branchSummary"):
            self._summary(message, base, at, out)
        elif role not in ("system", "custom"):
            out.unknown_type(f"message {role}")

    def _injected(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        text = joined_text(record.get("content"))
        at.add("status.changed", fold(base, "text"), "system", text)

    def _usage(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        self._count(record, base, record, at)

    def _summary(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        text = get_str(record, "summary")
        about = {"summary": True} if text else None
        at.add("compaction", fold(base, "compaction"), "system", text, data=about)

    def _named(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        at.bucket.title(TITLE_PERSON, record.get("name"))

    # -- messages --------------------------------------------------------------------------------

    def _user(self, message: Record, base: str, at: RecordPlace) -> None:
        parts = [as_dict(part) for part in as_list(message.get("content"))]
        images = [
            image_reference(index, part.get("mimeType"), len(get_str(part, "data")) * 3 // 4)
            for index, part in enumerate(parts)
            if part.get("type") == "image"
        ]
        self.prompt(at, fold(base, "text"), joined_text(message.get("content")), images)

    def _assistant(self, message: Record, base: str, record: Record, at: RecordPlace) -> None:
        model = message.get("model")
        self._count(message, base, record, at)
        content = message.get("content")
        if isinstance(content, str):
            self.say(at, fold(base, "text"), content, model)
        for index, part in enumerate(map(as_dict, as_list(content))):
            kind = part.get("type")
            if kind == "thinking":
                self.think(at, fold(base, "thought", index), get_str(part, "thinking"), model)
            elif kind == "text":
                self.say(at, fold(base, "text", index), get_str(part, "text"), model)
            elif kind == "toolCall":
                ident = get_str(part, "id") or f"{base}:{index}"
                self.call(at, ident, get_str(part, "name"), get_dict(part, "arguments"), model)
        if message.get("stopReason") == "error":
            at.add("error", fold(base, "error"), "system", get_str(message, "errorMessage"))
        elif message.get("stopReason") == "aborted":
            key = fold(base, "aborted")
            at.add("turn.completed", key, "user", data={"interrupted": True})

    def _count(self, message: Record, base: str, record: Record, at: RecordPlace) -> None:
        """Its input excludes the cache, its output includes the thoughts. All zeros say nothing:
        answers of a restored session have them."""
        usage = get_dict(message, "usage")
        if usage.get("totalTokens") == 0:
            return
        counts = token_counts(
            usage,
            input="input",
            cache_read="cacheRead",
            cache_write="cacheWrite",
            output="output",
            reasoning="reasoning",
        )
        key = fold("pi", base, record.get("timestamp"))
        cost = get_dollars(get_dict(usage, "cost"), "total")
        count_tokens(at, key, message.get("model"), counts, reported=cost)

    def _result(self, message: Record, base: str, at: RecordPlace) -> None:
        ident = get_str(message, "toolCallId") or base
        text = joined_text(message.get("content"))
        outcome = CallOutcome(
            failed=message.get("isError") is True,
            exit_code=exit_code_in(text, _EXIT),
            diff=get_str(get_dict(message, "details"), "patch"),
        )
        self.result(at, ident, text, outcome)

    def _ran(self, message: Record, base: str, at: RecordPlace) -> None:
        """A command that the person ran with `!`."""
        command = get_str(message, "command")
        at.call(fold(base), base, "bash", {"command": command}, "user")
        code = message.get("exitCode")
        outcome = CallOutcome(exit_code=code if isinstance(code, int) else None)
        self.result(at, base, get_str(message, "output"), outcome)


Handler = Callable[[PiReader, Record, str, RecordPlace, Sink], None]
_ENTRIES: dict[str, Handler] = {
    "session": PiReader._session,
    "message": PiReader._message,
    "custom_message": PiReader._injected,
    "usage": PiReader._usage,
    "compaction": PiReader._summary,
    "branch_summary": PiReader._summary,
    "session_info": PiReader._named,
}
