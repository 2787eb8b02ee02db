"""Read a session of Grok Build. Messages come in pieces, which are joined; a call is told again
when it is done."""

from __future__ import annotations

from collections.abc import Callable

from whyfor.agents.base import as_dict, flatten, get_dict, get_int, get_list, get_str
from whyfor.agents.chat import CallOutcome, ChatReader, count_tokens, text_diff, uncached
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT

DONE = ("completed", "failed", "cancelled")
_PIECES_MAX = 1 << 20  # characters of a message that is joined
_SILENT = (
    "hook_execution",
    "background_tasks",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "model_changed",
    "title_updated",
    "subagent_spawned",
    "subagent_finished",
)


class SummaryReader(ChatReader):
    """What is known of a session: where it runs, what it is called, which one it is a fork of."""

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        about = get_dict(record, "info")
        at = RecordPlace(out.main, parse_iso(record.get("created_at")))
        is_fork = bool(record.get("forked_at"))
        self.locate(
            at,
            out.main.session_id,
            cwd=about.get("cwd"),
            branch=record.get("head_branch"),
            forked_from=record.get("parent_session_id") if is_fork else None,
        )
        if record.get("session_kind") == "subagent":
            out.main.facts["subagent"] = get_str(record, "agent_name") or None
        title = get_str(record, "session_summary") or get_str(record, "generated_title")
        out.main.title(TITLE_AGENT, title)


class UpdatesReader(ChatReader):
    """The stream of updates."""

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        given = get_dict(record, "params")
        update, about = get_dict(given, "update"), get_dict(given, "_meta")
        when = parse_iso(about.get("agentTimestampMs")) or parse_iso(record.get("timestamp"))
        at = RecordPlace(out.main, when)
        kind = get_str(update, "sessionUpdate")
        if handler := _UPDATES.get(kind):
            # a fork's copy has the same number under its own session's id
            number = get_str(about, "eventId").removeprefix(get_str(given, "sessionId"))
            base = number or str(fold_bytes(offset, line))
            handler(self, update, f"{base} {when}", at, about)
        elif kind not in _SILENT:
            out.unknown_type(kind or record.get("method") or record.get("type"))
        if origin := get_str(record, "restoredFrom"):
            out.main.mark_copied(origin)

    # -- words -----------------------------------------------------------------------------------

    def _said(self, update: Record, base: str, at: RecordPlace, about: Record) -> None:
        """Add a piece of a message to those before it; the whole replaces what was known."""
        kind = get_str(update, "sessionUpdate")
        stream = [kind, about.get("promptId"), about.get("streamStartMs")]
        known = as_dict(self.state.get("open"))
        if known.get("stream") != stream:
            known = {"stream": stream, "key": fold(base, "text"), "at": at.when, "text": ""}
        text = get_str(known, "text") + get_str(get_dict(update, "content"), "text")
        self.state["open"] = known = {**known, "text": text[:_PIECES_MAX]}
        at.when = known.get("at") if isinstance(known.get("at"), int) else at.when
        key = known["key"] if isinstance(known.get("key"), int) else fold(base, "text")
        if kind == "user_message_chunk":
            self.prompt(at, key, known["text"])
        elif kind == "agent_thought_chunk":
            self.think(at, key, known["text"], self.state.get("model"))
        else:
            self.say(at, key, known["text"], self.state.get("model"))

    def _asked(self, update: Record, base: str, at: RecordPlace, about: Record) -> None:
        """A piece of a prompt; what a program added says so."""
        own = get_dict(update, "_meta")
        self.state["model"] = get_str(own, "modelId") or self.state.get("model")
        if own.get("synthetic_reason") or own.get("syntheticReason"):
            text = get_str(get_dict(update, "content"), "text")
            at.add("status.changed", fold(base, "text"), "system", text)
        else:
            self._said(update, base, at, {"promptId": own.get("promptIndex")})

    # -- tools -----------------------------------------------------------------------------------

    def _called(self, update: Record, base: str, at: RecordPlace, about: Record) -> None:
        self.state.pop("open", None)
        ident = get_str(update, "toolCallId") or base
        given = get_dict(update, "rawInput")
        self.call(at, ident, call_name(update), given, self.state.get("model"))

    def _updated(self, update: Record, base: str, at: RecordPlace, about: Record) -> None:
        """A call's status. Only the last says what came of it."""
        if update.get("status") not in DONE:
            return
        ident = get_str(update, "toolCallId") or base
        parts = [as_dict(part) for part in get_list(update, "content")]
        raw = get_dict(update, "rawOutput")
        self.result(at, ident, result_text(raw, parts), _outcome(update, raw, parts))

    # -- turns -----------------------------------------------------------------------------------

    def _completed(self, update: Record, base: str, at: RecordPlace, about: Record) -> None:
        """Its input includes what came from the cache. A fork repeats its origin's turns, so the
        prompt's id says which turn it is. A subagent's tokens are in its parent's turn too: they
        are counted there."""
        self.state.pop("open", None)
        if self.shape.parent:
            return
        usage = get_dict(update, "usage")
        by_model = get_dict(usage, "modelUsage") or {"": usage}
        for model, spent in by_model.items():
            cached = get_int(as_dict(spent), "cachedReadTokens")
            counts = {
                "input": uncached(get_int(as_dict(spent), "inputTokens"), cached),
                "cache_read": cached,
                "cache_write": get_int(as_dict(spent), "cacheCreationTokens"),
                "output": get_int(as_dict(spent), "outputTokens"),
                "reasoning": get_int(as_dict(spent), "reasoningTokens"),
            }
            turn = get_str(update, "prompt_id") or base
            is_lump = as_dict(spent).get("modelCalls") != 1
            count_tokens(at, fold("grok", turn, model), model, counts, lump=is_lump)
        if update.get("stop_reason") == "cancelled":
            key = fold(base, "cancelled")
            at.add("turn.completed", key, "user", data={"interrupted": True})


