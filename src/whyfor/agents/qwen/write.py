"""Write a session of Qwen Code: its records under a new id, in its project's folder."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence

from whyfor.agents.base import as_dict, get_dict, get_list, get_str
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.agents.qwen.facts import runtime_folder
from whyfor.agents.tree_writer import TreeWriter
from whyfor.model.findings import Record
from whyfor.model.times import to_iso

_CONVERSATION = ("user", "assistant", "tool_result")


class QwenWriter(TreeWriter):
    def command(self, session_id: str, path: str = "") -> str:
        return f"qwen --resume {session_id}"

    def opens(self, record: Record) -> list[str]:
        return _ids(record, "functionCall")

    def answers(self, record: Record) -> list[str]:
        return _ids(record, "functionResponse")

    def asks(self, record: Record) -> bool:
        return record.get("type") == "user" and not self.answers(record)

    def without(self, record: Record, calls: set[str]) -> Record | None:
        if not calls.intersection(self.opens(record)):
            return record
        left = [part for part in _parts(record) if get_str(_call(part), "id") not in calls]
        message = {**get_dict(record, "message"), "parts": left}
        return {**record, "message": message} if left else None

    def kept(self, record: Record) -> bool:
        return record.get("type") in _CONVERSATION

    def moved(self, record: Record, place: NewSession) -> Record:
        line = {name: value for name, value in record.items() if name != "usageMetadata"}
        own = get_str(record, "uuid") or str(uuid.uuid4())
        return {**line, "uuid": own, "sessionId": place.session_id, "cwd": place.cwd}

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [_line(item) for item in said]

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        folder = re.sub(r"[^a-zA-Z0-9]", "-", place.cwd)
        chats = runtime_folder(place.home, place.env) / "projects" / folder / "chats"
        return [NewFile(chats / f"{place.session_id}.jsonl", json_lines(records))]


def _parts(record: Record) -> list[Record]:
    return [as_dict(part) for part in get_list(get_dict(record, "message"), "parts")]


def _call(part: Record) -> Record:
    return get_dict(part, "functionCall")


def _ids(record: Record, name: str) -> list[str]:
    found = (get_str(get_dict(part, name), "id") for part in _parts(record) if name in part)
    return [ident for ident in found if ident]


def _line(said: SpokenLine) -> Record:
    is_user = said.role == "user"
    line: Record = {
        "uuid": str(uuid.uuid4()),
        "timestamp": to_iso(said.at),
        "type": "user" if is_user else "assistant",
        "provenance": "real_user" if is_user else "assistant_output",
        "message": {"role": "user" if is_user else "model", "parts": [{"text": said.text}]},
    }
    return line if is_user else {**line, "model": said.model or "unknown"}


WRITER = QwenWriter()
