"""Copilot CLI's records: what each means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from whyfor.agents.base import (
    as_dict,
    as_int,
    as_list,
    as_str,
    flatten,
)
from whyfor.agents.copilot.facts import EDITOR, FACTS, PATCH_TOOL
from whyfor.model.events import Event, Touch, Usage
from whyfor.model.findings import TITLE_AGENT, Bucket, Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso

# Known events that carry nothing of the conversation: steps of a turn, state of the program,
# progress.
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
_PATCHED = r"(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$"
_NOTICE = r"(?s)\s*<system_notification>\s*(.*?)\s*(?:</system_notification>\s*)?\Z"
_TOTALS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
_CALLS_MAX = 500  # tool calls that are remembered; older ones are never answered


class _Here:
    """One record's place: where its events go, when, and what identifies it when it has no id."""

    __slots__ = ("bucket", "ident", "is_side", "out", "when")

    def __init__(self, out: Sink, bucket: Bucket, when: int | None, ident: str) -> None:
        self.out = out
        self.bucket = bucket
        self.is_side = bucket is not out.main
        self.when = when
        self.ident = ident

    def key(self, ident: object = None, *parts: object) -> int:
        return fold(ident if isinstance(ident, str) and ident else self.ident, *parts)

    def add(
        self, kind: str, key: int, actor: str, text: str = "", name: str = "", data: object = None
    ) -> None:
        known = as_dict(data) or None
        self.bucket.events.append(Event(kind, key, self.when, actor, text, name or None, known))


