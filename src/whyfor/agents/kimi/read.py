"""Read a stream of Kimi. Kimi Code writes prompts and tokens up to three times; each is read from
one kind of record."""

from __future__ import annotations

import re
from collections.abc import Callable

from whyfor.agents.base import as_dict, as_str, get_dict, get_int, get_list, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    decoded_object,
    exit_code_in,
    joined_text,
    text_diff,
    token_counts,
)
from whyfor.agents.record_place import RecordPlace, remember
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT, TITLE_PERSON, TITLE_PROMPT

_EXIT = re.compile(r"(?m)(?:failed|Failed) with exit code: (-?\d{1,9})")
# Told elsewhere, or about the program alone.
_SILENT = frozenset(
    """
    context.append_message agent.message.appended runtime.set_binding permission.set_mode
    agent.turn.started agent.turn.ended plugin.session_start llm.tools_snapshot
    token_counting.measured token_counting.turn_recorded token_counting.rebased
    token_counting.truncated file_history.tracked file_history.checkpoint turn.ended
    prompt.completed prompt.aborted prompt.steered profile.update session.renamed
    full_compaction.begin full_compaction.cancel full_compaction.complete
    interruptionReminder.recorded mcp.tools_discovered plan.revision
    tools.register_user_tool tools.reset_active_tools tools.set_active_tools
    tools.unregister_user_tool tools.update_store turn.step.interrupted turn.step.retrying
    cron.add cron.cursor cron.delete goal.clear goal.create goal.update swarm_mode.enter
    swarm_mode.exit tower_mode.enter tower_mode.exit plan_mode.cancel plan_mode.enter
    plan_mode.exit task.started task.terminated task.waitDelivered agent.switched
    subagent.started subagent.completed subagent.failed subagent.cancelled
    subagent.suspended interaction.resolved TurnEnd StepBegin StepInterrupted
    MCPLoadingBegin MCPLoadingEnd ApprovalRequest ApprovalResponse StepEnd
    """.split()
)
_CALLS_MAX = 500
_GIT = re.compile(r"\A<git-context>.*?</git-context>\s*", re.DOTALL)  # before a subagent's task
_SILENT_EVENTS = ("step.begin", "step.end", "step.retry")


class StateReader(ChatReader):
    """What is known of a session: where it runs, what it is called, which one it is a fork of."""

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        cwd, origin = get_str(record, "cwd"), get_str(record, "forkedFrom")
        if cwd:
            out.main.facts.setdefault("cwd", cwd)
        if origin:
            out.main.facts["forked_from"] = origin
        title = get_str(record, "title") or get_str(record, "custom_title")
        rank = TITLE_PERSON if record.get("isCustomTitle") is True else TITLE_AGENT
        is_derived = record.get("titleKind") == "replaceable" or "custom_title" in record
        out.main.title(TITLE_PROMPT if is_derived else rank, title)


