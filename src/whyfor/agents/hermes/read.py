"""Read rows of Hermes Agent: sessions, which hold the tokens, and messages in OpenAI's form."""

from __future__ import annotations

from whyfor.agents.base import as_str, get_dict, get_dollars, get_int, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    decoded_object,
    decoded_objects,
    token_counts,
)
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT


class HermesReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind, row = record.get("type"), get_dict(record, "row")
        if kind == "sessions":
            self._session(row, out)
        elif kind == "messages":
            self._message(row, out)
        else:
            out.unknown_type(kind)

    def _session(self, row: Record, out: Sink) -> None:
        at = RecordPlace(out.main, parse_iso(row.get("started_at")))
        ident = get_str(row, "id") or out.main.session_id
        self.locate(
            at,
            ident,
            cwd=row.get("cwd"),
            branch=row.get("git_branch"),
            forked_from=row.get("parent_session_id"),
        )
        out.main.title(TITLE_AGENT, row.get("title"))
        model = get_str(row, "model")
        if model:
            self.state["model"] = model
        # Totals, which grow; the input excludes the cache.
        counts = token_counts(
            row,
            input="input_tokens",
            cache_read="cache_read_tokens",
            cache_write="cache_write_tokens",
            output="output_tokens",
            reasoning="reasoning_tokens",
        )
        if any(counts.values()):
            cost = get_dollars(row, "actual_cost_usd")
            count_tokens(at, fold("hermes", ident), model, counts, lump=True, reported=cost)

    def _message(self, row: Record, out: Sink) -> None:
        at = RecordPlace(out.main, parse_iso(row.get("timestamp")))
        base = f"{out.main.session_id}:{row.get('id')}"
        role, text = row.get("role"), get_str(row, "content")
        if role == "user":
            self.prompt(at, fold(base, "text"), text)
        elif role == "assistant":
            self._assistant(row, base, text, at)
        elif role == "tool":
            self._result(get_str(row, "tool_call_id") or base, text, at)
        elif role != "system":
            out.unknown_type(f"message {role}")

    def _assistant(self, row: Record, base: str, text: str, at: RecordPlace) -> None:
        model = self.state.get("model")
        thought = get_str(row, "reasoning_content") or get_str(row, "reasoning")
        self.think(at, fold(base, "thought"), thought, model)
        self.say(at, fold(base, "text"), text, model)
        for index, call in enumerate(decoded_objects(row.get("tool_calls"))):
            asked = get_dict(call, "function")
            ident = get_str(call, "id") or f"{base}:{index}"
            given = decoded_object(asked.get("arguments"))
            self.call(at, ident, get_str(asked, "name"), given, model)

    def _result(self, ident: str, text: str, at: RecordPlace) -> None:
        """A result is an object, written as text."""
        told = decoded_object(text)
        output = as_str(told.get("output"))
        failed = bool(told.get("error")) or told.get("success") is False
        outcome = CallOutcome(
            failed=failed,
            exit_code=get_int(told, "exit_code"),
            diff=get_str(told, "diff").replace("--- a//", "--- a/").replace("+++ b//", "+++ b/"),
            path=get_str(told, "resolved_path"),
        )
        self.result(at, ident, output or text, outcome)