class EventsReader:
    """`events.jsonl`: what the main agent and its subagents did, in one order."""

    def __init__(self, state: Record) -> None:
        self.state = state
        self.calls: dict[str, list[Any]] = state.setdefault("calls", {})
        self.names: dict[str, str] = state.setdefault("names", {})

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind, data = as_str(record.get("type")), as_dict(record.get("data"))
        if not kind and ("timeline" in record or "chatMessages" in record):
            _History(record, out)
            return
        if kind == "session.model_change":
            self.state["model"] = as_str(data.get("newModel")) or self.state.get("model")
        handler = EVENTS.get(kind)
        if handler is None:
            if kind not in SILENT:
                out.unknown_type(kind)
            return
        ident = as_str(record.get("id")) or str(fold_bytes(offset, line))
        bucket = self._bucket(kind, record, data, out)
        at = _Here(out, bucket, parse_iso(record.get("timestamp")), ident)
        handler(self, data, at)

    def _bucket(self, kind: str, record: Record, data: Record, out: Sink) -> Bucket:
        """Subagents write into the same log, under their own id or that of the call that started
        them."""
        agent = as_str(record.get("agentId")) or as_str(data.get("parentToolCallId"))
        if not agent or kind.startswith(("subagent.", "session.")):
            return out.main
        bucket = out.subagent(f"agent-{agent}@{out.main.session_id}")
        if agent in self.names:
            bucket.facts["subagent"] = self.names[agent]
        return bucket

    # -- the session -----------------------------------------------------------------------------

    def _session_start(self, data: Record, at: _Here) -> None:
        self.state.setdefault("model", as_str(data.get("selectedModel")) or None)
        version = as_str(data.get("copilotVersion"))
        if version:
            at.bucket.facts["version"] = version
        self._place(as_dict(data.get("context")), {"version": version}, at)

    def _session_resume(self, data: Record, at: _Here) -> None:
        self._place(as_dict(data.get("context")), {}, at)

    def _session_context_changed(self, data: Record, at: _Here) -> None:
        self._place(as_dict(data.get("context")) or data, {}, at)

    def _place(self, context: Record, told: Record, at: _Here) -> None:
        """Where the session is: said at its start and again when it changes."""
        cwd, branch = as_str(context.get("cwd")), as_str(context.get("branch"))
        before = self.state.get("place")
        if before is not None and (before == [cwd, branch] or not cwd):
            return
        self.state["place"] = [cwd, branch]
        if cwd:
            at.bucket.facts.setdefault("cwd", cwd)
        if branch:
            at.bucket.facts["branch"] = branch
        data = {
            "cwd": cwd,
            "branch": branch,
            "repository": as_str(context.get("repository")),
            **told,
        }
        known = {key: value for key, value in data.items() if value}
        kind = "session.started" if before is None else "status.changed"
        at.add(kind, at.key(None, "place"), "system", data=known)

    def _session_mode_changed(self, data: Record, at: _Here) -> None:
        at.add("status.changed", at.key(), "user", data={"mode": data.get("newMode")})

    def _session_title_changed(self, data: Record, at: _Here) -> None:
        at.bucket.title(TITLE_AGENT, data.get("title"))

    def _session_compaction_complete(self, data: Record, at: _Here) -> None:
        if data.get("success") is False:
            at.add(
                "error",
                at.key(),
                "system",
                as_str(data.get("error")) or flatten(data.get("error"), 2000),
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
        at.add("compaction", at.key(), "system", as_str(data.get("summaryContent")), data=kept)

    def _session_truncation(self, data: Record, at: _Here) -> None:
        removed = as_int(data.get("messagesRemovedDuringTruncation"))
        at.add(
            "compaction", at.key(), "system", data={"truncated": True, "messagesRemoved": removed}
        )

    def _session_context_cleared(self, data: Record, at: _Here) -> None:
        at.add("status.changed", at.key(), "user", data={"cleared": True})

    def _session_snapshot_rewind(self, data: Record, at: _Here) -> None:
        at.add("status.changed", at.key(), "user", data={"rewound_to": data.get("upToEventId")})

    def _session_error(self, data: Record, at: _Here) -> None:
        text = (
            as_str(data.get("message")) or as_str(data.get("errorMessage")) or flatten(data, 2000)
        )
        at.add("error", at.key(), "system", text, data={"type": data.get("errorType")})

    def _model_call_failure(self, data: Record, at: _Here) -> None:
        self._session_error(data, at)

    def _session_task_complete(self, data: Record, at: _Here) -> None:
        done = {"task_complete": data.get("outcome") or data.get("success", True)}
        at.add("status.changed", at.key(), "assistant", as_str(data.get("summary")), data=done)

    def _abort(self, data: Record, at: _Here) -> None:
        known = {"interrupted": True, "reason": data.get("reason")}
        at.add("turn.completed", at.key(), "user", data=known)

    def _system_notification(self, data: Record, at: _Here) -> None:
        found = re.match(_NOTICE, as_str(data.get("content")))
        kind = as_dict(data.get("kind")).get("type")
        at.add(
            "status.changed",
            at.key(),
            "system",
            found[1] if found else "",
            data={"notification": kind},
        )

    # -- the conversation ------------------------------------------------------------------------

    def _user_message(self, data: Record, at: _Here) -> None:
        text, source = as_str(data.get("content")), as_str(data.get("source"))
        files = [
            _reference(as_dict(part), index)
            for index, part in enumerate(as_list(data.get("attachments")))
        ]
        source = source or ("autopilot" if data.get("isAutopilotContinuation") else "")
        source = source or as_str(data.get("inputOrigin"))
        if source and source != "user":
            at.add("status.changed", at.key(), "system", text, data={"source": source})
        elif text.strip() or files:
            at.add(
                "user.prompt",
                at.key(),
                "assistant" if at.is_side else "user",
                text,
                data={"images": files} if files else None,
            )

    def _assistant_reasoning(self, data: Record, at: _Here) -> None:
        self._think("event", as_str(data.get("content")), at.key(data.get("reasoningId")), at)

    def _think(self, place: str, text: str, key: int, at: _Here) -> None:
        """The same thought may stand in an event of its own and again in the message it led to."""
        if not text.strip():
            return
        where, what = as_list(self.state.get("thought")) or ["", 0]
        mark = fold(text)
        self.state["thought"] = [place, mark]
        if where in ("", place) or what != mark:
            at.add("assistant.thinking", key, "assistant", text, data=self._model({}))

    def _model(self, data: Record) -> Record | None:
        model = as_str(data.get("model")) or self.state.get("model")
        return {"model": model} if model else None

    def _assistant_message(self, data: Record, at: _Here) -> None:
        if model := as_str(data.get("model")):
            self.state["model"] = model
        ident = as_str(data.get("messageId")) or at.ident
        chunk = as_int(data.get("chunkIndex")) or 0
        self._think(
            "message", as_str(data.get("reasoningText")), fold(ident, chunk, "thinking"), at
        )
        text = as_str(data.get("content"))
        if text.strip():
            at.add(
                "assistant.message", fold(ident, chunk), "assistant", text, data=self._model(data)
            )
        for index, request in enumerate(map(as_dict, as_list(data.get("toolRequests")))):
            call, name = as_str(request.get("toolCallId")), as_str(request.get("name"))
            key = at.key(call) if call else fold(ident, chunk, index)
            self._call(call, key, name, _given(request.get("arguments")), "assistant", at)
        self._said(data, ident, at)

    def _said(self, data: Record, ident: str, at: _Here) -> None:
        """Only the output of each response is written down; the chunks of one response repeat
        it."""
        output = as_int(data.get("outputTokens"))
        call = as_str(data.get("apiCallId")) or ident
        model = as_str(data.get("model")) or self.state.get("model")
        if output is None:
            return
        at.bucket.usage.append(Usage(fold("copilot", call), at.when, model, output=output))
        last = as_list(self.state.get("response")) or ["", 0]
        before = last[1] if last[0] == call else 0
        self.state["response"] = [call, max(output, before)]
        seen = self.state.setdefault("seen", {})
        seen[model or ""] = seen.get(model or "", 0) + max(0, output - before)

    # -- tools -----------------------------------------------------------------------------------

    def _call(self, ident: str, key: int, name: str, given: Any, actor: str, at: _Here) -> None:
        at.add(
            "tool.call",
            key,
            actor,
            flatten(given),
            name or "unknown",
            {"id": ident or None, "input": given},
        )
        if name == "ask_user":
            question = as_str(as_dict(given).get("question"))
            asked = {"id": ident, "questions": [given]}
            at.add("question.asked", fold(key, "ask"), "assistant", question, data=asked)
        if ident:
            self.calls[ident] = _touched(name, given)
            while len(self.calls) > _CALLS_MAX:
                del self.calls[next(iter(self.calls))]

    def _tool_user_requested(self, data: Record, at: _Here) -> None:
        self._started(data, "user", at)

    def _tool_execution_start(self, data: Record, at: _Here) -> None:
        self._started(data, "assistant", at)

    def _started(self, data: Record, actor: str, at: _Here) -> None:
        """A call that no message asked for: the person's own, or one made inside another tool."""
        ident = as_str(data.get("toolCallId"))
        if ident not in self.calls:
            name = as_str(data.get("toolName"))
            self._call(ident, at.key(ident), name, _given(data.get("arguments")), actor, at)

    def _tool_execution_complete(self, data: Record, at: _Here) -> None:
        ident = as_str(data.get("toolCallId"))
        result, error = as_dict(data.get("result")), as_dict(data.get("error"))
        text = (
            as_str(result.get("content"))
            or as_str(error.get("message"))
            or as_str(result.get("detailedContent"))
        )
        known: Record = {"id": ident or None}
        # it stands in the last tag, at the very end
        if found := re.match(_EXIT, text[text.rfind("<") :]):
            known["exit_code"] = int(found[1])
        if data.get("success") is False or error or known.get("exit_code"):
            known["failed"] = True
        if as_str(error.get("code")) in ("denied", "rejected"):
            known["rejected"] = True
        key = at.key(ident, "result")
        at.add("tool.result", key, "tool", text, data=known)
        touched = self.calls.get(ident, [])
        if ident in self.calls:
            self.calls[ident] = []  # known, and done
        if "failed" not in known:
            at.bucket.touches.extend(Touch(key, path, action) for path, action in touched)

    def _permission_requested(self, data: Record, at: _Here) -> None:
        request = as_dict(data.get("permissionRequest"))
        names = ("fullCommandText", "path", "fileName", "url", "toolName", "intention")
        text = next(filter(None, (as_str(request.get(name)) for name in names)), "")
        known = {"id": request.get("toolCallId"), "request": data.get("requestId")}
        key = at.key(data.get("requestId"), "asked")
        at.add("approval.requested", key, "assistant", text, as_str(request.get("kind")), known)

    def _permission_completed(self, data: Record, at: _Here) -> None:
        outcome = as_str(as_dict(data.get("result")).get("kind"))
        decision = "approved" if outcome.startswith("approved") else "denied"
        known = {
            "id": data.get("toolCallId"),
            "request": data.get("requestId"),
            "decision": decision,
        }
        key = at.key(data.get("requestId"), "answered")
        at.add("approval.resolved", key, "user", data=known | {"result": outcome})

    def _exit_plan_mode_requested(self, data: Record, at: _Here) -> None:
        text = as_str(data.get("planContent")) or as_str(data.get("summary"))
        known = {"request": data.get("requestId")}
        at.add(
            "approval.requested",
            at.key(data.get("requestId"), "asked"),
            "assistant",
            text,
            "plan",
            known,
        )

    def _exit_plan_mode_completed(self, data: Record, at: _Here) -> None:
        decision = "denied" if data.get("approved") is False else "approved"
        known = {"request": data.get("requestId"), "decision": decision}
        key = at.key(data.get("requestId"), "answered")
        at.add("approval.resolved", key, "user", as_str(data.get("feedback")), data=known)

    def _elicitation_requested(self, data: Record, at: _Here) -> None:
        known = {"id": data.get("toolCallId"), "request": data.get("requestId")}
        at.add(
            "question.asked",
            at.key(data.get("requestId")),
            "assistant",
            as_str(data.get("message")),
            data=known,
        )

    def _skill_invoked(self, data: Record, at: _Here) -> None:
        name = as_str(data.get("name"))
        at.add("status.changed", at.key(), "assistant", name, data={"skill": name})

    # -- subagents -------------------------------------------------------------------------------

    def _subagent_started(self, data: Record, at: _Here) -> None:
        ident, name = as_str(data.get("toolCallId")), as_str(data.get("agentName"))
        self.names[ident] = name
        while len(self.names) > _CALLS_MAX:
            del self.names[next(iter(self.names))]
        text = as_str(data.get("agentDisplayName")) or as_str(data.get("agentDescription"))
        at.add("subagent.started", at.key(ident, "sub"), "assistant", text, name, {"id": ident})

    def _subagent_completed(self, data: Record, at: _Here) -> None:
        ident, error = as_str(data.get("toolCallId")), data.get("error")
        known = {
            "id": ident,
            "duration_ms": as_int(data.get("durationMs")),
            "failed": bool(error) or None,
        }
        told = {key: value for key, value in known.items() if value is not None}
        name = as_str(data.get("agentName"))
        at.add("subagent.stopped", at.key(ident, "stopped"), "subagent", flatten(error), name, told)

    def _subagent_failed(self, data: Record, at: _Here) -> None:
        self._subagent_completed({**data, "error": data.get("error") or "failed"}, at)

    def _subagent_selected(self, data: Record, at: _Here) -> None:
        at.add("status.changed", at.key(), "user", data={"agent": data.get("agentName")})

    # -- the end of a run ------------------------------------------------------------------------

    def _session_shutdown(self, data: Record, at: _Here) -> None:
        changes = as_dict(data.get("codeChanges"))
        known = {
            "type": data.get("shutdownType"),
            "lines_added": as_int(changes.get("linesAdded")),
            "lines_removed": as_int(changes.get("linesRemoved")),
        }
        at.add(
            "session.exited",
            at.key(),
            "system",
            data={k: v for k, v in known.items() if v is not None},
        )
        for path in filter(None, map(as_str, as_list(changes.get("filesModified")))):
            at.bucket.touches.append(Touch(at.key(), path, "write"))
        self._totals(as_dict(data.get("modelMetrics")), at)

    def _totals(self, metrics: Record, at: _Here) -> None:
        """What the run used beyond the output already counted message by message, one row per
        model.

        A resumed session counts anew (seen up to 1.0.67) or goes on counting: it goes on if the
        figures hold both the last shutdown's and what was said since. Then the row replaces the
        earlier one.
        """
        used = {model: _usage(metric) for model, metric in metrics.items()}
        last = as_dict(self.state.get("shutdown"))
        seen = as_dict(self.state.get("seen"))
        goes_on = bool(last) and _covers(used, as_dict(last.get("used")), sum(seen.values()))
        if goes_on:
            seen = {m: seen.get(m, 0) + last["seen"].get(m, 0) for m in {*seen, *last["seen"]}}
        run = last["run"] if goes_on else at.ident
        self.state["shutdown"] = {"used": used, "seen": seen, "run": run}
        self.state["seen"] = {}
        for model, rest in _rests(used, seen).items():
            total, key = used[model], fold("copilot", at.bucket.session_id, model, run)
            net = as_int(
                as_dict(as_dict(as_dict(metrics[model]).get("tokenDetails")).get("input")).get(
                    "tokenCount"
                )
            )
            given = net if net is not None else _net(total)
            written, thought = total["cacheWriteTokens"], total["reasoningTokens"]
            at.bucket.usage.append(
                Usage(key, at.when, model, given, total["cacheReadTokens"], written, rest, thought)
            )


def _usage(metric: object) -> dict[str, int | None]:
    usage = as_dict(as_dict(metric).get("usage"))
    return {name: as_int(usage.get(name)) for name in _TOTALS}


def _net(total: Mapping[str, int | None]) -> int | None:
    """Input is stated with the cache's share in it, both read and written."""
    given = total["inputTokens"]
    cached = (total["cacheReadTokens"] or 0) + (total["cacheWriteTokens"] or 0)
    return given if given is None or given < cached else given - cached


def _covers(now: Mapping[str, Record], before: Record, said: int) -> bool:
    for model, total in before.items():
        if any(
            (as_dict(now.get(model)).get(name) or 0) < (count or 0) for name, count in total.items()
        ):
            return False
    output = [
        sum(total.get("outputTokens") or 0 for total in used.values()) for used in (now, before)
    ]
    return output[0] >= output[1] + said


def _rests(used: Mapping[str, Record], seen: Mapping[str, int]) -> dict[str, int | None]:
    """Output that no message showed; a message of a model the totals do not name belongs to one
    of them."""
    stray = sum(count for model, count in seen.items() if model not in used)
    rests: dict[str, int | None] = {}
    for model, total in used.items():
        output = total["outputTokens"]
        rest = None if output is None else max(0, output - seen.get(model, 0))
        taken = min(rest or 0, stray)
        stray -= taken
        rests[model] = None if rest is None else rest - taken
    return rests


def _given(arguments: object) -> Any:
    if isinstance(arguments, str):
        try:
            decoded = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return arguments
        return decoded if isinstance(decoded, dict) else arguments
    return arguments if arguments is not None else {}


def _touched(name: str, given: Any) -> list[list[str]]:
    """What the call will have read or written if it succeeds."""
    if name == PATCH_TOOL:
        return [[path, "write"] for path in dict.fromkeys(re.findall(_PATCHED, flatten(given)))]
    path = as_str(as_dict(given).get("path"))
    kind = FACTS.tools.get(name)
    if name == EDITOR:
        kind = FACTS.tool_commands[EDITOR].get(as_str(as_dict(given).get("command")), kind)
    if not path or kind not in ("read", "edit", "write"):
        return []
    return [[path, "read" if kind == "read" else "write"]]


def _reference(part: Record, index: int) -> Record:
    """Attachments stay in the segment; the event says what there was."""
    found: Record = {"block": index, "type": part.get("type"), "media_type": part.get("mimeType")}
    found |= {name: part[name] for name in ("path", "displayName", "url") if as_str(part.get(name))}
    data = part.get("data")
    if isinstance(data, str):
        found["bytes"] = len(data) * 3 // 4
    return {key: value for key, value in found.items() if value is not None}


# What is read of each event that says something of the conversation.
EVENTS: dict[str, Callable[[EventsReader, Record, _Here], None]] = {
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


class _History:
    """`history-session-state/*.json` of 2025: one document per session, rewritten as it grew."""

    def __init__(self, record: Record, out: Sink) -> None:
        self.called: set[int] = set()
        begun = parse_iso(record.get("startTime"))
        at = _Here(out, out.main, begun, out.main.session_id)
        at.add("session.started", at.key(None, "place"), "system")
        entries = as_list(record.get("timeline")) or as_list(record.get("chatMessages"))
        for index, entry in enumerate(map(as_dict, entries)):
            ident = as_str(entry.get("id")) or f"{out.main.session_id}:{index}"
            here = _Here(out, out.main, parse_iso(entry.get("timestamp")) or begun, ident)
            if "role" in entry:
                self._message(entry, here)
            else:
                self._entry(entry, here)

    def _entry(self, entry: Record, at: _Here) -> None:
        kind, text = as_str(entry.get("type")), as_str(entry.get("text"))
        call = as_str(entry.get("callId"))
        if kind == "user" and text.strip():
            at.add("user.prompt", at.key(), "user", text)
        elif kind == "copilot" and text.strip():
            at.add("assistant.message", at.key(), "assistant", text)
        elif kind in ("tool_call_requested", "tool_call_completed"):
            self._tool(entry, call, at, done=kind == "tool_call_completed")
        elif kind == "error":
            at.add("error", at.key(), "system", text)
        elif kind not in ("user", "copilot", "info", "warning"):
            at.out.unknown_type(f"timeline/{kind}")

    def _tool(self, entry: Record, call: str, at: _Here, *, done: bool) -> None:
        name = as_str(entry.get("name")) or as_str(entry.get("toolTitle")) or "unknown"
        given = _given(entry.get("arguments"))
        if at.key(call) not in self.called:  # a call that needed no permission has one entry only
            self.called.add(at.key(call))
            data = {"id": call or None, "input": given}
            at.add("tool.call", at.key(call), "assistant", flatten(given), name, data)
        if done:
            result = as_dict(entry.get("result"))
            failed = as_str(result.get("type")) not in ("", "success")
            key = at.key(call, "result")
            data = {"id": call or None, **({"failed": True} if failed else {})}
            at.add(
                "tool.result", key, "tool", as_str(result.get("log")) or flatten(result), data=data
            )
            if not failed:
                at.bucket.touches.extend(Touch(key, *touch) for touch in _touched(name, given))

    def _message(self, entry: Record, at: _Here) -> None:
        """Without a timeline there is only what was sent to the model."""
        role, text = entry.get("role"), as_str(entry.get("content"))
        if role == "user" and text.strip():
            at.add("user.prompt", at.key(), "user", text)
        elif role == "assistant":
            if text.strip():
                at.add("assistant.message", at.key(), "assistant", text)
            for call in map(as_dict, as_list(entry.get("tool_calls"))):
                asked = as_dict(call.get("function"))
                request = {"name": asked.get("name"), "arguments": asked.get("arguments")}
                self._tool(request, as_str(call.get("id")), at, done=False)
        elif role == "tool":
            call_id = as_str(entry.get("tool_call_id"))
            at.add(
                "tool.result", at.key(call_id, "result"), "tool", text, data={"id": call_id or None}
            )
