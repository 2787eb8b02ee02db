"""Codex CLI: rollouts under ~/.codex/sessions, one file per thread; two dialects that share their items."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from backstory.agents.base import (
    TITLE_AGENT,
    Bucket,
    FileAgent,
    OnError,
    Reader,
    Record,
    Shape,
    Sink,
    as_dict,
    as_int,
    as_list,
    as_str,
    flatten,
    head_records,
    walk,
)
from backstory.model.events import Event, Touch, Usage
from backstory.model.ids import fold, fold_bytes
from backstory.model.times import parse_iso

# How text begins that the program put among the user's messages; newer files say so in their provenance.
INJECTED = (
    "<environment_context>",
    "<environments_instructions>",
    "<user_instructions>",
    "<managed_developer_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<model_instructions>",
    "<model_switch>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "<multi_agent_role>",
    "<persistent_mode>",
    "<personality_spec>",
    "<app-context>",
    "<apps_instructions>",
    "<plugins_instructions>",
    "<recommended_plugins>",
    "<skills_instructions>",
    "<skill>",
    "<hook_prompt",
    "<goal_context>",
    "<codex_internal_context",
    "<startup_context>",
    "<context_window_reminder>",
    "<current_time_reminder>",
    "<realtime_conversation>",
    "<agent_message_board_notification>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_action>",
    "<user_shell_command>",
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via",
    "Warning: Your account was flagged",
)
# A tool's output that says it did not work, where no exit code does.
FAILED = (
    "apply_patch verification failed",
    "unsupported call",
    "unsupported custom tool call",
    "failed to parse function arguments",
    "exec_command failed",
    "write_stdin failed",
    "execution error",
    "exec command rejected",
    "patch rejected",
    "aborted by user",
    "unable to ",
    "Script error:",
    "Script failed",
)
RECORDS = frozenset(
    str.split(
        "session_meta response_item event_msg turn_context token_usage_record compacted world_state "
        "inter_agent_communication inter_agent_communication_metadata dynamic_tools_updated "
        "security_risk_score realtime_item"
    )
)
SILENT = RECORDS - {"response_item", "event_msg"}  # those left over once the meaningful ones are dealt with
CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call", "tool_search_call"))
OUTPUTS = frozenset(("function_call_output", "custom_tool_call_output", "tool_search_output"))
HOSTED = {"web_search_call": "web_search", "image_generation_call": "image_generation"}
SILENT_ITEMS = frozenset(
    str.split(
        "additional_tools ghost_snapshot compaction compaction_summary compaction_trigger context_compaction other"
    )
)
# Events that repeat an item of the conversation, or only tell of progress.
SILENT_EVENTS = frozenset(
    str.split(
        "agent_message agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break "
        "agent_message_delta agent_reasoning_delta agent_message_content_delta reasoning_content_delta "
        "reasoning_raw_content_delta plan_delta plan_update turn_diff thread_settings_applied "
        "thread_goal_updated thread_queue_changed web_search_begin web_search_end image_generation_begin "
        "image_generation_end view_image_tool_call mcp_tool_call_begin mcp_startup_update "
        "mcp_startup_complete exec_command_begin exec_command_output_delta terminal_interaction "
        "patch_apply_begin patch_apply_updated item_started raw_response_item raw_response_completed "
        "hook_started hook_completed session_configured shutdown_complete background_event "
        "deprecation_notice warning guardian_warning dynamic_tool_call_request dynamic_tool_call_response "
        "elicitation_request elicitation_abandoned request_user_input model_reroute model_verification "
        "turn_moderation_metadata safety_buffering environment_connected environment_disconnected "
        "auth_recovery_started auth_recovery_completed skills_update_available undo_started undo_completed "
        "collab_agent_spawn_begin collab_agent_spawn_end collab_agent_interaction_begin "
        "collab_agent_interaction_end collab_waiting_begin collab_waiting_end collab_close_begin "
        "collab_close_end collab_resume_begin collab_resume_end realtime_conversation_started "
        "realtime_conversation_sdp realtime_conversation_realtime realtime_conversation_closed "
        "realtime_conversation_list_voices_response get_history_entry_response list_custom_prompts_response "
        "list_skills_response"
    )
)
SILENT_TURN_ITEMS = frozenset(
    str.split(
        "AgentMessage Reasoning Plan WebSearch ImageView ImageGeneration HookPrompt Sleep DynamicToolCall "
        "InjectedContext UserInputRequest"
    )
)
_IMAGE_TAG = re.compile(r"\s*(?:<image\b(?P<attributes>[^>]*)>|</image>)\s*")
_PATH = re.compile(r'path="([^"]*)"')
_REQUEST = "## My request for Codex:"  # IDEs and the desktop app put what they know before it
_CWD = re.compile(r"<cwd>(.*?)</cwd>|Current working directory: (.*)")
_SHELL = re.compile(r"<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*<result>\n?(.*?)\n?</result>", re.S)
_NOTICE = re.compile(r"<subagent_notification>\s*(.*?)\s*</subagent_notification>", re.S)
_HEADER = ("Exit code:", "Chunk ID:", "Wall time:", "Command:", "Script ")
_EXIT = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d+)", re.M)
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.M)
_NAMED = re.compile(r"^rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-fA-F-]{36})(?:_|\.|$)")
_DOCUMENT = re.compile(rb'\s*\{\s*"session"\s*:\s*\{')
_DOCUMENT_ID = re.compile(rb'"id"\s*:\s*"([^"]+)"')
_TOKENS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)
_CALLS_MAX = 500  # tool calls that are remembered; what comes later than that is taken as new
_CONTEXT_MAX = 2000


class Codex(FileAgent):
    name = "codex"
    title = "Codex"

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        override = env.get("CODEX_HOME")
        base = Path(override) if override else home / ".codex"
        return [base / "sessions", base / "archived_sessions"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        return walk(root, (".jsonl", ".jsonl.zst", ".json"), onerror)

    def sniff(self, path: Path, head: bytes) -> Shape | None:
        if _DOCUMENT.match(head) and (b'"items"' in head or b'"instructions"' in head):
            ident = _DOCUMENT_ID.search(head)
            return Shape("document", ident[1].decode("utf-8", "replace") if ident else _named(path))
        found = False
        for record in head_records(head):
            kind, payload = as_str(record.get("type")), record.get("payload")
            if isinstance(payload, dict) and kind in RECORDS:
                if kind == "session_meta":
                    return Shape("lines", as_str(payload.get("id")) or _named(path), _parent(payload))
                found = True
            elif _is_bare_meta(record):
                return Shape("lines", record["id"])
            elif _is_bare_item(record):
                found = found or _NAMED.match(path.name) is not None
        return Shape("lines", _named(path)) if found else None

    def reader(self, shape: Shape, state: Record) -> Reader:
        return RolloutReader(state, subagent=shape.parent is not None)


def _named(path: Path) -> str:
    found = _NAMED.match(path.name)
    return found[1] if found else path.name.split(".")[0]


def _is_bare_meta(record: Record) -> bool:
    """Until mid 2025 the first line was the session's head itself."""
    if record.keys() & {"type", "payload"} or not record.keys() & {"instructions", "git"}:
        return False
    return isinstance(record.get("id"), str) and "timestamp" in record


