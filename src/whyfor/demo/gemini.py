"""Write a transcript in the format of Gemini CLI."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from whyfor.demo.logs import Log
from whyfor.demo.places import Demo, write_file


class GeminiDemo(Log):
    agent = "gemini"

    def __init__(self, demo: Demo, session: str, at: datetime, branch: str = "main") -> None:
        super().__init__(demo, session, at, branch)
        header = {
            "sessionId": session,
            "projectHash": sha256(str(demo.repository).encode()).hexdigest(),
        }
        self.lines.append({**header, "startTime": self.tick(), "kind": "main"})
        self._open: dict[str, dict[str, Any]] = {}

    def _line(self, kind: str, content: Any, **more: Any) -> None:
        line = {"id": self.ident(), "timestamp": self.tick(), "type": kind, "content": content}
        self.lines.append({**line, **more})

    def prompt(self, text: str) -> None:
        self._line("user", [{"text": text}])

    def say(self, text: str) -> None:
        spent = {
            "input": 11_400,
            "output": 180,
            "cached": 9_000,
            "thoughts": 60,
            "tool": 0,
            "total": 11_640,
        }
        self._line("gemini", text, model="gemini-demo-1", tokens=spent)

    def run(self, command: str) -> str:
        """Start a command. Its message is first written without results, and again when its calls
        have ended."""
        ident = f"run_{self.ident()[:8]}"
        call = {
            "id": ident,
            "name": "run_shell_command",
            "args": {"command": command},
            "status": "executing",
        }
        self._line("gemini", "", model="gemini-demo-1", toolCalls=[call])
        self._open[ident] = self.lines[-1]
        return ident

    def end(self, call: str, result: str, *, failed: bool = False) -> None:
        """Write the same message again, with the result."""
        line = self._open.pop(call)
        answer = {
            "functionResponse": {
                "id": call,
                "name": "run_shell_command",
                "response": {"output": result},
            }
        }
        done = {
            **line["toolCalls"][0],
            "status": "error" if failed else "success",
            "result": [answer],
        }
        self.lines.append({**line, "toolCalls": [{**done, "timestamp": self.tick()}]})

    @property
    def path(self) -> Path:
        name = f"session-{self.started:%Y-%m-%dT%H-%M}-{self.session[:8]}.jsonl"
        return self.demo.home / ".gemini" / "tmp" / self.demo.repository.name / "chats" / name

    def save(self) -> None:
        super().save()
        write_file(self.path.parent.parent / ".project_root", str(self.demo.repository))
