"""Write a session of Pi: a header, then its entries, in its project's folder."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence

from whyfor.agents.base import as_dict, as_list, get_dict, get_str
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.agents.pi.facts import sessions_folder
from whyfor.agents.tree_writer import TreeWriter
from whyfor.model.findings import Record
from whyfor.model.times import to_iso

_VERSION = 3  # of the format
_SEPARATOR = re.compile(r"[/\\:]")
# What was spent is told by the session it was spent in; but it adds up what every answer says.
_COUNTS = ("input", "output", "cacheRead", "cacheWrite")
_FREE = dict.fromkeys((*_COUNTS, "total"), 0)
_SPENT: Record = {**dict.fromkeys((*_COUNTS, "totalTokens"), 0), "cost": _FREE}


class PiWriter(TreeWriter):
    own, parent = "id", "parentId"

    def command(self, session_id: str, path: str = "") -> str:
        return f"pi --session {session_id}"

    def opens(self, record: Record) -> list[str]:
        return [get_str(part, "id") for part in _parts(record) if part.get("type") == "toolCall"]

    def answers(self, record: Record) -> list[str]:
        message = get_dict(record, "message")
        return [get_str(message, "toolCallId")] if message.get("role") == "toolResult" else []

    def asks(self, record: Record) -> bool:
        return get_dict(record, "message").get("role") == "user"

    def without(self, record: Record, calls: set[str]) -> Record | None:
        if not calls.intersection(self.opens(record)):
            return record
        left = [part for part in _parts(record) if part.get("id") not in calls]
        message = {**get_dict(record, "message"), "content": left}
        return {**record, "message": message} if left else None

    def kept(self, record: Record) -> bool:
        return record.get("type") != "session"

    def moved(self, record: Record, place: NewSession) -> Record:
        message = get_dict(record, "message")
        if not message:
            return record
        bare = {name: value for name, value in message.items() if name != "usage"}
        if message.get("role") == "assistant":
            bare["usage"] = _SPENT
        return {**record, "message": bare}

    def head(self, place: NewSession, origin: Record) -> list[Record]:
        return [
            {
                "type": "session",
                "version": _VERSION,
                "id": place.session_id,
                "timestamp": to_iso(place.now),
                "cwd": place.cwd,
            }
        ]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """The header is no part of the tree: the first entry follows nothing."""
        head, *chain = super().joined(records, place)
        if chain:
            chain[0] = {**chain[0], "parentId": None}
        name = {"type": "session_info", "id": uuid.uuid4().hex[:8], "name": place.title}
        last = chain[-1]["id"] if chain else None
        return [head, *chain, {**name, "parentId": last, "timestamp": to_iso(place.now)}]

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [_entry(item) for item in said]

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        folder = f"--{_SEPARATOR.sub('-', place.cwd.lstrip('/'))}--"
        when = re.sub(r"[:.]", "-", to_iso(place.now) or "")
        path = sessions_folder(place.home, place.env) / folder / f"{when}_{place.session_id}.jsonl"
        return [NewFile(path, json_lines(records))]


def _parts(record: Record) -> list[Record]:
    content = get_dict(record, "message").get("content")
    return [as_dict(part) for part in as_list(content)]


def _entry(said: SpokenLine) -> Record:
    message: Record = {
        "role": said.role,
        "content": [{"type": "text", "text": said.text}],
        "timestamp": said.at,
    }
    if said.role != "user":
        message |= {"api": "unknown", "provider": "unknown", "model": said.model or "unknown"}
        message |= {"stopReason": "stop", "usage": _SPENT}
    entry: Record = {"type": "message", "id": uuid.uuid4().hex[:8], "timestamp": to_iso(said.at)}
    return {**entry, "message": message}


WRITER = PiWriter()