def _is_bare_item(record: Record) -> bool:
    kind = as_str(record.get("type"))
    if kind == "message":
        parts = as_list(record.get("content"))
        return any(as_dict(part).get("type") in ("input_text", "output_text") for part in parts)
    return kind in CALLS or kind in OUTPUTS or (kind == "reasoning" and "summary" in record)


def _parent(meta: Record) -> str | None:
    spawned = as_dict(as_dict(as_dict(meta.get("source")).get("subagent")).get("thread_spawn"))
    return as_str(spawned.get("parent_thread_id")) or as_str(meta.get("parent_thread_id")) or None


def _subagent(meta: Record) -> str | None:
    """What kind of subagent the thread is, if it is one."""
    source = as_dict(meta.get("source")).get("subagent")
    spawned = as_dict(as_dict(source).get("thread_spawn"))
    names = [spawned.get("agent_role"), meta.get("agent_role"), spawned.get("agent_nickname")]
    names += [meta.get("agent_nickname"), source, as_dict(source).get("other"), spawned.get("agent_path")]
    known = next((name for name in names if isinstance(name, str) and name), None)
    is_one = source is not None or meta.get("thread_source") == "subagent" or _parent(meta) is not None
    return (known or "subagent") if is_one else None


class _Here:
    """One record's place: where its events go, when, and what identifies it when it has no id."""

    __slots__ = ("bucket", "line", "offset", "out", "when")

    def __init__(self, out: Sink, when: int | None, offset: int, line: bytes) -> None:
        self.out = out
        self.bucket: Bucket = out.main
        self.when = when
        self.offset = offset
        self.line = line

    def key(self, ident: object = None, *parts: object) -> int:
        base = ident if isinstance(ident, str) and ident else fold_bytes(self.offset, self.line)
        return fold(base, *parts) if parts or isinstance(base, str) else int(base)

    def add(self, kind: str, key: int, actor: str, text: str = "", name: str = "", data: object = None) -> None:
        known = as_dict(data) or None
        self.bucket.events.append(Event(kind, key, self.when, actor, text, name or None, known))


