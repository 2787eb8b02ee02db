"""Gemini CLI: sessions in ~/.gemini/tmp/<project>/chats; formerly one JSON document each, now a
JSONL edit log."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whyfor.agents.base import (
    FileAgent,
    Framing,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_str,
    head_records,
    walk,
)
from whyfor.agents.gemini.facts import EDIT, FACTS, FETCH, SHELL, own_folder
from whyfor.agents.gemini.folder import session_folder
from whyfor.model.findings import Record
from whyfor.model.tools import MCP

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter
from whyfor.agents.gemini.stamp import stamp

INVESTIGATE = "Your task is to do a deep investigation of the codebase"
_SESSION = rb'\{\r?\n\s*"sessionId":\s*"([^"\\]+)",\s*"projectHash":\s*"'
# Two spaces are the document's own keys: deeper ones stand further in, and strings have no
# newlines.
_START = rb'(?m)^  "startTime":\s*"([^"\\]+)"'
_SUBAGENT = rb'(?m)^  "kind":\s*"subagent"'
_FIRST_TASK = rb'"type":\s*"user",\s*"content":\s*(?:\[\s*\{\s*"text":\s*)?"' + INVESTIGATE.encode()


class Gemini(FileAgent):
    name = "gemini"
    title = "Gemini CLI"
    facts = FACTS
    mutable = True
    rewritable: tuple[Framing, ...] = ("lines", "document")
    lists = ("messages",)

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [own_folder(home, env) / "tmp"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        subagents: list[Path] = []
        for path in walk(root, (".json", ".jsonl"), onerror):
            if path.parent.name == "chats":
                yield path
            elif path.parent.parent.name == "chats":
                subagents.append(path)
        yield from subagents

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        first = next(head_records(head, 1), None)
        if (first is None and re.match(_SESSION, head)) or (first and "messages" in first):
            return _document_shape(path, head, first)
        for record in head_records(head):
            session, changes = record.get("sessionId"), record.get("$set")
            if (
                isinstance(session, str)
                and isinstance(record.get("projectHash"), str)
                and "type" not in record
            ):
                return SourceShape("lines", session, _parent(path), cwd=session_folder(path))
            if isinstance(changes, dict) and ("lastUpdated" in changes or "messages" in changes):
                # Its first line is damaged: the name has a subagent's id, and the beginning of any
                # other's.
                ident = path.stem if _parent(path) else path.stem.rsplit("-", 1)[-1]
                return SourceShape("lines", ident, _parent(path), cwd=session_folder(path))
        return None

    def stamp(self, record: Record) -> RecordStamp:
        return stamp(record)

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.gemini.read import SessionReader  # most commands read nothing

        return SessionReader(state, shape)

    def writer(self) -> SessionWriter:
        from whyfor.agents.gemini.write import WRITER

        return WRITER

    def requested(self, payload: Record) -> Record:
        """Only the notification says what a call asks for, because the call is recorded when it is
        over."""
        details = payload.get("details")
        if payload.get("notification_type") != "ToolPermission" or not isinstance(details, dict):
            return super().requested(payload)
        match details.get("type"):
            case "exec":
                return {"tool": SHELL, "text": details.get("command")}
            case "edit":
                return {"tool": EDIT, "path": details.get("filePath")}
            case "mcp":
                return {"tool": f"{MCP}{details.get('serverName')}__{details.get('toolName')}"}
            case "info":
                return {"tool": FETCH, "text": details.get("prompt")}
        return {}


def _document_shape(path: Path, head: bytes, whole: Record | None) -> SourceShape | None:
    """Detect the older format: pretty-printed, so its first bytes alone are not valid JSON."""
    if whole is not None:
        session, start = whole.get("sessionId"), get_str(whole, "startTime")
        if not isinstance(session, str) or not isinstance(whole.get("projectHash"), str):
            return None
        subagent = whole.get("kind") == "subagent"
    else:
        named, begun = re.match(_SESSION, head), re.search(_START, head)
        session = named[1].decode("utf-8", "replace") if named else ""
        start = begun[1].decode("utf-8", "replace") if begun else ""
        subagent = bool(re.search(_SUBAGENT, head) or re.search(_SUBAGENT, _last_bytes(path)))
    parent, cwd = _parent(path), session_folder(path)
    if parent is None and (subagent or re.search(_FIRST_TASK, head[:4096])):
        # In this dialect a subagent has a file of its own, but its parent's session id in it.
        return SourceShape(
            "document", f"agent-{re.sub('[^0-9]', '', start)}@{session}", session, cwd=cwd
        )
    return SourceShape("document", session, parent, cwd=cwd)


def _parent(path: Path) -> str | None:
    """Return the parent of a subagent, whose file is in a directory named after it; None for other
    sessions."""
    return path.parent.name if path.parent.parent.name == "chats" else None


def _last_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            return file.read()
    except OSError:
        return b""


AGENT = Gemini()
