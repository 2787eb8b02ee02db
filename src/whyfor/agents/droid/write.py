"""Write a session of Droid: its log in its project's folder, and the settings beside it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

import msgspec

from whyfor.agents.base import as_dict, as_list, get_dict, get_str
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.agents.droid.facts import factory_folder
from whyfor.agents.tree_writer import TreeWriter
from whyfor.model.findings import Record
from whyfor.model.times import to_iso

_VERSION = 2  # of the format


class DroidWriter(TreeWriter):
    own, parent = "id", "parentId"

    def command(self, session_id: str, path: str = "") -> str:
        return f"droid --resume {session_id}"

    def opens(self, record: Record) -> list[str]:
        return _ids(record, "tool_use", "id")

    def answers(self, record: Record) -> list[str]:
        return _ids(record, "tool_result", "tool_use_id")

    def asks(self, record: Record) -> bool:
        message = get_dict(record, "message")
        return message.get("role") == "user" and not self.answers(record)

    def without(self, record: Record, calls: set[str]) -> Record | None:
        if not calls.intersection(self.opens(record)):
            return record
        left = [block for block in _blocks(record) if block.get("id") not in calls]
        message = {**get_dict(record, "message"), "content": left}
        return {**record, "message": message} if left else None

    def kept(self, record: Record) -> bool:
        """What hooks did is left out, and what the program says anew when it resumes."""
        is_message = record.get("type") == "message"
        is_hook = get_dict(record, "message").get("visibility") == "user_only"
        is_context = get_str(record, "id").startswith("context-")
        return is_message and not is_hook and not is_context

    def moved(self, record: Record, place: NewSession) -> Record:
        return record

    def head(self, place: NewSession, origin: Record) -> list[Record]:
        start = {"type": "session_start", "id": place.session_id, "title": place.title}
        return [{**start, "owner": "unknown", "version": _VERSION, "cwd": place.cwd}]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """The first line is no part of the tree: the first message follows nothing."""
        head, *chain = super().joined(records, place)
        if chain:
            chain[0] = {name: value for name, value in chain[0].items() if name != "parentId"}
        return [head, *chain]

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [_message(item) for item in said]

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        folder = factory_folder(place.home, place.env) / "sessions" / place.cwd.replace("/", "-")
        settings = {"interactionMode": "auto", "autonomyLevel": "off", "autonomyMode": "normal"}
        body = msgspec.json.format(msgspec.json.encode(settings), indent=2)
        return [
            NewFile(folder / f"{place.session_id}.jsonl", json_lines(records)),
            NewFile(folder / f"{place.session_id}.settings.json", body),
        ]


def _blocks(record: Record) -> list[Record]:
    content = get_dict(record, "message").get("content")
    return [as_dict(block) for block in as_list(content)]


def _ids(record: Record, kind: str, name: str) -> list[str]:
    found = (get_str(block, name) for block in _blocks(record) if block.get("type") == kind)
    return [ident for ident in found if ident]


def _message(said: SpokenLine) -> Record:
    content = [{"type": "text", "text": said.text}]
    message = {"role": said.role, "content": content}
    record = {"type": "message", "id": str(uuid.uuid4()), "timestamp": to_iso(said.at)}
    return {**record, "message": message}


WRITER = DroidWriter()
