"""Read rollouts of Codex. Items are the conversation; events add what items do not say."""

from __future__ import annotations

from collections.abc import Callable

from whyfor.agents.base import as_list, get_dict, get_list, get_str
from whyfor.agents.codex.calls import HOSTED, Calls
from whyfor.agents.codex.content import texts
from whyfor.agents.codex.prompts import Prompts
from whyfor.agents.codex.record_place import RolloutPlace
from whyfor.agents.codex.records import CALLS, OUTPUTS, RECORDS, unwrapped
from whyfor.agents.codex.thread import Thread
from whyfor.agents.codex.turns import TurnTracker
from whyfor.agents.codex.usage import TokenCounter
from whyfor.model.findings import Record, Sink
from whyfor.model.times import parse_iso

Handler = Callable[[Record, RolloutPlace], None]

SILENT_ITEMS = frozenset(
    str.split(
        "additional_tools ghost_snapshot compaction compaction_summary compaction_trigger "
        "context_compaction other"
    )
)
# Events that repeat an item of the conversation, or only tell of progress.
SILENT_EVENTS = frozenset(
    str.split(
        "agent_message agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break "
        "agent_message_delta agent_reasoning_delta agent_message_content_delta "
        "reasoning_content_delta "
        "reasoning_raw_content_delta plan_delta plan_update turn_diff thread_settings_applied "
        "thread_goal_updated thread_queue_changed web_search_begin web_search_end "
        "image_generation_begin "
        "image_generation_end view_image_tool_call mcp_tool_call_begin mcp_startup_update "
        "mcp_startup_complete exec_command_begin exec_command_output_delta terminal_interaction "
        "patch_apply_begin patch_apply_updated item_started raw_response_item "
        "raw_response_completed "
        "hook_started hook_completed session_configured shutdown_complete background_event "
        "deprecation_notice warning guardian_warning dynamic_tool_call_request "
        "dynamic_tool_call_response "
        "elicitation_request elicitation_abandoned request_user_input model_reroute "
        "model_verification "
        "turn_moderation_metadata safety_buffering environment_connected environment_disconnected "
        "auth_recovery_started auth_recovery_completed skills_update_available undo_started "
        "undo_completed "
        "collab_agent_spawn_begin collab_agent_spawn_end collab_agent_interaction_begin "
        "collab_agent_interaction_end collab_waiting_begin collab_waiting_end collab_close_begin "
        "collab_close_end collab_resume_begin collab_resume_end realtime_conversation_started "
        "realtime_conversation_sdp realtime_conversation_realtime realtime_conversation_closed "
        "realtime_conversation_list_voices_response get_history_entry_response "
        "list_custom_prompts_response "
        "list_skills_response"
    )
)
SILENT_TURN_ITEMS = frozenset(
    str.split(
        "AgentMessage Reasoning Plan WebSearch ImageView ImageGeneration HookPrompt Sleep "
        "DynamicToolCall "
        "InjectedContext UserInputRequest"
    )
)


