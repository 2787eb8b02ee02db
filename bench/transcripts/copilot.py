"""Copilot CLI sessions: one events.jsonl a session, with hooks around every tool."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from random import Random

from projects import Project
from prose import Prose
from terminal import run
from transcripts.transcript import Record, Transcript


class Copilot(Transcript):
    def __init__(self, rng: Random, project: Project, start: datetime, planted: list[str]) -> None:
        super().__init__(rng, project, start, planted)
        self.last: str | None = None
        self.written = 0
        self.model = rng.choice(["claude-sonnet-4.5", "gpt-5.3-codex"])
        # the system message is the same text in every session of a version
        self.system = Prose(Random("copilot system"), ["bash", "view", "edit"]).text(42_000)

    def build(self, target: int) -> None:
        self._start()
        self._turn(target)
        while self.size < target:
            self._turn(target)
        usage = {
            "inputTokens": 90_000,
            "outputTokens": self.written,
            "cacheReadTokens": 60_000,
            "cacheWriteTokens": 0,
        }
        metrics = {self.model: {"requests": {"count": 9, "cost": 1}, "usage": usage}}
        self._event(
            "session.shutdown",
            {"shutdownType": "routine", "modelMetrics": metrics, "currentModel": self.model},
        )

    def save_under(self, home: Path) -> None:
        self.save(home / ".copilot/session-state" / self.id / "events.jsonl")

    def _event(self, kind: str, data: Record) -> None:
        event = self.uuid()
        self.add(
            {
                "type": kind,
                "data": data,
                "id": event,
                "timestamp": self.tick(1),
                "parentId": self.last,
            }
        )
        self.last = event

    def _start(self) -> None:
        cwd = self.files.project.cwd
        context = {"cwd": cwd, "gitRoot": cwd, "branch": "main", "headCommit": self.token("", 40)}
        data: Record = {
            "sessionId": self.id,
            "version": 1,
            "producer": "copilot-agent",
            "copilotVersion": "1.0.78",
        }
        self._event(
            "session.start",
            data | {"startTime": self.tick(1), "selectedModel": self.model, "context": context},
        )
        self._event("system.message", {"role": "system", "content": self.system})

    def _hook(self, kind: str, given: Record) -> None:
        run_id = self.uuid()
        self._event("hook.start", {"hookInvocationId": run_id, "hookType": kind, "input": given})
        self._event("hook.end", {"hookInvocationId": run_id, "hookType": kind, "success": True})

    def _turn(self, target: int) -> None:
        text, interaction = self.prompt(), self.uuid()
        self._hook(
            "userPromptSubmitted",
            {"sessionId": self.id, "cwd": self.files.project.cwd, "prompt": text},
        )
        data: Record = {
            "content": text,
            "transformedContent": f"<current_datetime/>\n\n{text}",
            "attachments": [],
        }
        self._event("user.message", data | {"interactionId": interaction})
        for number in self.steps(6, target):
            self._step(str(number), interaction)
        self._say("end", interaction, self.prose.answer(self.heavy(900, 0.7)), [])

    def _say(self, turn: str, interaction: str, text: str, requests: list[Record]) -> None:
        tokens = self.rng.randint(30, 900)
        self.written += tokens
        self._event("assistant.turn_start", {"turnId": turn, "interactionId": interaction})
        data: Record = {
            "messageId": self.uuid(),
            "model": self.model,
            "content": text,
            "toolRequests": requests,
        }
        data |= {"interactionId": interaction, "turnId": turn, "outputTokens": tokens}
        self._event("assistant.message", data | {"reasoningText": self.prose.text(300)})

    def _step(self, turn: str, interaction: str) -> None:
        call = self.token("toolu_", 24)
        name, arguments, output = self._tool()
        request: Record = {
            "toolCallId": call,
            "name": name,
            "arguments": arguments,
            "type": "function",
        }
        self._say(turn, interaction, self.prose.text(60), [request])
        self._hook("preToolUse", {"toolName": name, "toolArgs": arguments})
        self._event(
            "tool.execution_start", {"toolCallId": call, "toolName": name, "arguments": arguments}
        )
        self._hook(
            "postToolUse",
            {"toolName": name, "toolArgs": arguments, "toolResult": {"textResultForLlm": output}},
        )
        result = {"content": output, "detailedContent": output}
        self._event(
            "tool.execution_complete", {"toolCallId": call, "success": True, "result": result}
        )
        self._event("assistant.turn_end", {"turnId": turn})

    def _tool(self) -> tuple[str, Record, str]:
        if self.chance(0.35):
            path = self.files.path()
            return "view", {"path": self.files.absolute(path)}, "\n".join(self.files.slice(path)[1])
        command, output = run(self.rng, self.files, self.prose)
        return "bash", {"command": command, "description": self.prose.title()}, output
