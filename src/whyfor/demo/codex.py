"""Write a transcript in the format of Codex."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from whyfor.demo.logs import Log, hunks
from whyfor.demo.places import Demo, write_file


class CodexDemo(Log):
    agent = "codex"
    seconds = 3

    def __init__(self, demo: Demo, session: str, at: datetime, branch: str = "main") -> None:
        super().__init__(demo, session, at, branch)
        self.total = {
            "input_tokens": 0,
            "cached_input_tokens": 0,
            "output_tokens": 0,
            "reasoning_output_tokens": 0,
        }
        git = {"branch": self.branch, "repository_url": demo.remote}
        begun = {
            "id": session,
            "timestamp": self.tick(),
            "cwd": str(demo.repository),
            "originator": "codex_cli_rs",
        }
        self._line("session_meta", {**begun, "cli_version": "0.144.0", "source": "cli", "git": git})
        turn = {"turn_id": self.ident(), "cwd": str(demo.repository), "model": "gpt-demo-1"}
        self._line("turn_context", turn)

    def _line(self, kind: str, payload: dict[str, Any]) -> None:
        self.lines.append({"timestamp": self.tick(), "type": kind, "payload": payload})

    def _item(self, **payload: Any) -> None:
        self._line("response_item", payload)

    def _spend(self, output: int, reasoning: int = 0) -> None:
        last = {"input_tokens": 8200, "cached_input_tokens": 7600, "output_tokens": output}
        last["reasoning_output_tokens"] = reasoning
        self.total = {name: self.total[name] + last[name] for name in self.total}
        info = {
            "total_token_usage": self.total,
            "last_token_usage": last,
            "model_context_window": 258_400,
        }
        self._line("event_msg", {"type": "token_count", "info": info})

    def prompt(self, text: str) -> None:
        self._item(type="message", role="user", content=[{"type": "input_text", "text": text}])
        self._line("event_msg", {"type": "user_message", "message": text})

    def reason(self, text: str) -> None:
        self._item(
            type="reasoning",
            summary=[{"type": "summary_text", "text": text}],
            encrypted_content="demo",
        )

    def say(self, text: str) -> None:
        self._item(
            type="message", role="assistant", content=[{"type": "output_text", "text": text}]
        )
        self._spend(160)

    def begin(self, name: str, given: dict[str, Any]) -> str:
        ident = f"call_{self.ident()[:12]}"
        self._item(type="function_call", name=name, arguments=json.dumps(given), call_id=ident)
        return ident

    def run(self, command: str) -> str:
        return self.begin("exec_command", {"cmd": command})

    def end(self, call: str, result: str, *, failed: bool = False) -> None:
        told = f"Process exited with code 1\nOutput:\n{result}" if failed else result
        self._item(type="function_call_output", call_id=call, output=told)
        self._spend(70, 32)

    def call(self, name: str, given: dict[str, Any], result: str) -> None:
        self.end(self.begin(name, given), result)

    def put(self, name: str, content: str) -> None:
        path = self.demo.repository / name
        old = path.read_text(encoding="utf-8")
        write_file(path, content)
        changed = "".join(
            "".join(f"{line}\n" for line in hunk["lines"]) for hunk in hunks(old, content)
        )
        ident = f"call_{self.ident()[:12]}"
        text = f"*** Begin Patch\n*** Update File: {name}\n@@\n{changed}*** End Patch"
        self._item(
            type="custom_tool_call",
            name="apply_patch",
            input=text,
            call_id=ident,
            status="completed",
        )
        changes = {str(path): {"type": "update", "unified_diff": f"@@ -1,2 +1,2 @@\n{changed}"}}
        done = {"type": "patch_apply_end", "call_id": ident, "success": True, "changes": changes}
        self._line("event_msg", done)
        self._item(type="custom_tool_call_output", call_id=ident, output=f"Success. Updated {name}")
        self._spend(110, 40)

    def commit(self, subject: str) -> None:
        _, printed = self.made(subject, 4)
        self.call("exec_command", {"cmd": f"git commit -am '{subject}'"}, printed)

    @property
    def path(self) -> Path:
        folder = self.demo.home / ".codex" / "sessions" / f"{self.started:%Y/%m/%d}"
        return folder / f"rollout-{self.started:%Y-%m-%dT%H-%M-%S}-{self.session}.jsonl"
