"""The two forms of a rollout's line: a record in an envelope, or, until mid 2025, a bare item."""

from __future__ import annotations

from whyfor.agents.base import as_dict, get_dict, get_list, get_str
from whyfor.model.findings import Record

RECORDS = frozenset(
    str.split(
        "session_meta response_item event_msg turn_context token_usage_record compacted "
        "world_state "
        "inter_agent_communication inter_agent_communication_metadata dynamic_tools_updated "
        "security_risk_score realtime_item"
    )
)
CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call", "tool_search_call"))
OUTPUTS = frozenset(("function_call_output", "custom_tool_call_output", "tool_search_output"))


def is_bare_meta(record: Record) -> bool:
    """Return whether this is the session's head without an envelope, as the first line was until
    mid 2025."""
    if record.keys() & {"type", "payload"} or not record.keys() & {"instructions", "git"}:
        return False
    return isinstance(record.get("id"), str) and "timestamp" in record


def is_bare_item(record: Record) -> bool:
    kind = get_str(record, "type")
    if kind == "message":
        parts = get_list(record, "content")
        return any(as_dict(part).get("type") in ("input_text", "output_text") for part in parts)
    return kind in CALLS or kind in OUTPUTS or (kind == "reasoning" and "summary" in record)


def unwrapped(record: Record) -> tuple[str, Record]:
    """Return a line without an envelope as if it had one: type and payload."""
    kind = get_str(record, "type")
    if is_bare_meta(record):
        return "session_meta", record
    if kind == "message" or kind == "reasoning" or kind in CALLS or kind in OUTPUTS:
        return "response_item", record
    return ("world_state" if "record_type" in record else kind), {}


def parent(meta: Record) -> str | None:
    """Return the id of the thread that spawned this one, from its head; None if none did."""
    spawned = get_dict(get_dict(get_dict(meta, "source"), "subagent"), "thread_spawn")
    return get_str(spawned, "parent_thread_id") or get_str(meta, "parent_thread_id") or None
