"""Claude Code: JSONL transcripts under ~/.claude/projects, one line per content block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whyfor.agents.base import FileAgent, OnError, RecordReader, SourceShape, head_records, walk
from whyfor.agents.claude.facts import FACTS
from whyfor.agents.claude.places import projects_folder, subagent_id
from whyfor.model.findings import Record

if TYPE_CHECKING:
    from whyfor.agents.claude.processes import Registry
    from whyfor.agents.conversation import SessionWriter
from whyfor.agents.base import RecordStamp
from whyfor.agents.claude.stamp import stamp

# Keys by which records of other agents are known that also have a session and a type.
_OTHERS = ("payload", "provenance", "systemPayload")


# What the payloads of their hooks have and Claude's have not, and where their transcripts are.
_OTHERS_HOOKS = ("hookEventName", "client_type", "cursor_version", "conversation_id")
_OTHERS_FOLDERS = (".grok", ".kimi-code", ".kimi", ".factory", ".qwen", ".continue", ".cursor")


class Claude(FileAgent):
    name = "claude"
    title = "Claude Code"
    facts = FACTS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [projects_folder(home, env)]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        transcripts: list[Path] = []
        others: list[Path] = []
        for path in walk(root, (".jsonl", ".meta.json", ".txt", ".json"), onerror):
            if path.parent.name == "tool-results" or path.name.endswith(".meta.json"):
                others.append(path)
            elif path.suffix == ".jsonl":
                transcripts.append(path)
        transcripts.sort(key=lambda path: path.name.startswith("agent-"))
        yield from transcripts
        yield from others

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if path.name.endswith(".meta.json") and path.name.startswith("agent-"):
            parent = _sidecar_parent(path)
            agent_id = path.name.removeprefix("agent-").removesuffix(".meta.json")
            return (
                SourceShape("document", subagent_id(agent_id, parent), parent, sidecar="meta")
                if parent
                else None
            )
        if path.parent.name == "tool-results":
            return SourceShape("blob", path.parent.parent.name, sidecar="result")
        found = False
        for record in head_records(head):
            kind = record.get("type")
            session = record.get("sessionId")
            if any(name in record for name in _OTHERS):
                continue
            if isinstance(session, str) and isinstance(kind, str):
                whose = record.get("agentId")
                if isinstance(whose, str) and (
                    record.get("isSidechain") or path.name.startswith("agent-")
                ):
                    return SourceShape("lines", subagent_id(whose, session), session)
                return SourceShape("lines", session)
            found = found or (
                kind in ("summary", "file-history-snapshot", "custom-title", "ai-title")
            )
            found = found or ("parentUuid" in record and "message" in record)
        return SourceShape("lines", path.name.removesuffix(".jsonl")) if found else None

    def stamp(self, record: Record) -> RecordStamp:
        return stamp(record)

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.claude.read import (  # most commands read nothing
            MetaReader,
            ResultReader,
            TranscriptReader,
        )

        if shape.sidecar == "meta":
            return MetaReader(state)
        if shape.sidecar == "result":
            return ResultReader(state)
        return TranscriptReader(state, subagent=shape.parent is not None)

    def writer(self) -> SessionWriter:
        from whyfor.agents.claude.write import WRITER

        return WRITER

    def processes(self, home: Path, env: Mapping[str, str]) -> Registry:
        from whyfor.agents.claude.processes import Registry

        return Registry(home, env)

    def owns_hook(self, payload: Record) -> bool:
        """Copilot, Cursor, Grok Build and Continue run hooks from Claude's settings too, under
        session ids of their own."""
        if not payload:
            return True
        told = payload.get("transcript_path")
        path = told.replace("\\", "/") if isinstance(told, str) else ""
        is_others = any(name in payload for name in _OTHERS_HOOKS)
        in_others = any(f"/{folder}/" in path for folder in _OTHERS_FOLDERS)
        return "transcript_path" in payload and not is_others and not in_others


def _sidecar_parent(path: Path) -> str | None:
    for folder in path.parents:
        if folder.name == "subagents":
            return folder.parent.name
    return None


AGENT = Claude()
