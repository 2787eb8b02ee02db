"""Read JSON lines by the rules of a definition. Every rule that a record fulfils applies."""

from __future__ import annotations

from collections.abc import Callable

from whyfor.agents.base import SourceShape, as_dict, as_int, as_list, as_str, flatten, get_dollars
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    decoded_object,
    joined_text,
    uncached,
)
from whyfor.agents.declared.definition import (
    AgentDefinition,
    RecordRule,
    find_value,
    is_met,
)
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT

_PARTS_MAX = 10_000  # of one record


class DeclaredReader(ChatReader):
    def __init__(self, state: Record, shape: SourceShape, definition: AgentDefinition) -> None:
        super().__init__(state, shape, definition.facts)
        self.definition = definition

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        names = self.definition.record
        at = RecordPlace(out.main, parse_iso(find_value(record, names.time)))
        ident = find_value(record, names.id)
        base = as_str(ident) or str(fold_bytes(offset, line))
        found = RuleReading(self, record, base, at)
        if not found.apply(self.definition.read, record, base):
            out.unknown_type(_kind(record))


class RuleReading:
    """One record while it is read."""

    def __init__(self, reader: DeclaredReader, record: Record, base: str, at: RecordPlace) -> None:
        self.reader = reader
        self.record = record  # the whole of it; paths in a part may also begin with `record.`
        self.base = base
        self.at = at

    def apply(self, rules: tuple[RecordRule, ...], part: Record, base: str) -> bool:
        """Apply the rules that a record, or a part of one, fulfils; return whether any did."""
        was_met = False
        for number, rule in enumerate(rules):
            if not is_met(part, rule.when):
                continue
            was_met = True
            name = f"{base}:{number}" if number else base
            if rule.each:
                self._parts(rule, part, name)
            elif rule.as_:
                _MEANINGS[rule.as_](self, rule, part, name)
        return was_met

    def _parts(self, rule: RecordRule, part: Record, base: str) -> None:
        found = as_list(find_value(part, rule.each))
        for index, element in enumerate(found[:_PARTS_MAX]):
            self.apply(rule.part, as_dict(element), f"{base}/{index}")

    def _value(self, part: Record, path: str) -> object:
        """Return what a path names in the part, or with `record.` in the whole record."""
        if path.startswith("record."):
            return find_value(self.record, path.removeprefix("record."))
        return find_value(part, path)

    def _text(self, part: Record, path: str) -> str:
        found = self._value(part, path)
        return joined_text(found) if isinstance(found, str | list) else ""

    # -- what rules mean -------------------------------------------------------------------------

    def _session(self, rule: RecordRule, part: Record, base: str) -> None:
        place = {
            "cwd": self._value(part, rule.cwd),
            "branch": self._value(part, rule.branch),
            "version": self._value(part, rule.version),
            "forked_from": self._value(part, rule.forked_from),
        }
        self.reader.locate(self.at, base, **place)

    def _title(self, rule: RecordRule, part: Record, base: str) -> None:
        self.at.bucket.title(TITLE_AGENT, self._value(part, rule.text))

    def _prompt(self, rule: RecordRule, part: Record, base: str) -> None:
        self.reader.prompt(self.at, fold(base, "text"), self._text(part, rule.text))

    def _say(self, rule: RecordRule, part: Record, base: str) -> None:
        model = self._value(part, rule.model)
        self.reader.say(self.at, fold(base, "text"), self._text(part, rule.text), model)

    def _think(self, rule: RecordRule, part: Record, base: str) -> None:
        model = self._value(part, rule.model)
        self.reader.think(self.at, fold(base, "thought"), self._text(part, rule.text), model)

    def _call(self, rule: RecordRule, part: Record, base: str) -> None:
        ident = as_str(self._value(part, rule.call)) or base
        tool = as_str(self._value(part, rule.tool))
        given = decoded_object(self._value(part, rule.input))
        self.reader.call(self.at, ident, tool, given, self._value(part, rule.model))

    def _result(self, rule: RecordRule, part: Record, base: str) -> None:
        ident = as_str(self._value(part, rule.call)) or base
        found = self._value(part, rule.text)
        outcome = CallOutcome(
            failed=self._value(part, rule.failed) is True,
            exit_code=as_int(self._value(part, rule.exit_code)),
            diff=as_str(self._value(part, rule.diff)),
            path=as_str(self._value(part, rule.path)),
        )
        text = self._text(part, rule.text) or flatten(found)
        self.reader.result(self.at, ident, text, outcome)

    def _tokens(self, rule: RecordRule, part: Record, base: str) -> None:
        counts = {
            "input": as_int(self._value(part, rule.input_tokens)),
            "cache_read": as_int(self._value(part, rule.cache_read)),
            "cache_write": as_int(self._value(part, rule.cache_write)),
            "output": as_int(self._value(part, rule.output_tokens)),
            "reasoning": as_int(self._value(part, rule.reasoning)),
        }
        if rule.includes_cache:
            counts["input"] = uncached(counts["input"], counts["cache_read"])
        cost = get_dollars({"cost": self._value(part, rule.cost)}, "cost")
        key = fold(self.reader.definition.name, base, self.at.when)
        model = self._value(part, rule.model)
        count_tokens(self.at, key, model, counts, reported=cost)

    def _error(self, rule: RecordRule, part: Record, base: str) -> None:
        self.at.add("error", fold(base, "error"), "system", self._text(part, rule.text))

    def _compaction(self, rule: RecordRule, part: Record, base: str) -> None:
        text = self._text(part, rule.text)
        about = {"summary": True} if text else None
        self.at.add("compaction", fold(base, "compaction"), "system", text, data=about)

    def _injected(self, rule: RecordRule, part: Record, base: str) -> None:
        text = self._text(part, rule.text)
        self.at.add("status.changed", fold(base, "injected"), "system", text)

    def _skip(self, rule: RecordRule, part: Record, base: str) -> None:
        """The record is known, and says nothing."""


def _kind(record: Record) -> str:
    """Return how an unknown record is called in reports."""
    for name in ("type", "kind", "event", "role"):
        if isinstance(record.get(name), str):
            return str(record[name])
    return f"keys {' '.join(sorted(record)[:6])}"


_MEANINGS: dict[str, Callable[[RuleReading, RecordRule, Record, str], None]] = {
    "session": RuleReading._session,
    "title": RuleReading._title,
    "prompt": RuleReading._prompt,
    "say": RuleReading._say,
    "think": RuleReading._think,
    "call": RuleReading._call,
    "result": RuleReading._result,
    "tokens": RuleReading._tokens,
    "error": RuleReading._error,
    "compaction": RuleReading._compaction,
    "injected": RuleReading._injected,
    "skip": RuleReading._skip,
}