class WireReader(ChatReader):
    """The events of both programs."""

    @property
    def spawned(self) -> Record:
        """The sessions of subagents, by the call that started them."""
        found: Record = self.state.setdefault("spawned", {})
        return found

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        inner = get_dict(record, "message")
        is_former = "timestamp" in record and "payload" in inner
        told = inner if is_former else record
        when = parse_iso(record.get("timestamp" if is_former else "time"))
        if when is None:
            when = parse_iso(record.get("created_at"))
        at = RecordPlace(out.main, when)
        kind = get_str(told, "type")
        base = str(fold_bytes(offset, line))
        if handler := _RECORDS.get(kind):
            self._begin(at)
            handler(self, get_dict(told, "payload") if is_former else told, base, at, out)
        elif kind not in _SILENT:
            out.unknown_type(kind or record.get("type"))
        if origin := get_str(record, "restoredFrom"):
            out.main.mark_copied(origin)

    def _begin(self, at: RecordPlace) -> None:
        if "place" not in self.state and at.when is not None:
            self.locate(at, at.bucket.session_id, cwd=self.shape.cwd)

    # -- Kimi Code -------------------------------------------------------------------------------

    def _metadata(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        """The first record: it says only when the session began."""

    def _bound(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        if self.shape.parent:
            out.main.facts["subagent"] = get_str(told, "profileName") or None
        self._configured(told, base, at, out)

    def _spawned(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        """A call's subagent has a stream of its own, in a folder called by this id."""
        session = f"{get_str(told, 'subagentId')}@{self.shape.parent or out.main.session_id}"
        remember(self.spawned, get_str(told, "parentToolCallId"), session, _CALLS_MAX)

    def _prompted(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        text = _GIT.sub("", joined_text(told.get("input")))
        ident = get_str(told, "promptId") or get_str(told, "messageId") or base
        origin = get_dict(told, "origin")
        is_task = origin.get("name") == "subagent" and bool(self.shape.parent)
        if origin.get("kind") in (None, "user") or is_task:
            self.prompt(at, fold(ident, "text"), text)
        else:
            at.add("status.changed", fold(ident, "text"), "system", text)

    def _undone(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        """The last messages were taken back; their number is all that is told of them."""
        about = {"undone": get_int(told, "count")}
        at.add("status.changed", fold(base, "undo"), "user", data=about)

    def _cleared(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        at.add("status.changed", fold(base, "clear"), "user", data={"cleared": True})

    def _cancelled(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        about = {"interrupted": True, "reason": told.get("reason")}
        at.add("turn.completed", fold(base, "cancel"), "user", data=about)

    def _configured(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        cwd = get_dict(told, "environmentDisclosure").get("cwd")
        self.locate(at, base, cwd=cwd)

    def _interaction(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        """A person is asked: whether a call may run, or what the agent wants to know."""
        request = get_dict(told, "request")
        call = get_str(told, "toolCallId") or get_str(request, "toolCallId")
        ident = get_str(told, "id") or base
        if told.get("kind") == "question":
            at.question(fold(ident, "asked"), call or ident, request.get("questions"))
        elif told.get("kind") == "approval":
            text = get_str(request, "description") or get_str(request, "action")
            about = {"id": call or None, "request": ident}
            name = get_str(request, "toolName") or None
            key = fold(ident, "asked")
            at.add("approval.requested", key, "assistant", text, name, about)

    def _decided(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        """What a person, or their settings, said to a call."""
        result = get_dict(told, "result")
        word = get_str(result, "decision") or get_str(result, "kind") or as_str(told.get("result"))
        decision = "approved" if word.startswith(("approve", "allow")) else "denied"
        call = get_str(told, "toolCallId")
        about = {"id": call or None, "decision": decision}
        at.add("approval.resolved", fold(base, "decided"), "user", data=about)

    def _requested(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        """Only here is the model called by its name; elsewhere by the name of a setting."""
        self.state["model"] = get_str(told, "model") or self.state.get("model")

    def _spent(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        """Its input excludes the cache. A fork repeats the record, so its time and counts say which
        response it is."""
        counts = token_counts(
            get_dict(told, "usage"),
            input="inputOther",
            cache_read="inputCacheRead",
            cache_write="inputCacheCreation",
            output="output",
        )
        model = self.state.get("model") or told.get("model")
        count_tokens(at, fold("kimi", at.when, *counts.values()), model, counts)

    def _looped(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        event = get_dict(told, "event")
        kind = event.get("type")
        ident = get_str(event, "uuid") or base
        if kind == "content.part":
            self._part(get_dict(event, "part"), ident, at)
        elif kind == "tool.call":
            call = get_str(event, "toolCallId") or ident
            given = get_dict(event, "args")
            self.call(at, call, get_str(event, "name"), given, self.state.get("model"))
        elif kind == "tool.result":
            call = get_str(event, "toolCallId") or ident
            result = get_dict(event, "result")
            text = as_str(result.get("output")) or joined_text(result.get("output"))
            code = exit_code_in(text, _EXIT)
            failed = result.get("isError") is True
            subagent = as_str(self.spawned.get(call))
            outcome = CallOutcome(failed=failed, exit_code=code, subagent=subagent)
            self.result(at, call, text, outcome)
        elif kind not in _SILENT_EVENTS:
            out.unknown_type(f"event {kind}")

    def _forked(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        out.main.mark_copied()

    def _compacted(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        summary = told.get("summary")
        text = as_str(summary) or joined_text(as_dict(summary).get("content"))
        text = text or get_str(told, "contextSummary")
        about = {"summary": True} if text else None
        at.add("compaction", fold(base, "compaction"), "system", text, data=about)

    def _part(self, part: Record, base: str, at: RecordPlace) -> None:
        model = self.state.get("model")
        if part.get("type") == "think":
            self.think(at, fold(base, "thought"), get_str(part, "think"), model)
        else:
            self.say(at, fold(base, "text"), get_str(part, "text"), model)

    # -- Kimi CLI --------------------------------------------------------------------------------

    def _turn(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        self.prompt(at, fold(base, "text"), joined_text(told.get("user_input")))

    def _content(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        self._part(told, base, at)

    def _called(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        asked = get_dict(told, "function")
        given = _plain(decoded_object(asked.get("arguments")))
        self.call(at, get_str(told, "id") or base, get_str(asked, "name"), given)

    def _returned(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        value = get_dict(told, "return_value")
        shown = [as_dict(part) for part in get_list(value, "display")]
        diffs = [part for part in shown if part.get("type") == "diff"]
        message = get_str(value, "message")
        output = value.get("output")
        text = "\n".join(filter(None, (as_str(output) or joined_text(output), message)))
        outcome = CallOutcome(
            failed=value.get("is_error") is True,
            exit_code=exit_code_in(message, _EXIT),
            diff="".join(_hunk(part) for part in diffs),
            path=get_str(diffs[0], "path") if diffs else "",
        )
        self.result(at, get_str(told, "tool_call_id") or base, text, outcome)

    def _status(self, told: Record, base: str, at: RecordPlace, out: Sink) -> None:
        counts = token_counts(
            get_dict(told, "token_usage"),
            input="input_other",
            cache_read="input_cache_read",
            cache_write="input_cache_creation",
            output="output",
        )
        ident = get_str(told, "message_id") or base
        count_tokens(at, fold("kimi", ident), None, counts)


Handler = Callable[[WireReader, Record, str, RecordPlace, Sink], None]
_RECORDS: dict[str, Handler] = {
    "metadata": WireReader._metadata,
    "profile.bind": WireReader._bound,
    "turn.prompt": WireReader._prompted,
    "llm.request": WireReader._requested,
    "usage.record": WireReader._spent,
    "context.append_loop_event": WireReader._looped,
    "turn.steer": WireReader._prompted,
    "subagent.spawned": WireReader._spawned,
    "turn.cancel": WireReader._cancelled,
    "config.update": WireReader._configured,
    "context.compacted": WireReader._compacted,
    "context.apply_compaction": WireReader._compacted,
    "context.undo": WireReader._undone,
    "context.clear": WireReader._cleared,
    "interaction.request": WireReader._interaction,
    "permission.record_approval_result": WireReader._decided,
    "forked": WireReader._forked,
    "TurnBegin": WireReader._turn,
    "ContentPart": WireReader._content,
    "ToolCall": WireReader._called,
    "ToolResult": WireReader._returned,
    "StatusUpdate": WireReader._status,
    "CompactionBegin": WireReader._compacted,
    "CompactionEnd": WireReader._compacted,
}


def _plain(given: Record) -> Record:
    """Return a call's arguments with those of an edit side by side: it nests them."""
    edit = given.get("edit")
    several = [as_dict(each) for each in (edit if isinstance(edit, list) else [edit])]
    edits = [
        {"old_string": get_str(each, "old"), "new_string": get_str(each, "new")}
        for each in several
        if each
    ]
    if not edits:
        return given
    others = {name: value for name, value in given.items() if name != "edit"}
    return {**others, **edits[0]} if len(edits) == 1 else {**others, "edits": edits}


def _hunk(part: Record) -> str:
    """Return a piece of a file before and after as a unified diff, at the lines it is from."""
    path = get_str(part, "path")
    diff = text_diff(get_str(part, "old_text"), get_str(part, "new_text"), path)
    old, new = get_int(part, "old_start") or 1, get_int(part, "new_start") or 1
    if not diff or (old, new) == (1, 1):
        return diff

    def shifted(found: re.Match[str]) -> str:
        first = int(found[1]) + old - 1
        second = int(found[3]) + new - 1
        return f"@@ -{first}{found[2]} +{second}{found[4]} @@"

    return re.sub(r"(?m)^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@", shifted, diff)