class RolloutReader:
    """A thread's rollout; each type of record has its handler."""

    def __init__(self, state: Record, *, subagent: bool) -> None:
        self.state = state
        if subagent:
            state["side"] = True
        self.thread = thread = Thread(state)
        self.prompts = prompts = Prompts(state, thread)
        self.calls = calls = Calls(state)
        self.turns = turns = TurnTracker(state)
        tokens = TokenCounter(state)
        self.items: dict[str, Handler] = {
            **dict.fromkeys(CALLS, calls.call),
            **dict.fromkeys(OUTPUTS, calls.output),
            **dict.fromkeys(HOSTED, calls.hosted),
            "message": self._message,
            "reasoning": self._reasoning,
            "agent_message": prompts.from_agent,
        }
        self.events: dict[str, Handler] = {
            "token_count": tokens.event,
            "item_completed": self._item_completed,
            "exec_command_end": lambda event, at: calls.ran(event.get("call_id"), event, at),
            "patch_apply_end": lambda event, at: calls.patched(event.get("call_id"), event, at),
            "mcp_tool_call_end": lambda event, at: calls.asked_server(
                event.get("call_id"), event, at
            ),
            "user_message": prompts.shown,
            "task_started": turns.started,
            "turn_started": turns.started,
            "task_complete": turns.completed,
            "turn_complete": turns.completed,
            "turn_aborted": turns.aborted,
            "error": turns.error,
            "stream_error": turns.error,
            "context_compacted": turns.context_compacted,
            "thread_rolled_back": turns.rolled_back,
            "thread_name_updated": turns.renamed,
            "entered_review_mode": turns.reviewed,
            "exited_review_mode": turns.reviewed,
            "sub_agent_activity": calls.activity,
            "exec_approval_request": calls.approval,
            "apply_patch_approval_request": calls.approval,
            "request_permissions": calls.approval,
            "guardian_assessment": calls.assessed,
        }
        self.others: dict[str, Handler] = {
            "turn_context": thread.turn_context,
            "token_usage_record": tokens.record,
            "session_meta": thread.meta,
            "compacted": turns.compacted,
            "inter_agent_communication": prompts.from_agent,
        }

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind, payload = get_str(record, "type"), record.get("payload")
        if not isinstance(payload, dict):
            if isinstance(record.get("session"), dict) and isinstance(record.get("items"), list):
                self._document(record, out)
                return
            kind, payload = unwrapped(record)
        if self.state.get("side") and self.thread.inherited(
            record, kind, payload, out.main.session_id
        ):
            return
        handler = self._handler(kind, payload, out)
        if handler is not None:
            handler(payload, RolloutPlace(out, parse_iso(record.get("timestamp")), offset, line))
        if not self.state.get("side") and self.thread.copies(payload, out.main.session_id):
            out.main.mark_copied()

    def _handler(self, kind: str, payload: Record, out: Sink) -> Handler | None:
        name = get_str(payload, "type")
        if kind == "response_item":
            handler, silent = self.items.get(name), SILENT_ITEMS
        elif kind == "event_msg":
            handler, silent = self.events.get(name), SILENT_EVENTS
        else:
            name, handler, silent = kind, self.others.get(kind), RECORDS
        if handler is None and name not in silent:
            out.unknown_type(f"{kind}/{name}" if kind in RECORDS else kind)
        return handler

    def _document(self, record: Record, out: Sink) -> None:
        """Read the oldest format: one JSON document, rewritten as it grows; an item's identity is
        its position."""
        head = get_dict(record, "session")
        begun = parse_iso(head.get("timestamp"))
        self.thread.meta(head, RolloutPlace(out, begun, 0, b"session"))
        for index, item in enumerate(get_list(record, "items")):
            if isinstance(item, dict) and (handler := self._handler("response_item", item, out)):
                handler(
                    item,
                    RolloutPlace(out, parse_iso(item.get("timestamp")) or begun, index, b"item"),
                )

    # -- what the model said ---------------------------------------------------------------------

    def _message(self, item: Record, at: RolloutPlace) -> None:
        content, role = item.get("content"), item.get("role")
        parts = (
            [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
        )
        if role == "assistant":
            self._said("assistant.message", item, texts(parts), at)
        elif role == "user":
            self.prompts.message(item, parts, at)

    def _reasoning(self, item: Record, at: RolloutPlace) -> None:
        parts = [*get_list(item, "summary"), *get_list(item, "content")]
        self._said("assistant.thinking", item, texts(parts), at)

    def _said(self, kind: str, item: Record, text: str, at: RolloutPlace) -> None:
        if text.strip():
            model = self.state.get("model")
            at.add(
                kind,
                at.key(item.get("id")),
                "assistant",
                text,
                data={"model": model} if model else None,
            )

    # -- items of a turn, as newer versions show them --------------------------------------------

    def _item_completed(self, event: Record, at: RolloutPlace) -> None:
        item, thread = get_dict(event, "item"), event.get("thread_id")
        if isinstance(thread, str) and thread != at.bucket.session_id:
            return  # a reviewer's, shown in the thread that asked for it
        kind = get_str(item, "type")
        if kind == "CommandExecution":
            self.calls.ran(item.get("id"), item, at)
        elif kind == "FileChange":
            self.calls.patched(item.get("id"), item, at)
        elif kind == "McpToolCall":
            self.calls.asked_server(item.get("id"), item, at)
        elif kind == "UserMessage":
            self.prompts.shown({"message": texts(item.get("content"))}, at)
        elif kind in ("SubAgentActivity", "CollabAgentToolCall"):
            self.calls.activity(item, at)
        elif kind in ("EnteredReviewMode", "ExitedReviewMode"):
            self.turns.reviewed(item, at)
        elif kind == "ContextCompaction":
            self.turns.context_compacted(item, at)
        elif kind not in SILENT_TURN_ITEMS:
            at.out.unknown_type(f"item_completed/{kind}")
