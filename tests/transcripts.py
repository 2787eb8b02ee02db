"""Miniature Claude Code transcripts, written the way the agent writes them."""

from __future__ import annotations

import itertools
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

NAMESPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")


class Transcript:
    """Build a session line by line: t = Transcript("s1"); t.prompt("…"); t.say("…");
    t.save(home)."""

    def __init__(
        self,
        name: str,
        *,
        cwd: str = "/code/shop",
        branch: str = "main",
        day: str = "2026-05-01",
        live: bool = False,
        ago: timedelta = timedelta(0),
    ) -> None:
        """`live`: every line is of the moment it is added, less `ago`, so that the session counts
        as active whatever the hour."""
        self.session_id = str(uuid.uuid5(NAMESPACE, name))
        self.cwd = cwd
        self.branch = branch
        self.day = day
        self.live = live
        self.ago = ago
        self.lines: list[dict[str, Any]] = []
        self._count = itertools.count(1)
        self._seconds = itertools.count(0, 5)
        self._parent: str | None = None

    def _id(self) -> str:
        return str(uuid.uuid5(uuid.UUID(self.session_id), str(next(self._count))))

    def _time(self) -> str:
        if self.live:
            return f"{datetime.now(UTC) - self.ago:%Y-%m-%dT%H:%M:%S.%f}Z"
        seconds = next(self._seconds)
        return (
            f"{self.day}T{10 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.000Z"
        )

    def add(self, kind: str, message: dict[str, Any], **extra: Any) -> str:
        ident = self._id()
        line = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "type": kind,
            "message": message,
            "uuid": ident,
            "timestamp": self._time(),
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": "2.1.197",
            "gitBranch": self.branch,
        }
        self.lines.append({**line, **extra})
        self._parent = ident
        return ident

    def prompt(self, text: str) -> str:
        return self.add("user", {"role": "user", "content": text})

    def block(
        self, block: dict[str, Any], *, output: int = 10, model: str = "claude-test-1"
    ) -> str:
        usage = {
            "input_tokens": 3,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 100,
        }
        message = {
            "id": f"msg_{self._id()}",
            "role": "assistant",
            "model": model,
            "content": [block],
        }
        return self.add(
            "assistant",
            {**message, "usage": {**usage, "output_tokens": output}},
            requestId=self._id(),
        )

    def say(self, text: str) -> str:
        return self.block({"type": "text", "text": text})

    def think(self, text: str) -> str:
        return self.block({"type": "thinking", "thinking": text, "signature": "x"})

    def call(
        self, tool: str, given: dict[str, Any], result: str = "ok", *, failed: bool = False
    ) -> str:
        """A tool call and its result; returns the call's id."""
        ident = f"toolu_{self._id()[:13]}"
        self.block({"type": "tool_use", "id": ident, "name": tool, "input": given})
        answer = {
            "type": "tool_result",
            "tool_use_id": ident,
            "content": result,
            "is_error": failed,
        }
        self.add("user", {"role": "user", "content": [answer]}, toolUseResult={"stdout": result})
        return ident

    def text(self) -> str:
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)

    def path(self, home: Path) -> Path:
        return home / ".claude" / "projects" / "-work-shop" / f"{self.session_id}.jsonl"

    def save(self, home: Path) -> Path:
        path = self.path(home)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(), encoding="utf-8")
        return path