class RolloutReader:
    """A thread's rollout. Items are the conversation; events add what items do not say."""

    def __init__(self, state: Record, *, subagent: bool) -> None:
        self.state = state
        if subagent:
            state["side"] = True
        self.calls: dict[str, Record] = state.setdefault("calls", {})
        self.events: dict[str, Callable[[Record, _Here], None]] = {
            "token_count": self._token_count,
            "item_completed": self._item_completed,
            "exec_command_end": lambda event, at: self._ran(event.get("call_id"), event, at),
            "patch_apply_end": lambda event, at: self._patched(event.get("call_id"), event, at),
            "mcp_tool_call_end": lambda event, at: self._asked_server(event.get("call_id"), event, at),
            "user_message": self._user_message,
            "task_started": self._turn_started,
            "turn_started": self._turn_started,
            "task_complete": self._turn_completed,
            "turn_complete": self._turn_completed,
            "turn_aborted": self._turn_aborted,
            "error": lambda event, at: self._error(event, at.key(), at),
            "stream_error": lambda event, at: self._error(event, at.key(), at),
            "context_compacted": self._context_compacted,
            "thread_rolled_back": self._rolled_back,
            "thread_name_updated": self._renamed,
            "entered_review_mode": self._review,
            "exited_review_mode": self._review,
            "sub_agent_activity": self._activity,
            "exec_approval_request": self._approval,
            "apply_patch_approval_request": self._approval,
            "request_permissions": self._approval,
            "guardian_assessment": self._assessed,
        }

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        at = _Here(out, parse_iso(record.get("timestamp")), offset, line)
        kind, payload = as_str(record.get("type")), record.get("payload")
        if not isinstance(payload, dict):
            if isinstance(record.get("session"), dict) and isinstance(record.get("items"), list):
                self._document(record, out)
                return
            kind, payload = _unwrapped(record)
        if self._inherited(record, kind, payload, out.main.session_id):
            return
        if kind == "response_item":
            self._item(payload, at)
        elif kind == "event_msg":
            event = as_str(payload.get("type"))
            handler = self.events.get(event)
            if handler:
                handler(payload, at)
            elif event not in SILENT_EVENTS:
                out.unknown_type(f"event_msg/{event}")
        else:
            self._other(kind, payload, at)

    def _other(self, kind: str, payload: Record, at: _Here) -> None:
        if kind == "turn_context":
            self._turn_context(payload, at)
        elif kind == "token_usage_record":
            self._usage_record(payload, at)
        elif kind == "session_meta":
            self._meta(payload, at)
        elif kind == "compacted":
            self.state["compacted"] = True
            at.add("compaction", at.key(), "system", as_str(payload.get("message")))
        elif kind == "inter_agent_communication":
            self._agent_message(payload, at)
        elif kind not in SILENT:
            at.out.unknown_type(kind)

    def _document(self, record: Record, out: Sink) -> None:
        """The oldest files: one JSON document, rewritten as it grows; an item is known by its place."""
        head = as_dict(record.get("session"))
        self._meta(head, _Here(out, parse_iso(head.get("timestamp")), 0, b"session"))
        for index, item in enumerate(as_list(record.get("items"))):
            if isinstance(item, dict):
                when = parse_iso(item.get("timestamp")) or parse_iso(head.get("timestamp"))
                self._item(item, _Here(out, when, index, b"item"))

    def _inherited(self, record: Record, kind: str, payload: Record, own: str) -> bool:
        """A subagent's file may begin with its parent's conversation: what it was given, not what it did."""
        state = self.state
        if not state.get("side"):
            return False
        if kind == "session_meta":
            if "root" in state and payload.get("id") != own:
                state["inherits"] = True
            return False
        start = state.get("own_from")
        if start is not None:
            ordinal = as_int(record.get("ordinal"))
            return ordinal is not None and ordinal < start
        if state.get("inherits"):
            if kind != "turn_context" and payload.get("type") not in ("task_started", "turn_started"):
                return True
            # Ids are UUIDv7: a turn that is older than the thread itself is the parent's.
            state["inherits"] = _is_older(payload.get("turn_id"), own)
        return bool(state.get("inherits"))

    # -- where and what the thread is ------------------------------------------------------------

    def _meta(self, meta: Record, at: _Here) -> None:
        """Its own head comes first; heads of threads it was copied from, and its own again, may follow."""
        own, ident = at.bucket.session_id, as_str(meta.get("id"))
        first = "root" not in self.state
        self.state["root"] = ident or own
        if not first and ident != own:
            return
        facts = at.bucket.facts
        if (kind := _subagent(meta)) is not None:
            self.state["side"] = True
            facts["subagent"] = kind
        origin = as_str(meta.get("forked_from_id"))
        if origin and origin != _parent(meta):
            facts["forked_from"] = origin
        if (start := as_int(meta.get("subagent_history_start_ordinal"))) is not None:
            self.state["own_from"] = start
        version = as_str(meta.get("cli_version"))
        if version:
            facts["version"] = version
        at.when = parse_iso(meta.get("timestamp")) or at.when if first else at.when
        branch = as_str(as_dict(meta.get("git")).get("branch"))
        told = {
            "version": version,
            "originator": meta.get("originator"),
            "source": as_str(meta.get("source")),
        }
        self._place(as_str(meta.get("cwd")), branch, told if first else {}, first, at)

    def _place(self, cwd: str, branch: str, told: Record, first: bool, at: _Here) -> None:
        """Where the session is: said at its start and again when it changes."""
        before = as_list(self.state.get("place")) or ["", ""]
        place = [cwd or before[0], branch or before[1]]
        if not first and place == before:
            return
        self.state["place"] = place
        if cwd:
            at.bucket.facts.setdefault("cwd", cwd)
        if branch:
            at.bucket.facts["branch"] = branch
        data = {key: value for key, value in {"cwd": cwd, "branch": branch, **told}.items() if value}
        key = at.key(at.bucket.session_id, "started") if first else at.key(None, "place")
        at.add("session.started" if first else "status.changed", key, "system", data=data)

    def _turn_context(self, payload: Record, at: _Here) -> None:
        if isinstance(model := payload.get("model"), str):
            self.state["model"] = model
        if isinstance(turn := payload.get("turn_id"), str):
            self.state["turn"] = turn
        if cwd := as_str(payload.get("cwd")):
            self._place(cwd, "", {}, False, at)

    # -- the conversation ------------------------------------------------------------------------

    def _item(self, item: Record, at: _Here) -> None:
        kind = as_str(item.get("type"))
        if kind in CALLS:
            self._call(item, at)
        elif kind in OUTPUTS:
            self._output(item, at)
        elif kind == "message":
            self._message(item, at)
        elif kind == "reasoning":
            parts = [*as_list(item.get("summary")), *as_list(item.get("content"))]
            text = _texts(parts)
            if text.strip():
                at.add("assistant.thinking", at.key(item.get("id")), "assistant", text, data=self._model())
        elif kind == "agent_message":
            self._agent_message(item, at)
        elif kind in HOSTED:
            given = as_dict(item.get("action")) or {"prompt": as_str(item.get("revised_prompt"))}
            data = {"id": item.get("id"), "input": given}
            at.add("tool.call", at.key(item.get("id")), "assistant", flatten(given), HOSTED[kind], data)
        elif kind not in SILENT_ITEMS:
            at.out.unknown_type(f"response_item/{kind}")

    def _model(self) -> Record | None:
        model = self.state.get("model")
        return {"model": model} if model else None

    def _message(self, item: Record, at: _Here) -> None:
        content = item.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
        role = item.get("role")
        if role == "assistant":
            text = _texts(parts)
            if text.strip():
                at.add("assistant.message", at.key(item.get("id")), "assistant", text, data=self._model())
        elif role == "user":
            self._user(item, parts, at)

    def _user(self, item: Record, parts: list[Any], at: _Here) -> None:
        metadata = as_dict(item.get("internal_chat_message_metadata_passthrough"))
        origins = [
            as_dict(as_dict(part).get("provenance")).get("type")
            for part in as_list(metadata.get("content_item_metadata"))
        ]
        texts: list[str] = []
        images: list[Record] = []
        path = None
        for index, part in enumerate(map(as_dict, parts)):
            text = as_str(part.get("text"))
            origin = origins[index] if index < len(origins) else None
            if part.get("type") == "input_image":
                images.append(_reference(part, index, path))
            elif tag := _IMAGE_TAG.fullmatch(text):
                path = _PATH.search(tag["attributes"] or "")
            elif origin == "user" or (origin is None and not text.lstrip().startswith(INJECTED)):
                texts.append(text)
            else:
                self._told(text.lstrip(), at.key(item.get("id"), index), at)
        text = "\n".join(texts)
        if text.strip() or images:
            self.state["heard"] = (as_int(self.state.get("heard")) or 0) + 1
            self._prompt(text, images, at.key(item.get("id")), at)

    def _prompt(self, text: str, images: list[Record], key: int, at: _Here) -> None:
        data: Record = {"images": images} if images else {}
        before, marker, request = text.partition(_REQUEST)
        if marker and before.lstrip().startswith("# "):
            text, data["context"] = request.strip(), before.strip()[:_CONTEXT_MAX]
        at.add("user.prompt", key, "assistant" if self.state.get("side") else "user", text, data=data)

    def _told(self, text: str, key: int, at: _Here) -> None:
        """Text that was put in the user's mouth, where it says more than the model's own context."""
        if (ran := _SHELL.match(text)) is not None:
            output, code, _ = _outcome(ran[2])
            at.add("tool.call", key, "user", ran[1], "user_shell", {"input": {"command": ran[1]}})
            data = {"exit_code": code, "failed": True} if code else {"exit_code": code}
            at.add("tool.result", fold(key, "result"), "user", output, data=data)
        elif (notice := _NOTICE.match(text)) is not None:
            told = as_dict(_decoded(notice[1]))
            status = told.get("status")
            word, said = next(iter(status.items()), ("", "")) if isinstance(status, dict) else (status, "")
            whom = {"session": told.get("agent_path") or told.get("agent_id"), "status": word}
            at.add("subagent.stopped", key, "subagent", as_str(said), data=whom)
        elif text.startswith("<environment_context>") and not (self.state.get("place") or [""])[0]:
            found = _CWD.search(text)  # only the oldest files do not say it elsewhere
            self._place((found[1] or found[2]).strip() if found else "", "", {}, False, at)

    def _user_message(self, event: Record, at: _Here) -> None:
        """The same prompt once more, as the screen showed it; only a file without the item needs it."""
        text = as_str(event.get("message"))
        if event.get("kind") not in (None, "plain") or text.lstrip().startswith(INJECTED):
            return
        heard = as_int(self.state.get("heard")) or 0
        if heard:
            self.state["heard"] = heard - 1
        elif text.strip():
            self._prompt(text, [], at.key(), at)

    def _agent_message(self, item: Record, at: _Here) -> None:
        """Agents of a team writing to each other; the payload is often encrypted."""
        content = item.get("content")
        parts = [{"text": content}] if isinstance(content, str) else as_list(content)
        text = _texts(parts)
        said = text.partition("Payload:\n")[2] if text.startswith("Message Type:") else text
        data: Record = {"from": item.get("author"), "to": item.get("recipient")}
        key = at.key(item.get("id"))
        if self.state.get("side") and (text.startswith("Message Type: NEW_TASK") or item.get("trigger_turn")):
            at.add("user.prompt", key, "assistant", said, data=data if said else {**data, "redacted": True})
        elif said.strip():
            at.add("status.changed", key, "subagent", said, data=data)

    # -- tools -----------------------------------------------------------------------------------

    def _call(self, item: Record, at: _Here) -> None:
        ident = as_str(item.get("call_id")) or as_str(item.get("id"))
        name, given = _name(item), _given(item)
        text = flatten(given)
        key = at.key(ident)
        data: Record = {"id": ident or None, "input": given}
        if isinstance(item.get("namespace"), str):
            data["namespace"] = item["namespace"]
        at.add("tool.call", key, "assistant", text, name, data)
        known: Record = {}
        if "*** Begin Patch" in text and (name == "apply_patch" or "apply_patch" in text):
            known["write"] = list(dict.fromkeys(_PATCHED.findall(text)))
        elif name == "view_image" and (path := as_str(as_dict(given).get("path"))):
            known["read"] = [path]
        self._remember(ident, known)
        if name == "spawn_agent":
            self._spawned(ident, key, as_dict(given), at)
        elif name == "request_user_input":
            questions = as_list(as_dict(given).get("questions"))
            asked = "\n".join(as_str(as_dict(question).get("question")) for question in questions)
            data = {"id": ident, "questions": questions}
            at.add("question.asked", fold(key, "ask"), "assistant", asked, data=data)

    def _spawned(self, ident: object, key: int, given: Record, at: _Here) -> None:
        kind = as_str(given.get("agent_type")) or as_str(given.get("task_name"))
        task = as_str(given.get("message"))
        at.add("subagent.started", fold(key, "sub"), "assistant", task, kind, {"id": ident, "prompt": task})

    def _remember(self, ident: str, known: Record) -> None:
        if ident:
            self.calls[ident] = known
            while len(self.calls) > _CALLS_MAX:
                del self.calls[next(iter(self.calls))]

    def _output(self, item: Record, at: _Here) -> None:
        ident = as_str(item.get("call_id"))
        text, code, failed = _outcome(item.get("output", item.get("tools")))
        known = self.calls.get(ident, {})
        code = known.get("exit", code)
        data: Record = {"id": ident or None}
        if code is not None:
            data["exit_code"] = code
        if failed or known.get("failed") or code:
            data["failed"] = True
        images = [part for part in as_list(item.get("output")) if as_dict(part).get("type") == "input_image"]
        if images:
            data["images"] = [_reference(part, index, None) for index, part in enumerate(images)]
        mark = as_str(item.get("id")) or at.offset
        again = known.get("mark", mark) != mark  # a script's call may be answered piece by piece
        key = at.key(ident, "result", mark) if again else at.key(ident, "result")
        at.add("tool.result", key, "tool", text, data=data)
        if not data.get("failed"):
            self._touch(ident, known.get("write"), "write", at)
            self._touch(ident, known.get("read"), "read", at)
        running = code is None and "Process running with session ID" in as_str(item.get("output"))[:2000]
        self._remember(ident, {"mark": known.get("mark", mark), **({"running": True} if running else {})})

    def _touch(self, ident: str, paths: object, action: str, at: _Here) -> None:
        for path in as_list(paths):
            at.bucket.touches.append(Touch(fold(ident), path.removeprefix("file://"), action))

    def _ran(self, call: object, event: Record, at: _Here) -> None:
        """How a command ended: mostly known before its output, later when it ran in the background."""
        ident = as_str(call)
        if not ident or event.get("source") in ("user_shell", "userShell"):  # `<user_shell_command>` tells it
            return
        code = as_int(event.get("exit_code"))
        known = self.calls.get(ident)
        result: Record = {"exit_code": code} if code is not None else {}
        if code or event.get("status") in ("failed", "declined"):
            result["failed"] = True
        output = as_str(event.get("aggregated_output"))
        if known is None:
            given = {
                "cmd": _command(event.get("command")),
                "workdir": as_str(event.get("cwd")).removeprefix("file://"),
            }
            self._nested(ident, "exec_command", given, output, result, at)
        elif known.pop("running", False):
            data = {"id": ident, **result, "late": True}
            at.add("tool.result", at.key(ident, "end"), "tool", output, data=data)
        elif "mark" not in known:
            known.update({"exit" if name == "exit_code" else name: told for name, told in result.items()})
        if event.get("status") == "declined":
            self._declined(ident, at)
        if code == 0:
            parsed = [as_dict(part) for part in as_list(event.get("parsed_cmd"))]
            paths = [as_str(part.get("path")) for part in parsed if part.get("type") == "read"]
            self._touch(ident, list(dict.fromkeys(filter(None, paths))), "read", at)

    def _nested(self, ident: str, name: str, given: Record, output: str, result: Record, at: _Here) -> None:
        """A tool that a script of the model called: only its end is written down."""
        data = {"id": ident, "input": given, "nested": True}
        at.add("tool.call", at.key(ident), "assistant", flatten(given), name, data)
        at.add("tool.result", at.key(ident, "result"), "tool", output, data={"id": ident, **result})
        self._remember(ident, {"mark": ident})

    def _declined(self, ident: str, at: _Here) -> None:
        at.add("approval.resolved", at.key(ident, "denied"), "user", data={"id": ident, "decision": "denied"})

    def _patched(self, call: object, event: Record, at: _Here) -> None:
        ident = as_str(call)
        changes = as_dict(event.get("changes"))
        status = event.get("status")
        done = status == "completed" if isinstance(status, str) else bool(event.get("success"))
        if not ident:
            return
        known = self.calls.get(ident)
        if known is None:
            output = as_str(event.get("stdout")) or as_str(event.get("stderr"))
            result: Record = {} if done else {"failed": True}
            self._nested(ident, "apply_patch", {"changes": changes}, output, result, at)
        elif not done:
            known["failed"] = True
        if status == "declined":
            self._declined(ident, at)
        if done:
            if known is not None:
                known.pop("write", None)  # the event's paths are the exact ones
            moved = [as_str(as_dict(change).get("move_path")) for change in changes.values()]
            self._touch(ident, [*changes, *filter(None, moved)], "write", at)

    def _asked_server(self, call: object, event: Record, at: _Here) -> None:
        ident = as_str(call)
        result = as_dict(event.get("result"))
        failed = "Err" in result or event.get("status") == "failed"
        failed = failed or bool(as_dict(result.get("Ok", result)).get("isError"))
        known = self.calls.get(ident)
        if known is None and ident:
            asked = as_dict(event.get("invocation")) or event
            name = f"mcp__{as_str(asked.get('server'))}__{as_str(asked.get('tool'))}"
            outcome: Record = {"failed": True} if failed else {}
            answer = result or event.get("error")
            self._nested(ident, name, as_dict(asked.get("arguments")), flatten(answer), outcome, at)
        elif known is not None and failed:
            known["failed"] = True

    # -- events ----------------------------------------------------------------------------------

    def _item_completed(self, event: Record, at: _Here) -> None:
        item, thread = as_dict(event.get("item")), event.get("thread_id")
        if isinstance(thread, str) and thread != at.bucket.session_id:
            return  # a reviewer's, shown in the thread that asked for it
        kind = as_str(item.get("type"))
        if kind == "CommandExecution":
            self._ran(item.get("id"), item, at)
        elif kind == "FileChange":
            self._patched(item.get("id"), item, at)
        elif kind == "McpToolCall":
            self._asked_server(item.get("id"), item, at)
        elif kind == "UserMessage":
            self._user_message({"message": _texts(item.get("content"))}, at)
        elif kind in ("SubAgentActivity", "CollabAgentToolCall"):
            self._activity(item, at)
        elif kind in ("EnteredReviewMode", "ExitedReviewMode"):
            self._review(item, at)
        elif kind == "ContextCompaction":
            self._context_compacted(item, at)
        elif kind not in SILENT_TURN_ITEMS:
            at.out.unknown_type(f"item_completed/{kind}")

    def _turn_started(self, event: Record, at: _Here) -> None:
        turn = event.get("turn_id")
        if isinstance(turn, str):
            self.state["turn"] = turn
        at.add("turn.started", at.key(turn, "started"), "system", data={"turn_id": turn} if turn else None)

    def _turn_completed(self, event: Record, at: _Here) -> None:
        turn = event.get("turn_id")
        data = {"turn_id": turn, "duration_ms": as_int(event.get("duration_ms"))}
        error = event.get("error")
        if error:
            self._error(error if isinstance(error, dict) else {"message": error}, at.key(turn, "error"), at)
            data["failed"] = True
        known = {key: value for key, value in data.items() if value is not None}
        at.add("turn.completed", at.key(turn, "completed"), "system", data=known)

    def _turn_aborted(self, event: Record, at: _Here) -> None:
        turn, reason = event.get("turn_id"), as_str(event.get("reason"))
        data = {
            "turn_id": turn,
            "interrupted": True,
            "reason": reason,
            "duration_ms": event.get("duration_ms"),
        }
        known = {key: value for key, value in data.items() if value}
        actor = "user" if reason == "interrupted" else "system"
        at.add("turn.completed", at.key(turn, "completed"), actor, data=known)

    def _error(self, event: Record, key: int, at: _Here) -> None:
        text = as_str(event.get("message")) or flatten(event, 2000)
        mark = fold(text, self.state.get("turn"))
        if self.state.get("erred") != mark:  # some versions repeat it at the end of the turn
            self.state["erred"] = mark
            info = event.get("codex_error_info")
            at.add("error", key, "system", text, data={"info": info} if info else None)

    def _context_compacted(self, event: Record, at: _Here) -> None:
        if not self.state.pop("compacted", False):  # the record with the summary stands before it
            at.add("compaction", at.key(event.get("id")), "system")

    def _rolled_back(self, event: Record, at: _Here) -> None:
        at.add("status.changed", at.key(), "user", data={"rolled_back_turns": as_int(event.get("num_turns"))})

    def _renamed(self, event: Record, at: _Here) -> None:
        if event.get("thread_id") in (None, at.bucket.session_id):
            at.bucket.title(TITLE_AGENT, event.get("thread_name"))

    def _review(self, event: Record, at: _Here) -> None:
        output = event.get("review_output")
        if "review_output" in event:
            text = as_str(as_dict(output).get("overall_explanation"))
            at.add("status.changed", at.key(event.get("id")), "system", text, data={"review": "finished"})
        else:
            text = as_str(event.get("user_facing_hint"))
            at.add("status.changed", at.key(event.get("id")), "user", text, data={"review": "started"})

    def _activity(self, item: Record, at: _Here) -> None:
        ident = as_str(item.get("id")) or as_str(item.get("event_id"))
        kind, thread = item.get("kind"), item.get("agent_thread_id")
        name = as_str(item.get("agent_path"))
        if kind == "started" or item.get("tool") in ("spawn_agent", "spawnAgent"):
            if ident not in self.calls:  # else the call itself told
                thread = thread or next(iter(as_list(item.get("receiver_thread_ids"))), None)
                task = as_str(item.get("prompt"))
                data = {"id": ident, "session": thread, "prompt": task}
                at.add("subagent.started", at.key(ident, "sub"), "assistant", task, name, data)
        elif kind in ("completed", "interrupted", "failed", "errored", "shutdown", "closed"):
            data = {"session": thread, "status": kind}
            at.add("subagent.stopped", at.key(ident, "stopped"), "subagent", "", name, data)

    def _approval(self, event: Record, at: _Here) -> None:
        ident = as_str(event.get("call_id"))
        text = _command(event.get("command")) or as_str(event.get("reason"))
        at.add("approval.requested", at.key(ident, "approval"), "assistant", text, data={"id": ident or None})

    def _assessed(self, event: Record, at: _Here) -> None:
        ident, status = as_str(event.get("target_item_id")) or as_str(event.get("id")), event.get("status")
        if status in ("approved", "denied"):
            data = {"id": ident, "decision": status}
            at.add("approval.resolved", at.key(ident, "assessed"), "system", data=data)

    # -- tokens ----------------------------------------------------------------------------------

    def _usage_record(self, payload: Record, at: _Here) -> None:
        """Newer versions write one per response; the `token_count` that follows says the same."""
        total = _figures(as_dict(payload.get("thread_token_usage")))
        counted = any(total) and total == self.state.get("total")
        self.state["records"], self.state["total"] = True, total
        if not counted:
            ident = as_str(payload.get("response_id"))
            key = fold("codex", ident) if ident else fold("codex", self._owner(payload), *total)
            self._count(key, as_dict(payload.get("usage")), at)

    def _token_count(self, event: Record, at: _Here) -> None:
        """Repeated without a new response, too: a changed total counts. Copies in a fork get the same key."""
        info = as_dict(event.get("info")) or event
        totals = as_dict(info.get("total_token_usage")) or info
        total, before = _figures(totals), as_list(self.state.get("total"))
        if self.state.get("records") or total == before or not any(total):
            return
        self.state["total"] = total
        last = as_dict(info.get("last_token_usage"))
        if not last:  # the oldest have the running total only
            steps = zip(_TOKENS, total, before or [0] * len(total), strict=True)
            last = {name: now - then for name, now, then in steps if name in totals}
        self._count(fold("codex", self._owner({}), *total), last, at)

    def _owner(self, payload: Record) -> str:
        turn = payload.get("turn_id") or self.state.get("turn")
        return str(turn or self.state.get("root") or "")

    def _count(self, key: int, usage: Record, at: _Here) -> None:
        prompt, cached, written, output, reasoning = (as_int(usage.get(name)) for name in _TOKENS)
        if prompt is not None:
            prompt = max(0, prompt - (cached or 0) - (written or 0))
        model = self.state.get("model")
        at.bucket.usage.append(Usage(key, at.when, model, prompt, cached, written, output, reasoning))


