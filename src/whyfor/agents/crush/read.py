"""Read rows of Crush: sessions, which hold the tokens, and messages in parts."""

from __future__ import annotations

import re

from whyfor.agents.base import get_dict, get_dollars, get_int, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    decoded_object,
    decoded_objects,
    exit_code_in,
    text_diff,
)
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT

_EXIT = re.compile(r"(?m)^Exit code (-?\d{1,9})$")
_NO_TITLE = ("New Session", "Untitled Session", "New Agent Session")
_DENIED = "User denied permission"


class CrushReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind, row = record.get("type"), get_dict(record, "row")
        if kind == "sessions":
            self._session(row, record.get("folder"), out)
        elif kind == "messages":
            self._message(row, out)
        else:
            out.unknown_type(kind)

    def _session(self, row: Record, folder: object, out: Sink) -> None:
        at = RecordPlace(out.main, parse_iso(row.get("created_at")))
        ident = get_str(row, "id") or out.main.session_id
        self.locate(at, ident, cwd=folder)
        title = get_str(row, "title")
        if title not in _NO_TITLE:
            out.main.title(TITLE_AGENT, title)
        # Totals, which grow. What of the input came from the cache it does not say.
        counts = {
            "input": get_int(row, "prompt_tokens"),
            "output": get_int(row, "completion_tokens"),
        }
        if any(counts.values()):
            cost = get_dollars(row, "cost")
            count_tokens(at, fold("crush", ident), None, counts, lump=True, reported=cost)

    def _message(self, row: Record, out: Sink) -> None:
        at = RecordPlace(out.main, parse_iso(row.get("created_at")))
        base = get_str(row, "id") or out.main.session_id
        parts = decoded_objects(row.get("parts"))
        if row.get("is_summary_message") in (1, True):
            self._summary(parts, base, at)
            return
        for index, part in enumerate(parts):
            self._part(row, part, f"{base}:{index}", at)

    def _summary(self, parts: list[Record], base: str, at: RecordPlace) -> None:
        texts = [get_str(get_dict(part, "data"), "text") for part in parts]
        text = "\n".join(filter(None, texts))
        at.add("compaction", fold(base, "text"), "system", text, data={"summary": True})

    def _part(self, row: Record, part: Record, base: str, at: RecordPlace) -> None:
        kind, data = part.get("type"), get_dict(part, "data")
        model = row.get("model")
        if kind == "text":
            self._text(row, data, base, at)
        elif kind == "reasoning":
            self.think(at, fold(base, "thought"), get_str(data, "thinking"), model)
        elif kind == "tool_call" and data.get("finished") is not False:
            given = decoded_object(data.get("input"))
            self.call(at, get_str(data, "id") or base, get_str(data, "name"), given, model)
        elif kind == "tool_result":
            self._result(data, get_str(data, "tool_call_id") or base, at)
        elif kind == "finish" and data.get("reason") == "canceled":
            at.add("turn.completed", fold(base, "end"), "user", data={"interrupted": True})
        elif kind == "finish" and data.get("reason") == "error":
            at.add("error", fold(base, "end"), "system", get_str(data, "message"))

    def _text(self, row: Record, data: Record, base: str, at: RecordPlace) -> None:
        text = get_str(data, "text")
        if row.get("role") == "assistant":
            self.say(at, fold(base, "text"), text, row.get("model"))
        elif data.get("hidden") is True:
            at.add("status.changed", fold(base, "text"), "system", text)
        else:
            self.prompt(at, fold(base, "text"), text)

    def _result(self, data: Record, ident: str, at: RecordPlace) -> None:
        """An edit has all of the file before and after it."""
        text = get_str(data, "content")
        told = decoded_object(data.get("metadata"))
        before, after = get_str(told, "old_content"), get_str(told, "new_content")
        failed = data.get("is_error") is True
        code = get_int(told, "exit_code")
        outcome = CallOutcome(
            failed=failed,
            exit_code=exit_code_in(text, _EXIT) if code is None else code,
            diff=text_diff(before, after, "file"),
            rejected=failed and text.startswith(_DENIED),
        )
        self.result(at, ident, text, outcome)
