"""Gemini CLI sessions in both dialects: the JSONL edit log and the older single JSON document."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from pathlib import Path
from random import Random

import msgspec

from projects import Project
from terminal import run
from transcripts.transcript import Record, Transcript


class Gemini(Transcript):
    def __init__(self, rng: Random, project: Project, start: datetime, planted: list[str]) -> None:
        super().__init__(rng, project, start, planted)
        self.opened = start
        self.is_log = self.chance(0.5)
        self.messages: list[Record] = []

    def build(self, target: int) -> None:
        if self.is_log:
            self.add(self._head() | {"kind": "main"})
        self._turn(target)
        while self.size < target:
            self._turn(target)

    def save_under(self, home: Path) -> None:
        cwd = self.files.project.cwd
        slug = cwd.rsplit("/", 1)[1] if self.is_log else sha256(cwd.encode()).hexdigest()
        stem = home / f".gemini/tmp/{slug}/chats/session-{self.opened:%Y-%m-%dT%H-%M}-{self.id[:8]}"
        if self.is_log:
            (stem.parent.parent).mkdir(parents=True, exist_ok=True)
            (stem.parent.parent / ".project_root").write_text(cwd)
            return self.save(stem.with_suffix(".jsonl"))
        document = self._head() | {"messages": self.messages}
        return self.save(
            stem.with_suffix(".json"),
            [msgspec.json.format(msgspec.json.encode(document), indent=2)],
        )

    def _head(self) -> Record:
        digest = sha256(self.files.project.cwd.encode()).hexdigest()
        return {
            "sessionId": self.id,
            "projectHash": digest,
            "startTime": self.tick(1),
            "lastUpdated": self.tick(1),
        }

    def _put(self, message: Record) -> None:
        """The log writes every version of a message; the document keeps only the last."""
        if self.is_log:
            self.add(message)
            return
        if self.messages and self.messages[-1]["id"] == message["id"]:
            self.messages.pop()
        self.messages.append(message)
        self.size += len(msgspec.json.encode(message))

    def _turn(self, target: int) -> None:
        prompt = self.prompt()
        content: object = [{"text": prompt}] if self.is_log else prompt
        self._put(
            {"id": self.uuid(), "timestamp": self.tick(60), "type": "user", "content": content}
        )
        for _ in self.steps(4, target):
            self._step()
        self._put(self._reply(self.prose.answer(self.heavy(900, 0.7))))
        if self.is_log:
            self.add({"$set": {"lastUpdated": self.tick(1)}})

    def _reply(self, text: str) -> Record:
        thought = {
            "subject": self.prose.title(),
            "description": self.prose.text(260),
            "timestamp": self.tick(1),
        }
        read, wrote = self.rng.randint(4_000, 90_000), self.rng.randint(20, 900)
        tokens = {
            "input": read,
            "output": wrote,
            "cached": read // 2,
            "thoughts": 90,
            "tool": 0,
            "total": read + wrote,
        }
        message: Record = {
            "id": self.uuid(),
            "timestamp": self.tick(),
            "type": "gemini",
            "content": text,
        }
        return message | {"thoughts": [thought], "tokens": tokens, "model": "gemini-3-pro-preview"}

    def _step(self) -> None:
        message = self._reply(self.prose.text(90))
        if self.is_log:
            self._put(message)
        call = self._shell() if self.chance(0.6) else self._replace()
        self._put(message | {"toolCalls": [call]})

    def _call(self, name: str, args: Record, output: str, display: object) -> Record:
        call = f"{name}-{int(self.clock.timestamp() * 1000)}-{self.token('', 13)}"
        response = {"functionResponse": {"id": call, "name": name, "response": {"output": output}}}
        done: Record = {
            "status": "success",
            "timestamp": self.tick(),
            "resultDisplay": display,
            "displayName": name,
        }
        return {"id": call, "name": name, "args": args, "result": [response], **done}

    def _shell(self) -> Record:
        command, output = run(self.rng, self.files, self.prose)
        args: Record = {"command": command, "description": self.prose.title()}
        return self._call(
            "run_shell_command", args, f"Command: {command}\nOutput: {output}\nExit Code: 0", output
        )

    def _replace(self) -> Record:
        change = self.files.edit()
        path = self.files.absolute(change.path)
        old, new = "\n".join(change.old), "\n".join(change.new)
        args: Record = {
            "file_path": path,
            "old_string": old,
            "new_string": new,
            "instruction": self.prose.text(120),
        }
        display = {
            "fileName": change.path,
            "filePath": path,
            "originalContent": "\n".join(change.before),
        }
        return self._call(
            "replace", args, f"Successfully modified file: {path}", display | {"newContent": new}
        )