def _figures(usage: Record) -> list[int]:
    return [as_int(usage.get(name)) or 0 for name in _TOKENS]


def _is_older(turn: object, thread: str) -> bool:
    both = [as_str(turn), thread]
    return all(len(ident) == 36 and ident[14] == "7" for ident in both) and both[0] < both[1]


def _unwrapped(record: Record) -> tuple[str, Record]:
    """Lines of mid 2025 and before: the item itself, without an envelope."""
    kind = as_str(record.get("type"))
    if _is_bare_meta(record):
        return "session_meta", record
    if kind == "message" or kind == "reasoning" or kind in CALLS or kind in OUTPUTS:
        return "response_item", record
    return ("world_state" if "record_type" in record else kind), {}


def _texts(parts: object) -> str:
    return "\n".join(filter(None, (as_str(as_dict(part).get("text")) for part in as_list(parts))))


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _name(item: Record) -> str:
    name, space = as_str(item.get("name")), as_str(item.get("namespace"))
    if space.startswith("mcp__"):
        return f"{space.rstrip('_')}__{name}"
    return name or as_str(item.get("type")).removesuffix("_call")


def _given(item: Record) -> Any:
    given: Any = next((item[key] for key in ("arguments", "input", "action") if item.get(key) is not None), {})
    if item.get("type") == "function_call" and isinstance(given, str):
        decoded = _decoded(given)
        return decoded if isinstance(decoded, dict) else given
    return given


