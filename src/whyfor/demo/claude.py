"""Write a transcript in the format of Claude Code."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from whyfor.demo.logs import Log, hunks
from whyfor.demo.places import write_file


class ClaudeDemo(Log):
    agent = "claude"
    parent: str | None = None

    def _line(self, kind: str, message: dict[str, Any], **extra: Any) -> None:
        uid = self.ident()
        cwd = str(self.demo.repository)
        line = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "type": kind,
            "message": message,
            "uuid": uid,
        }
        line |= {
            "timestamp": self.tick(),
            "cwd": cwd,
            "sessionId": self.session,
            "version": "2.1.197",
        }
        self.lines.append({**line, "gitBranch": self.branch, **extra})
        self.parent = uid

    def _assistant(self, block: dict[str, Any], output: int) -> None:
        usage = {
            "input_tokens": 9,
            "cache_creation_input_tokens": 850,
            "cache_read_input_tokens": 14_200,
        }
        message = {
            "id": f"msg_{self.ident()[:8]}",
            "role": "assistant",
            "model": "claude-demo-1",
            "content": [block],
        }
        self._line(
            "assistant",
            {**message, "usage": {**usage, "output_tokens": output}},
            requestId=self.ident()[:8],
        )

    def title(self, text: str) -> None:
        self.lines.append({"type": "ai-title", "aiTitle": text, "sessionId": self.session})

    def prompt(self, text: str) -> None:
        self._line(
            "user",
            {"role": "user", "content": text},
            promptSource="typed",
            origin={"kind": "human"},
        )

    def think(self, text: str) -> None:
        self._assistant({"type": "thinking", "thinking": text, "signature": "demo"}, 120)

    def say(self, text: str) -> None:
        self._assistant({"type": "text", "text": text}, 210)

    def interrupt(self) -> None:
        self._line(
            "user",
            {
                "role": "user",
                "content": [{"type": "text", "text": "[Request interrupted by user]"}],
            },
        )

    def begin(self, name: str, given: dict[str, Any]) -> str:
        ident = f"toolu_{self.ident()[:12]}"
        self._assistant({"type": "tool_use", "id": ident, "name": name, "input": given}, 90)
        return ident

    def run(self, command: str) -> str:
        return self.begin("Bash", {"command": command})

    def end(self, call: str, result: str, *, failed: bool = False, **outcome: Any) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": result, "is_error": failed}
        self._line(
            "user",
            {"role": "user", "content": [block]},
            toolUseResult=outcome or {"stdout": result},
        )

    def call(
        self, name: str, given: dict[str, Any], result: str, *, failed: bool = False, **outcome: Any
    ) -> str:
        ident = self.begin(name, given)
        self.end(ident, result, failed=failed, **outcome)
        return ident

    def put(self, name: str, content: str) -> None:
        path = self.demo.repository / name
        old = path.read_text(encoding="utf-8") if path.exists() else None
        write_file(path, content)
        outcome = {
            "type": "create" if old is None else "update",
            "content": content,
            **_outcome(path, old, content),
        }
        self.call(
            "Write",
            {"file_path": str(path), "content": content},
            "The file has been updated.",
            **outcome,
        )

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.demo.repository / name
        before = path.read_text(encoding="utf-8")
        after = before.replace(old, new)
        write_file(path, after)
        given = {"file_path": str(path), "old_string": old, "new_string": new}
        outcome = {
            "oldString": old,
            "newString": new,
            "replaceAll": False,
            **_outcome(path, before, after),
        }
        self.call("Edit", given, "The file has been updated.", **outcome)

    def commit(self, subject: str) -> None:
        sha, printed = self.made(subject, 10)
        operation = {"commit": {"sha": sha, "kind": "committed"}}
        ran: dict[str, Any] = {
            "stdout": printed,
            "stderr": "",
            "interrupted": False,
            "gitOperation": operation,
        }
        self.call("Bash", {"command": f"git commit -am '{subject}'"}, printed, **ran)

    def ask(
        self, question: str, header: str, labels: tuple[str, ...], *, answered: bool = True
    ) -> None:
        """Let the agent ask a question; the first label is chosen."""
        options = [{"label": label, "description": ""} for label in labels]
        questions = [
            {"question": question, "header": header, "options": options, "multiSelect": False}
        ]
        call = self.begin("AskUserQuestion", {"questions": questions})
        if answered:
            said = f'User has answered your questions: "{question}"="{labels[0]}".'
            self.end(call, said, questions=questions, answers={question: labels[0]})

    def delegate(self, description: str, task: str, answer: str) -> None:
        """Run a subagent: its own file beside the session's, linked to the call by its id."""
        agent_id = self.ident()[:8]
        given = {"description": description, "prompt": task, "subagent_type": "Explore"}
        started = self.at
        call = self.call("Task", given, answer, agentId=agent_id, status="completed")
        child = ClaudeDemo(self.demo, self.session, started)
        child.number = itertools.count(1000)
        child.prompt(task)
        child.call("Grep", {"pattern": "urllib"}, "tidewatch/http.py")
        child.say(answer)
        child.lines = [{**line, "isSidechain": True, "agentId": agent_id} for line in child.lines]
        folder = self.path.with_suffix("") / "subagents"
        child.save_as(folder / f"agent-{agent_id}.jsonl")
        meta = {"agentType": "Explore", "description": description, "toolUseId": call}
        write_file(folder / f"agent-{agent_id}.meta.json", json.dumps(meta))

    @property
    def path(self) -> Path:
        encoded = "".join(
            c if c.isascii() and c.isalnum() else "-" for c in str(self.demo.repository)
        )
        return self.demo.home / ".claude" / "projects" / encoded[:200] / f"{self.session}.jsonl"


def _outcome(path: Path, old: str | None, new: str) -> dict[str, Any]:
    """Return what Claude Code records for an edit; for a new file there is no patch."""
    patch = [] if old is None else hunks(old, new)
    return {
        "filePath": str(path),
        "originalFile": old,
        "structuredPatch": patch,
        "userModified": False,
    }
