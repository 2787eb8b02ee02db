"""Codex sessions: wrapped rollouts in the legacy dialect, where events repeat what the response
items say."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from random import Random

import msgspec

from projects import Project, unified_diff
from prose import Prose
from terminal import run
from transcripts.transcript import Record, Transcript

_MODELS = ["gpt-5.4", "gpt-5.3-codex", "gpt-5.2"]
_WINDOW = 258_400


class Codex(Transcript):
    def __init__(self, rng: Random, project: Project, start: datetime, planted: list[str]) -> None:
        super().__init__(rng, project, start, planted)
        self.opened = start
        self.id = self._uuid7()
        self.turn = ""
        self.total = dict.fromkeys(["input_tokens", "cached_input_tokens", "output_tokens"], 0)
        # base instructions are the same text in every session of a version
        fixed = Prose(Random("codex instructions"), ["apply_patch", "exec_command"])
        self.instructions, self.guidance = fixed.text(14_000), fixed.text(8_000)

    def build(self, target: int) -> None:
        self._meta()
        self._turn(target)
        while self.size < target:
            self._turn(target)

    def save_under(self, home: Path) -> None:
        name = f"rollout-{self.opened:%Y-%m-%dT%H-%M-%S}-{self.id}.jsonl"
        self.save(home / f".codex/sessions/{self.opened:%Y/%m/%d}" / name)

    def _uuid7(self) -> str:
        stamp, tail = f"{int(self.clock.timestamp() * 1000):012x}", self.uuid()
        return f"{stamp[:8]}-{stamp[8:]}-7{tail[15:]}"

    def _line(self, kind: str, payload: Record, seconds: float = 1.0) -> None:
        self.add({"timestamp": self.tick(seconds), "type": kind, "payload": payload})

    def _event(self, kind: str, **payload: object) -> None:
        self._line("event_msg", {"type": kind, **payload})

    def _item(self, kind: str, **payload: object) -> None:
        self._line("response_item", {"type": kind, **payload})

    def _message(self, role: str, text: str) -> None:
        part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
        self._item("message", role=role, content=[part])

    def _meta(self) -> None:
        meta: Record = {
            "id": self.id,
            "timestamp": self.tick(),
            "cwd": self.files.project.cwd,
            "source": "cli",
        }
        meta |= {"originator": "codex-tui", "cli_version": "0.144.0", "model_provider": "openai"}
        git = {"commit_hash": self.token("", 40), "branch": "main", "repository_url": None}
        self._line(
            "session_meta", meta | {"base_instructions": {"text": self.instructions}, "git": git}
        )

    def _turn(self, target: int) -> None:
        self.turn = self._uuid7()
        started = self.clock
        self._event("task_started", turn_id=self.turn, model_context_window=_WINDOW)
        if self.total["input_tokens"] == 0:
            self._message("developer", self.guidance)
            self._message(
                "user",
                "<environment_context>\n  "
                f"<cwd>{self.files.project.cwd}</cwd>\n</environment_context>",
            )
        self._context()
        prompt = self.prompt()
        self._message("user", prompt)
        self._event("user_message", message=prompt, images=[], local_images=[], text_elements=[])
        for _ in self.steps(10, target):
            self._step()
        answer = self.prose.answer(self.heavy(700, 0.7))
        self._speak(answer)
        took = int((self.clock - started).total_seconds() * 1000)
        self._event("task_complete", turn_id=self.turn, last_agent_message=answer, duration_ms=took)

    def _context(self) -> None:
        policy = {"type": "workspace-write", "network_access": False}
        settings: Record = {
            "turn_id": self.turn,
            "cwd": self.files.project.cwd,
            "approval_policy": "on-request",
        }
        settings |= {
            "sandbox_policy": policy,
            "model": self.rng.choice(_MODELS),
            "effort": "high",
            "summary": "auto",
        }
        self._line("turn_context", settings | {"user_instructions": self.guidance})

    def _speak(self, text: str) -> None:
        self._event("agent_message", message=text, phase="commentary")
        self._message("assistant", text)

    def _step(self) -> None:
        summary = (
            [{"type": "summary_text", "text": self.prose.text(160)}] if self.chance(0.15) else []
        )
        self._item("reasoning", summary=summary, content=None)
        if self.chance(0.35):
            self._speak(self.prose.text(self.heavy(160, 0.7)))
        if self.chance(0.2):
            self._patch()
        for _ in range(self.rng.choice([1, 1, 1, 2, 3])):
            self._command()
        self._tokens()

    def _command(self) -> None:
        call = self.token("call_", 24)
        command, output = (
            self._read() if self.chance(0.5) else run(self.rng, self.files, self.prose)
        )
        arguments = msgspec.json.encode(
            {"cmd": command, "workdir": self.files.project.cwd}
        ).decode()
        self._item("function_call", name="exec_command", arguments=arguments, call_id=call)
        cut = output[:10_000]
        ended: Record = {
            "call_id": call,
            "turn_id": self.turn,
            "command": ["bash", "-lc", command],
            "stdout": "",
        }
        ended |= {
            "cwd": self.files.project.cwd,
            "stderr": "",
            "aggregated_output": cut,
            "exit_code": 0,
        }
        if self.chance(0.84):
            self._event(
                "exec_command_end",
                **ended,
                duration={"secs": 0, "nanos": 13_667},
                status="completed",
            )
        head = (
            f"Chunk ID: {self.token('', 6)}\nWall time: 0.05 seconds\nProcess exited with code "
            "0\nOutput:\n"
        )
        self._item("function_call_output", call_id=call, output=head + output[:40_000])

    def _read(self) -> tuple[str, str]:
        path = self.files.path()
        start, lines = self.files.slice(path)
        return f"sed -n '{start},{start + len(lines)}p' {path}", "\n".join(lines)

    def _patch(self) -> None:
        change, call = self.files.edit(), self.token("call_", 24)
        diff = unified_diff(change)
        patch = f"*** Begin Patch\n*** Update File: {change.path}\n{diff}*** End Patch\n"
        self._item(
            "custom_tool_call", status="completed", call_id=call, name="apply_patch", input=patch
        )
        changes = {
            self.files.absolute(change.path): {
                "type": "update",
                "unified_diff": diff,
                "move_path": None,
            }
        }
        done = f"Success. Updated the following files:\nM {change.path}\n"
        self._event(
            "patch_apply_end",
            call_id=call,
            turn_id=self.turn,
            stdout=done,
            success=True,
            changes=changes,
        )
        self._item("custom_tool_call_output", call_id=call, output=done)

    def _tokens(self) -> None:
        last = {
            "input_tokens": self.rng.randint(9_000, 90_000),
            "output_tokens": self.rng.randint(40, 1500),
        }
        last["cached_input_tokens"] = int(last["input_tokens"] * 0.8)
        self.total = {key: self.total[key] + last[key] for key in self.total}
        info: Record = {"total_token_usage": _usage(self.total), "last_token_usage": _usage(last)}
        self._event("token_count", info=info | {"model_context_window": _WINDOW}, rate_limits=None)


def _usage(counts: dict[str, int]) -> dict[str, int]:
    reasoning = counts["output_tokens"] // 3
    total = counts["input_tokens"] + counts["output_tokens"]
    return {**counts, "reasoning_output_tokens": reasoning, "total_tokens": total}