def _command(command: object) -> str:
    """`bash -lc "…"` is how the program starts what the model asked for."""
    words = [str(word) for word in as_list(command)]
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words) if words else as_str(command)


def _outcome(output: object) -> tuple[str, int | None, bool]:
    """What a tool said, its exit code, whether it failed: all in one string that was meant for the model."""
    failed = False
    if isinstance(output, dict):
        failed, output = output.get("success") is False, output.get("content")
    if isinstance(output, list):
        output = _texts(output) or flatten(output)
    text, code = as_str(output), None
    if text.startswith(('{"output":', '{"metadata":')) and isinstance(whole := _decoded(text), dict):
        text, code = as_str(whole.get("output")), as_int(as_dict(whole.get("metadata")).get("exit_code"))
    failed = failed or text.startswith(FAILED)
    while code is None and text.startswith(_HEADER):  # a patch inside a command has two headers
        header, marker, rest = text.partition("Output:\n")
        if not marker or "Process running" in header:
            break
        found = _EXIT.search(header)
        text, code = rest, int(found[1]) if found else None
    return text, code, failed or bool(code)


def _reference(part: Record, index: int, path: re.Match[str] | None) -> Record:
    """Images stay in the segment; the event says that there is one, of which kind and size."""
    url = part.get("image_url")
    head, _, data = (as_str(url) or as_str(as_dict(url).get("url"))).partition(",")
    found: Record = {"block": index, "type": "image"}
    if head.startswith("data:"):
        found |= {"media_type": head[5:].partition(";")[0], "bytes": len(data) * 3 // 4}
    elif head:
        found["url"] = f"{head},{data}" if data else head
    return found | ({"path": path[1]} if path else {})


AGENT = Codex()
