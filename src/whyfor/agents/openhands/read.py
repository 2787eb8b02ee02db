"""Read a conversation of OpenHands: events one by one, and the tokens in its state."""

from __future__ import annotations

from collections.abc import Callable

from whyfor.agents.base import as_dict, get_dict, get_dollars, get_int, get_list, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    joined_text,
    text_diff,
    uncached,
)
from whyfor.agents.openhands.times import local_time
from whyfor.agents.record_place import RecordPlace, known_values
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso

_SILENT = (
    "HookExecutionEvent",
    "ConversationStateUpdateEvent",
    "CondensationRequest",
    "TokenEvent",
)
_EDITOR = "FileEditorObservation"


class EventReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind = get_str(record, "kind")
        at = RecordPlace(out.main, local_time(record.get("timestamp")))
        base = get_str(record, "id") or str(fold_bytes(offset, line))
        if handler := _EVENTS.get(kind):
            handler(self, record, base, at)
        elif kind not in _SILENT:
            out.unknown_type(record.get("kind"))

    def _started(self, record: Record, base: str, at: RecordPlace) -> None:
        self.locate(at, at.bucket.session_id, cwd=self.shape.cwd)

    def _message(self, record: Record, base: str, at: RecordPlace) -> None:
        """What hooks and skills added to a prompt stands beside it."""
        message = get_dict(record, "llm_message")
        text = joined_text(message.get("content"))
        if record.get("source") == "user":
            self.prompt(at, fold(base, "text"), text)
        elif record.get("source") == "agent":
            self.think(at, fold(base, "thought"), get_str(message, "reasoning_content"))
            self.say(at, fold(base, "text"), text)
        else:
            at.add("status.changed", fold(base, "text"), "system", text)

    def _action(self, record: Record, base: str, at: RecordPlace) -> None:
        action = get_dict(record, "action")
        self.think(at, fold(base, "thought"), get_str(record, "reasoning_content"))
        self.say(at, fold(base, "text"), joined_text(record.get("thought")))
        name = get_str(record, "tool_name")
        if name == "finish":
            self.say(at, fold(base, "finish"), get_str(action, "message"))
            return
        # what an argument is not given is told as null: then it is none
        given = {key: value for key, value in known_values(action).items() if key != "kind"}
        self.call(at, get_str(record, "tool_call_id") or base, name, given)

    def _observation(self, record: Record, base: str, at: RecordPlace) -> None:
        seen = get_dict(record, "observation")
        if record.get("tool_name") == "finish":
            return
        text = joined_text(seen.get("content"))
        is_edit = seen.get("kind") == _EDITOR
        path = get_str(seen, "path") if is_edit else ""
        before = get_str(seen, "old_content")
        outcome = CallOutcome(
            failed=seen.get("is_error") is True,
            exit_code=get_int(seen, "exit_code"),
            diff=text_diff(before, get_str(seen, "new_content"), path) if is_edit else "",
            path=path,
        )
        ident = get_str(record, "tool_call_id") or base
        self.result(at, ident, text, outcome)
        if path and not outcome.failed:
            action = "read" if seen.get("command") == "view" else "write"
            at.touch(fold(ident, "result"), [path], action)

    def _failed(self, record: Record, base: str, at: RecordPlace) -> None:
        text = get_str(record, "error") or get_str(record, "detail")
        if ident := get_str(record, "tool_call_id"):
            self.result(at, ident, text, CallOutcome(failed=True))
        else:
            at.add("error", fold(base, "error"), "system", text)

    def _rejected(self, record: Record, base: str, at: RecordPlace) -> None:
        text = get_str(record, "rejection_reason")
        ident = get_str(record, "tool_call_id") or base
        self.result(at, ident, text, CallOutcome(failed=True, rejected=True))

    def _condensed(self, record: Record, base: str, at: RecordPlace) -> None:
        text = get_str(record, "summary")
        about = {"summary": True} if text else None
        at.add("compaction", fold(base, "compaction"), "system", text, data=about)

    def _paused(self, record: Record, base: str, at: RecordPlace) -> None:
        at.add("turn.completed", fold(base, "pause"), "user", data={"interrupted": True})


class ConversationStateReader:
    """The state of a conversation: where it runs, and the tokens of each response."""

    def __init__(self, state: Record) -> None:
        self.state = state

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        if cwd := get_str(get_dict(record, "workspace"), "working_dir"):
            out.main.facts.setdefault("cwd", cwd)
        at = RecordPlace(out.main, None)
        metrics = get_dict(get_dict(record, "stats"), "usage_to_metrics")
        for told in map(as_dict, metrics.values()):
            spent = [as_dict(each) for each in get_list(told, "token_usages")]
            costs = [as_dict(each) for each in get_list(told, "costs")]
            # with a price there is one cost for each response, with its time
            paired = costs if len(costs) == len(spent) else [{}] * len(spent)
            for each, cost in zip(spent, paired, strict=True):
                at.when = parse_iso(cost.get("timestamp"))
                self._count(each, cost, at)

    def _count(self, spent: Record, cost: Record, at: RecordPlace) -> None:
        """Its input includes what came from the cache."""
        cached = get_int(spent, "cache_read_tokens")
        counts = {
            "input": uncached(get_int(spent, "prompt_tokens"), cached),
            "cache_read": cached,
            "cache_write": get_int(spent, "cache_write_tokens"),
            "output": get_int(spent, "completion_tokens"),
            "reasoning": get_int(spent, "reasoning_tokens"),
        }
        key = fold("openhands", at.bucket.session_id, spent.get("response_id"))
        paid = get_dollars(cost, "cost")
        count_tokens(at, key, spent.get("model"), counts, reported=paid)


Handler = Callable[[EventReader, Record, str, RecordPlace], None]
_EVENTS: dict[str, Handler] = {
    "SystemPromptEvent": EventReader._started,
    "MessageEvent": EventReader._message,
    "ActionEvent": EventReader._action,
    "ObservationEvent": EventReader._observation,
    "AgentErrorEvent": EventReader._failed,
    "ConversationErrorEvent": EventReader._failed,
    "UserRejectObservation": EventReader._rejected,
    "Condensation": EventReader._condensed,
    "CondensationSummaryEvent": EventReader._condensed,
    "PauseEvent": EventReader._paused,
}
