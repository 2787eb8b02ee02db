"""Qwen Code: a log per session under ~/.qwen/projects/<folder>/chats, a tree of records like
Claude's around messages like Gemini's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_str,
    head_records,
    walk,
)
from whyfor.agents.qwen.facts import FACTS, runtime_folder
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter

_TYPES = ("user", "assistant", "tool_result", "system")


class Qwen(FileAgent):
    name = "qwen"
    title = "Qwen Code"
    facts = FACTS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [runtime_folder(home, env) / "projects"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        subagents: list[Path] = []
        for path in walk(root, (".jsonl",), onerror):
            if path.parent.name == "chats":
                yield path
            elif path.parent.parent.name == "subagents":
                subagents.append(path)
        yield from subagents

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        for record in head_records(head):
            session = get_str(record, "sessionId")
            is_own = "provenance" in record or _has_parts(record) or "systemPayload" in record
            if session and record.get("type") in _TYPES and "uuid" in record and is_own:
                return _shape(path, session)
        return None

    def stamp(self, record: Record) -> RecordStamp:
        at = parse_iso(record.get("timestamp"))
        return RecordStamp(
            at=at,
            since=at,
            cwd=get_str(record, "cwd") or None,
            session_id=get_str(record, "sessionId") or None,
            retells=record.get("subtype") in ("chat_compression", "custom_title"),
            name=get_str(record, "uuid"),
            is_link="uuid" in record,
        )

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.qwen.read import QwenReader  # most commands read nothing

        return QwenReader(state, shape, FACTS)

    def writer(self) -> SessionWriter:
        from whyfor.agents.qwen.write import WRITER

        return WRITER

    def owns_hook(self, payload: Record) -> bool:
        """A prompt's hook also runs each time a tool's result is sent: without a prompt."""
        is_prompt = payload.get("hook_event_name") == "UserPromptSubmit"
        return not (is_prompt and payload.get("prompt") == "")


def _has_parts(record: Record) -> bool:
    message = record.get("message")
    return isinstance(message, dict) and isinstance(message.get("parts"), list)


def _shape(path: Path, session: str) -> SourceShape:
    """A subagent's file stands in a folder named after its session."""
    if path.parent.parent.name == "subagents":
        return SourceShape("lines", f"{path.stem}@{path.parent.name}", path.parent.name)
    return SourceShape("lines", session)


AGENT = Qwen()
