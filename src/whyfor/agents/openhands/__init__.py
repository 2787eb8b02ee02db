"""OpenHands CLI: a folder per conversation under ~/.openhands/conversations, with one file for each
event, and a state that is rewritten."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_dict,
    get_str,
    walk,
)
from whyfor.agents.beside import small_object
from whyfor.agents.openhands.facts import FACTS, conversations_folder
from whyfor.agents.openhands.times import local_time
from whyfor.model.findings import Record

STATE = "base_state.json"
_HEX = re.compile(r"[0-9a-f]{32}")


class OpenHands(FileAgent):
    name = "openhands"
    title = "OpenHands"
    facts = FACTS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [conversations_folder(home, env)]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        """The state of a conversation comes before its events, which are numbered."""
        for path in walk(root, (".json",), onerror):
            if path.name == STATE or path.parent.name == "events":
                yield path

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if path.name == STATE:
            is_own = b'"workspace"' in head and b'"agent"' in head
            session = _session_id(path.parent.name)
            return SourceShape("document", session, sidecar="meta") if is_own else None
        if path.parent.name != "events" or b'"kind"' not in head or b'"source"' not in head:
            return None
        folder = path.parent.parent
        place = get_dict(small_object(folder / STATE), "workspace")
        cwd = get_str(place, "working_dir") or None
        return SourceShape("document", _session_id(folder.name), cwd=cwd)

    def stamp(self, record: Record) -> RecordStamp:
        at = local_time(record.get("timestamp"))
        return RecordStamp(
            at=at,
            since=at,
            cwd=get_str(get_dict(record, "workspace"), "working_dir") or None,
            name=get_str(record, "id"),
        )

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.openhands.read import (
            ConversationStateReader,
            EventReader,
        )  # most read nothing

        if shape.sidecar:
            return ConversationStateReader(state)
        return EventReader(state, shape, FACTS)

    def resume(self, session_id: str) -> str:
        return f"openhands --resume {session_id}"


def _session_id(name: str) -> str:
    """Return the id as the program prints it; folders are called by it without dashes."""
    if not _HEX.fullmatch(name):
        return name
    return "-".join((name[:8], name[8:12], name[12:16], name[16:20], name[20:]))


AGENT = OpenHands()
