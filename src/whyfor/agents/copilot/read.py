"""Read the event log of Copilot CLI."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from whyfor.agents.base import (
    as_dict,
    as_str,
    flatten,
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.copilot.calls import decoded, touched_files
from whyfor.agents.copilot.record_place import CopilotPlace
from whyfor.agents.copilot.usage import RunUsage
from whyfor.agents.facts import MARKER
from whyfor.agents.record_place import known_values, remember
from whyfor.model.findings import Bucket, Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT

# Known events without conversation: steps of a turn, state of the program, progress.
SILENT = frozenset(
    str.split(
        "assistant.turn_start assistant.turn_end assistant.intent assistant.idle assistant.usage "
        "assistant.message_start assistant.message_delta assistant.reasoning_delta "
        "assistant.streaming_delta "
        "assistant.tool_call_delta assistant.server_tool_progress assistant.fusion_phase_started "
        "assistant.fusion_phase_completed assistant.fusion_phase_failed auto_mode_switch.requested "
        "auto_mode_switch.completed auto_mode.resolved capabilities.changed command.queued "
        "command.execute "
        "command.completed commands.changed elicitation.completed external_tool.requested "
        "external_tool.completed hook.start hook.end hook.progress mcp.oauth_required "
        "mcp.oauth_completed "
        "mcp.headers_refresh_required mcp.headers_refresh_completed model.call_finished "
        "pending_messages.modified sampling.requested sampling.completed "
        "session.background_tasks_changed "
        "session.binary_asset session.canvas_closed session.canvas_opened session.compaction_start "
        "session.custom_agents_updated session.extensions_loaded session.handoff session.idle "
        "session.info "
        "session.mcp_server_status_changed session.mcp_servers_loaded "
        "session.mode_notice_delivered "
        "session.model_change session.permissions_changed session.plan_changed "
        "session.remote_steerable_changed session.schedule_cancelled session.schedule_created "
        "session.schedule_rearmed session.session_limits_changed session.skills_loaded "
        "session.todos_changed session.tools_updated session.usage_checkpoint session.usage_info "
        "session.warning session.workspace_file_changed session.autopilot_objective_changed "
        "subagent.configured subagent.deselected system.message tool.execution_partial_result "
        "tool.execution_progress tool.search_activated user_input.requested user_input.completed"
    )
)
_EXIT = r"<[^<>\n]*exit code (-?\d+)[^<>\n]*>\s*\Z"
_NOTICE = r"(?s)\s*<system_notification>\s*(.*?)\s*(?:</system_notification>\s*)?\Z"
_CALL_USAGE = "session.usage_record"
_CALLS_MAX = 500  # tool calls that are remembered; older ones are never answered


# Who denied a request, by the kind of its result.
_ANSWERED_BY = {
    "denied-interactively-by-user": "terminal",
    "denied-no-approval-rule-and-could-not-request-from-user": "nobody",
    "denied-by-rules": "agent",
    "denied-by-content-exclusion-policy": "agent",
    "denied-by-permission-request-hook": "hook",
}


class EventsReader:
    """`events.jsonl`: the events of the main agent and its subagents, in one order."""

    def __init__(self, state: Record) -> None:
        self.state = state
        self.calls: dict[str, list[Any]] = state.setdefault("calls", {})
        self.names: dict[str, str] = state.setdefault("names", {})
        self.usage = RunUsage(state)

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind, data = get_str(record, "type"), get_dict(record, "data")
        if kind == "session.model_change":
            self.state["model"] = get_str(data, "newModel") or self.state.get("model")
        if handler := EVENTS.get(kind):
            ident = get_str(record, "id") or str(fold_bytes(offset, line))
            bucket = self._bucket(kind, record, data, out)
            at = CopilotPlace(out, bucket, parse_iso(record.get("timestamp")), ident)
            handler(self, data, at)
        elif kind not in SILENT:
            out.unknown_type(kind)
        if origin := get_str(record, "restoredFrom"):
            out.main.mark_copied(origin)

    def _bucket(self, kind: str, record: Record, data: Record, out: Sink) -> Bucket:
        """Return whose event it is. Subagents write into the same log, under their own id or that
        of the call that started them."""
        agent = get_str(record, "agentId") or get_str(data, "parentToolCallId")
        if not agent or (kind != _CALL_USAGE and kind.startswith(("subagent.", "session."))):
            return out.main
        bucket = out.subagent(f"agent-{agent}@{out.main.session_id}")
        if agent in self.names:
            bucket.facts["subagent"] = self.names[agent]
        return bucket

    # -- the session -----------------------------------------------------------------------------

    def _session_start(self, data: Record, at: CopilotPlace) -> None:
        self.state.setdefault("model", get_str(data, "selectedModel") or None)
        version = get_str(data, "copilotVersion")
        if version:
            at.bucket.facts["version"] = version
        self._place(get_dict(data, "context"), {"version": version}, at)

    def _session_resume(self, data: Record, at: CopilotPlace) -> None:
        self._place(get_dict(data, "context"), {}, at)

    def _session_context_changed(self, data: Record, at: CopilotPlace) -> None:
        self._place(get_dict(data, "context") or data, {}, at)

    def _place(self, context: Record, told: Record, at: CopilotPlace) -> None:
        """Add where the session runs, at its start and whenever it changes."""
        cwd, branch = get_str(context, "cwd"), get_str(context, "branch")
        before = self.state.get("place")
        if before is not None and (before == [cwd, branch] or not cwd):
            return
        self.state["place"] = [cwd, branch]
        repository = get_str(context, "repository")
        place = {"cwd": cwd, "branch": branch, "repository": repository, **told}
        at.locate(at.key(None, "place"), place, first=before is None)

    def _session_mode_changed(self, data: Record, at: CopilotPlace) -> None:
        at.add("status.changed", at.key(), "user", data={"mode": data.get("newMode")})

    def _session_title_changed(self, data: Record, at: CopilotPlace) -> None:
        at.bucket.title(TITLE_AGENT, data.get("title"))

    def _session_compaction_complete(self, data: Record, at: CopilotPlace) -> None:
        if data.get("success") is False:
            at.add(
                "error",
                at.key(),
                "system",
                get_str(data, "error") or flatten(data.get("error"), 2000),
            )
            return
        names = (
            "trigger",
            "preCompactionTokens",
            "postCompactionTokens",
            "tokensRemoved",
            "messagesRemoved",
        )
        kept = {name: data[name] for name in names if data.get(name) is not None}
        at.add("compaction", at.key(), "system", get_str(data, "summaryContent"), data=kept)

    def _session_truncation(self, data: Record, at: CopilotPlace) -> None:
        removed = get_int(data, "messagesRemovedDuringTruncation")
        at.add(
            "compaction", at.key(), "system", data={"truncated": True, "messagesRemoved": removed}
        )

    def _session_context_cleared(self, data: Record, at: CopilotPlace) -> None:
        at.add("status.changed", at.key(), "user", data={"cleared": True})

    def _session_snapshot_rewind(self, data: Record, at: CopilotPlace) -> None:
        at.add("status.changed", at.key(), "user", data={"rewound_to": data.get("upToEventId")})

    def _session_error(self, data: Record, at: CopilotPlace) -> None:
        text = get_str(data, "message") or get_str(data, "errorMessage") or flatten(data, 2000)
        at.add("error", at.key(), "system", text, data={"type": data.get("errorType")})

    def _model_call_failure(self, data: Record, at: CopilotPlace) -> None:
        self._session_error(data, at)

    def _session_task_complete(self, data: Record, at: CopilotPlace) -> None:
        done = {"task_complete": data.get("outcome") or data.get("success", True)}
        at.add("status.changed", at.key(), "assistant", get_str(data, "summary"), data=done)

    def _abort(self, data: Record, at: CopilotPlace) -> None:
        known = {"interrupted": True, "reason": data.get("reason")}
        at.add("turn.completed", at.key(), "user", data=known)

    def _system_notification(self, data: Record, at: CopilotPlace) -> None:
        found = re.match(_NOTICE, get_str(data, "content"))
        kind = get_dict(data, "kind").get("type")
        at.add(
            "status.changed",
            at.key(),
            "system",
            found[1] if found else "",
            data={"notification": kind},
        )

    # -- the conversation ------------------------------------------------------------------------

    def _user_message(self, data: Record, at: CopilotPlace) -> None:
        text, source = get_str(data, "content"), get_str(data, "source")
        files = [
            _reference(as_dict(part), index)
            for index, part in enumerate(get_list(data, "attachments"))
        ]
        source = source or ("autopilot" if data.get("isAutopilotContinuation") else "")
        source = source or get_str(data, "inputOrigin")
        if text.lstrip().startswith(MARKER):  # what a restore added
            at.add("status.changed", at.key(), "system", text)
        elif source and source != "user":
            at.add("status.changed", at.key(), "system", text, data={"source": source})
        elif text.strip() or files:
            at.add(
                "user.prompt",
                at.key(),
                "assistant" if at.is_side else "user",
                text,
                data={"images": files} if files else None,
            )

    def _assistant_reasoning(self, data: Record, at: CopilotPlace) -> None:
        self._think("event", get_str(data, "content"), at.key(data.get("reasoningId")), at)

    def _think(self, place: str, text: str, key: int, at: CopilotPlace) -> None:
        """Add a thought once; it may be in an event of its own and again in the message it led
        to."""
        if not text.strip():
            return
        where, what = get_list(self.state, "thought") or ["", 0]
        mark = fold(text)
        self.state["thought"] = [place, mark]
        if where in ("", place) or what != mark:
            at.add("assistant.thinking", key, "assistant", text, data=self._model({}))

    def _model(self, data: Record) -> Record | None:
        model = get_str(data, "model") or self.state.get("model")
        return {"model": model} if model else None

    def _assistant_message(self, data: Record, at: CopilotPlace) -> None:
        if model := get_str(data, "model"):
            self.state["model"] = model
        ident = get_str(data, "messageId") or at.ident
        chunk = get_int(data, "chunkIndex") or 0
        self._think("message", get_str(data, "reasoningText"), fold(ident, chunk, "thinking"), at)
        text = get_str(data, "content")
        if text.strip():
            at.add(
                "assistant.message", fold(ident, chunk), "assistant", text, data=self._model(data)
            )
        for index, request in enumerate(map(as_dict, get_list(data, "toolRequests"))):
            call, name = get_str(request, "toolCallId"), get_str(request, "name")
            key = at.key(call) if call else fold(ident, chunk, index)
            self._call(call, key, name, decoded(request.get("arguments")), at)
        self.usage.response(data, ident, at)

    # -- tools -----------------------------------------------------------------------------------

    def _call(
        self,
        ident: str,
        key: int,
        name: str,
        given: Any,
        at: CopilotPlace,
        actor: str = "assistant",
    ) -> None:
        at.call(key, ident or None, name, given, actor)
        if name == "ask_user":
            at.question(key, ident, [given])
        if ident:
            remember(self.calls, ident, touched_files(name, given), _CALLS_MAX)

    def _tool_user_requested(self, data: Record, at: CopilotPlace) -> None:
        self._started(data, "user", at)

    def _tool_execution_start(self, data: Record, at: CopilotPlace) -> None:
        self._started(data, "assistant", at)

    def _started(self, data: Record, actor: str, at: CopilotPlace) -> None:
        """Add a call that no message contains: the person's own, or one made inside another
        tool."""
        ident = get_str(data, "toolCallId")
        if ident not in self.calls:
            name = get_str(data, "toolName")
            self._call(ident, at.key(ident), name, decoded(data.get("arguments")), at, actor)

    def _tool_execution_complete(self, data: Record, at: CopilotPlace) -> None:
        ident = get_str(data, "toolCallId")
        result, error = get_dict(data, "result"), get_dict(data, "error")
        text = (
            get_str(result, "content")
            or get_str(error, "message")
            or get_str(result, "detailedContent")
        )
        known: Record = {"id": ident or None}
        # it is in the last tag, at the very end
        if found := re.match(_EXIT, text[text.rfind("<") :]):
            known["exit_code"] = int(found[1])
        if data.get("success") is False or error or known.get("exit_code"):
            known["failed"] = True
        if get_str(error, "code") in ("denied", "rejected"):
            known["rejected"] = True
        key = at.key(ident, "result")
        at.add("tool.result", key, "tool", text, data=known)
        touched = self.calls.get(ident, [])
        if ident in self.calls:
            self.calls[ident] = []  # known, and done
        if "failed" not in known:
            for path, action in touched:
                at.touch(key, [path], action)

    def _permission_requested(self, data: Record, at: CopilotPlace) -> None:
        request = get_dict(data, "permissionRequest")
        names = ("fullCommandText", "path", "fileName", "url", "toolName", "intention")
        text = next(filter(None, (get_str(request, name) for name in names)), "")
        known = {"id": request.get("toolCallId"), "request": data.get("requestId")}
        key = at.key(data.get("requestId"), "asked")
        at.add("approval.requested", key, "assistant", text, get_str(request, "kind"), known)

    def _permission_completed(self, data: Record, at: CopilotPlace) -> None:
        outcome = get_str(get_dict(data, "result"), "kind")
        decision = "approved" if outcome.startswith("approved") else "denied"
        known = {
            "id": data.get("toolCallId"),
            "request": data.get("requestId"),
            "decision": decision,
        }
        if outcome in _ANSWERED_BY:
            known["by"] = _ANSWERED_BY[outcome]
        key = at.key(data.get("requestId"), "answered")
        at.add("approval.resolved", key, "user", data=known | {"result": outcome})

    def _exit_plan_mode_requested(self, data: Record, at: CopilotPlace) -> None:
        text = get_str(data, "planContent") or get_str(data, "summary")
        known = {"request": data.get("requestId")}
        at.add(
            "approval.requested",
            at.key(data.get("requestId"), "asked"),
            "assistant",
            text,
            "plan",
            known,
        )

    def _exit_plan_mode_completed(self, data: Record, at: CopilotPlace) -> None:
        decision = "denied" if data.get("approved") is False else "approved"
        known = {"request": data.get("requestId"), "decision": decision}
        key = at.key(data.get("requestId"), "answered")
        at.add("approval.resolved", key, "user", get_str(data, "feedback"), data=known)

    def _elicitation_requested(self, data: Record, at: CopilotPlace) -> None:
        known = {"id": data.get("toolCallId"), "request": data.get("requestId")}
        at.add(
            "question.asked",
            at.key(data.get("requestId")),
            "assistant",
            get_str(data, "message"),
            data=known,
        )

    def _skill_invoked(self, data: Record, at: CopilotPlace) -> None:
        name = get_str(data, "name")
        at.add("status.changed", at.key(), "assistant", name, data={"skill": name})

    # -- subagents -------------------------------------------------------------------------------

    def _subagent_started(self, data: Record, at: CopilotPlace) -> None:
        ident, name = get_str(data, "toolCallId"), get_str(data, "agentName")
        remember(self.names, ident, name, _CALLS_MAX)
        text = get_str(data, "agentDisplayName") or get_str(data, "agentDescription")
        at.add("subagent.started", at.key(ident, "sub"), "assistant", text, name, {"id": ident})

    def _subagent_completed(self, data: Record, at: CopilotPlace) -> None:
        ident, error = get_str(data, "toolCallId"), data.get("error")
        known = {
            "id": ident,
            "duration_ms": get_int(data, "durationMs"),
            "failed": bool(error) or None,
        }
        name, key = get_str(data, "agentName"), at.key(ident, "stopped")
        at.add("subagent.stopped", key, "subagent", flatten(error), name, known_values(known))

    def _subagent_failed(self, data: Record, at: CopilotPlace) -> None:
        self._subagent_completed({**data, "error": data.get("error") or "failed"}, at)

    def _subagent_selected(self, data: Record, at: CopilotPlace) -> None:
        at.add("status.changed", at.key(), "user", data={"agent": data.get("agentName")})

    # -- the end of a run ------------------------------------------------------------------------

    def _session_usage_record(self, data: Record, at: CopilotPlace) -> None:
        self.usage.call(get_dict(data, "usage"), at)

    def _session_shutdown(self, data: Record, at: CopilotPlace) -> None:
        changes = get_dict(data, "codeChanges")
        known = {
            "type": data.get("shutdownType"),
            "lines_added": get_int(changes, "linesAdded"),
            "lines_removed": get_int(changes, "linesRemoved"),
        }
        at.add("session.exited", at.key(), "system", data=known_values(known))
        paths = map(as_str, get_list(changes, "filesModified"))
        at.touch(at.key(), filter(None, paths), "write")
        self.usage.shutdown(get_dict(data, "modelMetrics"), at)


def _reference(part: Record, index: int) -> Record:
    """Describe an attachment. Its bytes stay in the segment."""
    found: Record = {"block": index, "type": part.get("type"), "media_type": part.get("mimeType")}
    found |= {name: part[name] for name in ("path", "displayName", "url") if get_str(part, name)}
    data = part.get("data")
    if isinstance(data, str):
        found["bytes"] = len(data) * 3 // 4
    return known_values(found)


# The handlers of events with conversation.
EVENTS: dict[str, Callable[[EventsReader, Record, CopilotPlace], None]] = {
    "session.start": EventsReader._session_start,
    "session.resume": EventsReader._session_resume,
    "session.context_changed": EventsReader._session_context_changed,
    "session.mode_changed": EventsReader._session_mode_changed,
    "session.title_changed": EventsReader._session_title_changed,
    "session.compaction_complete": EventsReader._session_compaction_complete,
    "session.truncation": EventsReader._session_truncation,
    "session.context_cleared": EventsReader._session_context_cleared,
    "session.snapshot_rewind": EventsReader._session_snapshot_rewind,
    "session.error": EventsReader._session_error,
    "session.task_complete": EventsReader._session_task_complete,
    _CALL_USAGE: EventsReader._session_usage_record,
    "session.shutdown": EventsReader._session_shutdown,
    "user.message": EventsReader._user_message,
    "assistant.message": EventsReader._assistant_message,
    "assistant.reasoning": EventsReader._assistant_reasoning,
    "tool.user_requested": EventsReader._tool_user_requested,
    "tool.execution_start": EventsReader._tool_execution_start,
    "tool.execution_complete": EventsReader._tool_execution_complete,
    "permission.requested": EventsReader._permission_requested,
    "permission.completed": EventsReader._permission_completed,
    "exit_plan_mode.requested": EventsReader._exit_plan_mode_requested,
    "exit_plan_mode.completed": EventsReader._exit_plan_mode_completed,
    "elicitation.requested": EventsReader._elicitation_requested,
    "subagent.started": EventsReader._subagent_started,
    "subagent.completed": EventsReader._subagent_completed,
    "subagent.failed": EventsReader._subagent_failed,
    "subagent.selected": EventsReader._subagent_selected,
    "skill.invoked": EventsReader._skill_invoked,
    "system.notification": EventsReader._system_notification,
    "model.call_failure": EventsReader._model_call_failure,
    "abort": EventsReader._abort,
}
