"""Write a session of Copilot CLI: its events under a new id, in a folder of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

import msgspec

from whyfor.agents.base import as_dict, get_dict, get_list, get_str
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.agents.copilot.facts import own_folder
from whyfor.agents.tree_writer import TreeWriter
from whyfor.model.findings import Record
from whyfor.model.times import to_iso

_VERSION = "1.0.102"  # whose form the events have; it reads no session without one
_CONVERSATION = (
    "user.message",
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.message",
    "assistant.reasoning",
    "tool.user_requested",
    "tool.execution_start",
    "tool.execution_complete",
    "session.compaction_start",
    "session.compaction_complete",
    "session.context_cleared",
    "session.truncation",
    "abort",
)


class CopilotWriter(TreeWriter):
    own, parent = "id", "parentId"

    def command(self, session_id: str, path: str = "") -> str:
        return f"copilot --resume={session_id}"

    def opens(self, record: Record) -> list[str]:
        if record.get("type") != "assistant.message" or _is_subagents(record):
            return []
        return [get_str(request, "toolCallId") for request in _requests(record)]

    def answers(self, record: Record) -> list[str]:
        is_result = record.get("type") == "tool.execution_complete"
        return [get_str(get_dict(record, "data"), "toolCallId")] if is_result else []

    def asks(self, record: Record) -> bool:
        return record.get("type") == "user.message" and not _is_subagents(record)

    def without(self, record: Record, calls: set[str]) -> Record | None:
        data = get_dict(record, "data")
        if get_str(data, "toolCallId") in calls:
            return None
        if not calls.intersection(self.opens(record)):
            return record
        left = [one for one in _requests(record) if get_str(one, "toolCallId") not in calls]
        kept = {**record, "data": {**data, "toolRequests": left}}
        return kept if left or get_str(data, "content") else None

    def kept(self, record: Record) -> bool:
        return record.get("type") in _CONVERSATION and not _is_subagents(record)

    def moved(self, record: Record, place: NewSession) -> Record:
        data = {name: v for name, v in get_dict(record, "data").items() if name != "outputTokens"}
        return {**record, "data": data}

    def head(self, place: NewSession, origin: Record) -> list[Record]:
        began = {
            "sessionId": place.session_id,
            "version": 1,
            "producer": "copilot-agent",
            "copilotVersion": _VERSION,
            "startTime": to_iso(place.now),
            "context": {"cwd": place.cwd},
        }
        return [_event("session.start", began, place.now)]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """The first event follows nothing, as all programs write it."""
        head, *chain = super().joined(records, place)
        return [{**head, "parentId": None}, *chain]

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [_message(item) for item in said]

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        folder = own_folder(place.home, place.env) / "session-state" / place.session_id
        about = {"id": place.session_id, "cwd": place.cwd, "name": place.title}
        lines = [_yaml_line(name, value) for name, value in about.items()]
        return [
            NewFile(folder / "events.jsonl", json_lines(records)),
            NewFile(folder / "workspace.yaml", "".join([*lines, "user_named: true\n"]).encode()),
        ]


def _yaml_line(name: str, value: str) -> str:
    """Return a line of YAML; a JSON string is one of YAML too."""
    return f"{name}: {msgspec.json.encode(value).decode()}\n"


def _requests(record: Record) -> list[Record]:
    return [as_dict(each) for each in get_list(get_dict(record, "data"), "toolRequests")]


def _is_subagents(record: Record) -> bool:
    """Return whether an event is a subagent's: these stand in the same log."""
    data = get_dict(record, "data")
    return bool(get_str(record, "agentId") or get_str(data, "parentToolCallId"))


def _event(kind: str, data: Record, at: int) -> Record:
    return {"type": kind, "data": data, "id": str(uuid.uuid4()), "timestamp": to_iso(at)}


def _message(said: SpokenLine) -> Record:
    if said.role == "user":
        return _event("user.message", {"content": said.text}, said.at)
    told = {"messageId": str(uuid.uuid4()), "content": said.text, "toolRequests": []}
    model = {"model": said.model} if said.model else {}
    return _event("assistant.message", {**told, **model}, said.at)


WRITER = CopilotWriter()