Handler = Callable[[UpdatesReader, Record, str, RecordPlace, Record], None]
_UPDATES: dict[str, Handler] = {
    "user_message_chunk": UpdatesReader._asked,
    "agent_thought_chunk": UpdatesReader._said,
    "agent_message_chunk": UpdatesReader._said,
    "tool_call": UpdatesReader._called,
    "tool_call_update": UpdatesReader._updated,
    "turn_completed": UpdatesReader._completed,
}


def call_name(update: Record) -> str:
    """Return the name of the tool that is called."""
    tool = get_dict(get_dict(update, "_meta"), "x.ai/tool")
    return get_str(tool, "name") or get_str(update, "title")


def result_text(raw: Record, parts: list[Record]) -> str:
    """Return what the model was told of a call's result."""
    for told in (raw, *(as_dict(inner) for inner in raw.values())):
        for name in ("output_for_prompt", "tool_output_for_prompt"):
            if text := get_str(told, name):
                return text
    shown = [get_str(get_dict(part, "content"), "text") for part in parts]
    return "\n".join(filter(None, shown)) or flatten(raw)


def _outcome(update: Record, raw: Record, parts: list[Record]) -> CallOutcome:
    """A command that failed is marked as completed: its exit code says it."""
    diff, path = "", ""
    for part in parts:
        if part.get("type") == "diff":
            path = get_str(part, "path")
            before = get_str(part, "oldText")
            # of an edit these are the words it names, without the lines around them
            is_whole = bool(before) and raw.get("type") == "Write"
            diff = text_diff(before, get_str(part, "newText"), path) if is_whole else ""
    return CallOutcome(
        failed=update.get("status") != "completed",
        exit_code=get_int(raw, "exit_code"),
        diff=diff,
        path=path,
        subagent=get_str(raw, "subagent_id"),
        rejected=update.get("status") == "cancelled",
    )
