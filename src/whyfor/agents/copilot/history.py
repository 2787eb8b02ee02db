"""Read the format of 2025: one document per session, rewritten as it grew."""

from __future__ import annotations

from whyfor.agents.base import as_dict, flatten, get_dict, get_list, get_str
from whyfor.agents.copilot.calls import decoded, touched_files
from whyfor.agents.copilot.record_place import CopilotPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.times import parse_iso


class HistoryReader:
    """`history-session-state/*.json`, the sessions of 2025."""

    def __init__(self, state: Record) -> None:
        self.state = state
        self.called: set[int] = set()

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        self.called.clear()
        begun = parse_iso(record.get("startTime"))
        at = CopilotPlace(out, out.main, begun, out.main.session_id)
        at.add("session.started", at.key(None, "place"), "system")
        entries = get_list(record, "timeline") or get_list(record, "chatMessages")
        for index, entry in enumerate(map(as_dict, entries)):
            ident = get_str(entry, "id") or f"{out.main.session_id}:{index}"
            here = CopilotPlace(out, out.main, parse_iso(entry.get("timestamp")) or begun, ident)
            if "role" in entry:
                self._message(entry, here)
            else:
                self._entry(entry, here)

    def _entry(self, entry: Record, at: CopilotPlace) -> None:
        kind, text = get_str(entry, "type"), get_str(entry, "text")
        call = get_str(entry, "callId")
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

    def _tool(self, entry: Record, call: str, at: CopilotPlace, *, done: bool) -> None:
        name = get_str(entry, "name") or get_str(entry, "toolTitle") or "unknown"
        given = decoded(entry.get("arguments"))
        if at.key(call) not in self.called:  # a call that needed no permission has one entry only
            self.called.add(at.key(call))
            at.call(at.key(call), call or None, name, given)
        if done:
            result = get_dict(entry, "result")
            failed = get_str(result, "type") not in ("", "success")
            key = at.key(call, "result")
            data = {"id": call or None, **({"failed": True} if failed else {})}
            at.add("tool.result", key, "tool", get_str(result, "log") or flatten(result), data=data)
            if not failed:
                for path, action in touched_files(name, given):
                    at.touch(key, [path], action)

    def _message(self, entry: Record, at: CopilotPlace) -> None:
        """Read a message to the model, for documents without a timeline."""
        role, text = entry.get("role"), get_str(entry, "content")
        if role == "user" and text.strip():
            at.add("user.prompt", at.key(), "user", text)
        elif role == "assistant":
            if text.strip():
                at.add("assistant.message", at.key(), "assistant", text)
            for call in map(as_dict, get_list(entry, "tool_calls")):
                asked = get_dict(call, "function")
                request = {"name": asked.get("name"), "arguments": asked.get("arguments")}
                self._tool(request, get_str(call, "id"), at, done=False)
        elif role == "tool":
            call_id = get_str(entry, "tool_call_id")
            at.add(
                "tool.result", at.key(call_id, "result"), "tool", text, data={"id": call_id or None}
            )
