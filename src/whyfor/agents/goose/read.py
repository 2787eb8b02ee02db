"""Read rows of Goose: sessions, which hold the tokens, and messages."""

from __future__ import annotations

from whyfor.agents.base import as_dict, flatten, get_dict, get_dollars, get_int, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    decoded_object,
    decoded_objects,
    joined_text,
)
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT, TITLE_PERSON

# The arguments of an edit by the names that others have for them: its own are those of a search.
_EDIT = {"before": "old_str", "after": "new_str"}


class GooseReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind, row = record.get("type"), get_dict(record, "row")
        if kind == "sessions":
            self._session(row, out)
        elif kind == "messages":
            self._message(row, out)
        else:
            out.unknown_type(kind)

    def _session(self, row: Record, out: Sink) -> None:
        at = RecordPlace(out.main, parse_iso(row.get("created_at")))
        ident = get_str(row, "id") or out.main.session_id
        self.locate(at, ident, cwd=row.get("working_dir"))
        name = get_str(row, "name") or get_str(row, "description")
        is_persons = bool(row.get("user_set_name"))
        out.main.title(TITLE_PERSON if is_persons else TITLE_AGENT, name)
        model = get_str(decoded_object(row.get("model_config_json")), "model_name")
        if model:
            self.state["model"] = model
        # Totals, which grow. What of the input came from the cache it does not say.
        counts = {
            "input": get_int(row, "accumulated_input_tokens"),
            "output": get_int(row, "accumulated_output_tokens"),
        }
        cost = get_dollars(row, "accumulated_cost")
        count_tokens(at, fold("goose", ident), model, counts, lump=True, reported=cost)

    def _message(self, row: Record, out: Sink) -> None:
        at = RecordPlace(out.main, parse_iso(row.get("created_timestamp")))
        base = get_str(row, "message_id") or f"{out.main.session_id}:{row.get('id')}"
        about = decoded_object(row.get("metadata_json"))
        is_user = row.get("role") == "user"
        for index, part in enumerate(decoded_objects(row.get("content_json"))):
            self._part(part, fold(base, index), f"{base}:{index}", at)
            text = get_str(part, "text")
            if part.get("type") != "text":
                continue
            if not is_user:
                self.say(at, fold(base, "text", index), text, self.state.get("model"))
            elif about.get("userVisible") is False:
                at.add("status.changed", fold(base, "text", index), "system", text)
            else:
                self.prompt(at, fold(base, "text", index), text)

    def _part(self, part: Record, key: int, ident: str, at: RecordPlace) -> None:
        kind = part.get("type")
        if kind == "thinking":
            words = get_str(part, "thinking")
            self.think(at, fold(key, "thought"), words, self.state.get("model"))
        elif kind == "toolRequest":
            asked = get_dict(get_dict(part, "toolCall"), "value")
            given = _plain(get_dict(asked, "arguments"))
            name = get_str(asked, "name")
            self.call(at, get_str(part, "id") or ident, name, given, self.state.get("model"))
        elif kind == "toolResponse":
            self._result(part, get_str(part, "id") or ident, at)
        elif kind == "summarizationRequested":
            at.add("compaction", fold(key, "compaction"), "system", get_str(part, "msg"))

    def _result(self, part: Record, ident: str, at: RecordPlace) -> None:
        told = get_dict(part, "toolResult")
        value = told.get("value")
        result = as_dict(value)
        content = result.get("content") if result else value
        text = joined_text(content) or get_str(told, "error") or flatten(content)
        failed = told.get("status") == "error" or result.get("isError") is True
        code = get_int(get_dict(result, "structuredContent"), "exit_code")
        self.result(at, ident, text, CallOutcome(failed=failed, exit_code=code))


def _plain(given: Record) -> Record:
    if not isinstance(given.get("before"), str) or not isinstance(given.get("after"), str):
        return given
    return {_EDIT.get(name, name): value for name, value in given.items()}
