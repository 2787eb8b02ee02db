"""Claude Code 2.1.x sessions: a JSONL tree, one line for each content block, subagents in their
own files."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from random import Random

from projects import Project
from transcripts.claude_tools import use_tool
from transcripts.transcript import Record, Transcript

_MODELS = ["claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"]
# these still wrote progress lines into the tree
_OLD_VERSIONS = ["2.1.6", "2.1.29", "2.1.45", "2.1.47"]
_NEW_VERSIONS = ["2.1.108", "2.1.150", "2.1.169", "2.1.197"]
_BRANCHES = ["main", "main", "feature/retry", "fix/index", "refactor/store"]
_COMPACT_EVERY = 1_500_000


class Claude(Transcript):
    def __init__(self, rng: Random, project: Project, start: datetime, planted: list[str]) -> None:
        super().__init__(rng, project, start, planted)
        self.has_progress = self.chance(0.6)
        self.parent: str | None = None
        self.agent: str | None = None
        self.prompt_id = self.uuid()
        self.subagents: dict[str, list[bytes]] = {}
        self.tracked: Record = {}
        self.envelope: Record = {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": project.cwd,
            "sessionId": self.id,
            "version": rng.choice(_OLD_VERSIONS if self.has_progress else _NEW_VERSIONS),
            "gitBranch": rng.choice(_BRANCHES),
        }
        self.model = rng.choice(_MODELS)
        self.title = self.prose.title()
        self.cached = 14_000
        self._compacted_at = 0

    def build(self, target: int) -> None:
        self._open()
        self._turn(target)
        while self.size < target:
            self._turn(target)
            if self.size - self._compacted_at > _COMPACT_EVERY:
                self._compact()
            if len(self.subagents) < 3 and self.chance(0.04):
                self._delegate(min(self.heavy(40_000, 0.9), target // 2))
            self._repeat_metadata()

    def _repeat_metadata(self) -> None:
        """Claude writes these again and again so that they stay near the end; the last one wins."""
        self.add(
            {
                "type": "last-prompt",
                "lastPrompt": self.title,
                "leafUuid": self.parent,
                "sessionId": self.id,
            }
        )
        if self.chance(0.6):
            self.add({"type": "ai-title", "aiTitle": self.title, "sessionId": self.id})

    def save_under(self, home: Path) -> None:
        folder = home / ".claude/projects" / re.sub("[^a-zA-Z0-9]", "-", self.files.project.cwd)
        self.save(folder / f"{self.id}.jsonl")
        for agent, lines in self.subagents.items():
            self.save(folder / self.id / "subagents" / f"agent-{agent}.jsonl", lines)

    def _node(self, kind: str, body: Record, parent: str | None = None) -> str:
        """Adds a line of the tree under the last one (or under `parent`) and returns its uuid."""
        uuid = self.uuid()
        line: Record = {"parentUuid": parent or self.parent, "isSidechain": self.agent is not None}
        if self.agent:
            line["agentId"] = self.agent
        self.add(
            line | {"type": kind} | body | {"uuid": uuid, "timestamp": self.tick()} | self.envelope
        )
        self.parent = uuid
        return uuid

    def _open(self) -> None:
        self.add({"type": "permission-mode", "permissionMode": "default", "sessionId": self.id})
        if not self.has_progress:
            listing = "\n".join(
                f"- {self.prose.title()}: {self.prose.text(200)}" for _ in range(28)
            )
            self._attach(
                {"type": "skill_listing", "content": listing, "skillCount": 28, "isInitial": True}
            )
            self._attach(
                {
                    "type": "deferred_tools_delta",
                    "addedNames": self.prose.words(40),
                    "removedNames": [],
                }
            )

    def _attach(self, attachment: Record) -> None:
        self._node("attachment", {"attachment": attachment})

    def _turn(self, target: int) -> None:
        self._snapshot()
        self._user_prompt(self.prompt())
        for _ in self.steps(6, target):
            self._response()
        self._say(self.heavy(700, 0.8))
        self._finish()
        self.prompt_id = self.uuid()

    def _user_prompt(self, text: str) -> None:
        content: object = text
        if self.chance(0.025):
            source = {
                "type": "base64",
                "media_type": "image/png",
                "data": self.opaque(self.heavy(110_000, 1.0)),
            }
            content = [{"type": "text", "text": text}, {"type": "image", "source": source}]
        body: Record = {"promptId": self.prompt_id, "message": {"role": "user", "content": content}}
        self._node(
            "user",
            body
            | {"permissionMode": "default", "origin": {"kind": "human"}, "promptSource": "typed"},
        )

    def _snapshot(self) -> None:
        message = self.uuid()
        snapshot = {
            "messageId": message,
            "trackedFileBackups": dict(self.tracked),
            "timestamp": self.tick(1),
        }
        self.add(
            {
                "type": "file-history-snapshot",
                "messageId": message,
                "snapshot": snapshot,
                "isSnapshotUpdate": False,
            }
        )

    def _finish(self) -> None:
        if self.chance(0.5):
            hooks = [{"command": "make lint-changed", "durationMs": self.rng.randint(9, 900)}]
            self._system(
                "stop_hook_summary",
                {"hookCount": 1, "hookInfos": hooks, "hookErrors": [], "hasOutput": False},
            )
        self._system(
            "turn_duration",
            {"durationMs": self.rng.randint(900, 600_000), "messageCount": 9, "isMeta": False},
        )
        if self.chance(0.1):
            self._attach(
                {"type": "queued_command", "prompt": self.prose.text(90), "commandMode": "prompt"}
            )

    def _system(self, subtype: str, body: Record) -> None:
        self._node("system", {"subtype": subtype, **body})

    def _compact(self) -> None:
        self._compacted_at = self.size
        last, self.parent = self.parent, None
        metadata = {
            "trigger": "auto",
            "preTokens": 160_000,
            "postTokens": 21_000,
            "durationMs": 40_000,
        }
        body: Record = {
            "content": "Conversation compacted",
            "level": "info",
            "logicalParentUuid": last,
        }
        self._system("compact_boundary", body | {"isMeta": False, "compactMetadata": metadata})
        text = "This session is being continued from a previous conversation. " + self.prose.answer(
            6000
        )
        message = {"role": "user", "content": text}
        self._node(
            "user",
            {"isVisibleInTranscriptOnly": True, "isCompactSummary": True, "message": message},
        )

    def _response(self) -> None:
        """One API response: thinking, text and tool calls, each line repeating the usage of the
        whole."""
        message, request = self._message()
        if self.chance(0.28):
            thought: Record = {
                "type": "thinking",
                "thinking": self.prose.text(self.heavy(480, 0.9)),
            }
            self._block(
                message, request, thought | {"signature": self.opaque(self.heavy(600, 0.6))}
            )
        if self.chance(0.38):
            self._block(
                message, request, {"type": "text", "text": self.prose.text(self.heavy(110, 0.8))}
            )
        for _ in range(2 if self.chance(0.12) else 1):
            self._call(message, request)

    def _say(self, characters: int) -> None:
        message, request = self._message()
        message["stop_reason"] = "end_turn"
        self._block(message, request, {"type": "text", "text": self.prose.answer(characters)})

    def _message(self) -> tuple[Record, str]:
        fresh, written = self.rng.randint(3, 12), self.rng.randint(90, 6000)
        self.cached = min(self.cached + written, 180_000)
        usage = {
            "input_tokens": fresh,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": self.cached,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": self.rng.randint(20, 2500),
            "service_tier": "standard",
            "inference_geo": "not_available",
        }
        message: Record = {"model": self.model, "id": self.token("msg_01", 22), "type": "message"}
        message |= {
            "role": "assistant",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": usage,
        }
        return message, self.token("req_011", 21)

    def _block(self, message: Record, request: str, block: Record) -> str:
        return self._node(
            "assistant", {"message": message | {"content": [block]}, "requestId": request}
        )

    def _call(self, message: Record, request: str) -> None:
        name, given, content, result = use_tool(self)
        if name in {"Edit", "Write"}:
            self._track(str(given["file_path"]))
        call = self.token("toolu_01", 22)
        line = self._block(
            message, request, {"type": "tool_use", "id": call, "name": name, "input": given}
        )
        if self.has_progress:
            self._progress(call, content)
        failed = self.chance(0.03)
        self._result(
            line, call, content, "Error: " + self.prose.text(120) if failed else result, failed
        )

    def _track(self, path: str) -> None:
        backup = {
            "backupFileName": self.token("", 16) + "@v1",
            "version": 1,
            "backupTime": self.tick(0.1),
        }
        if len(self.tracked) < 12:
            self.tracked[path] = backup

    def _progress(self, call: str, output: str) -> None:
        for _ in range(self.rng.randint(1, 3)):
            seen = output[: self.heavy(700, 1.3)]
            data: Record = {
                "type": "bash_progress",
                "output": seen,
                "fullOutput": seen,
                "totalLines": 9,
            }
            if self.chance(0.5):
                data = {
                    "type": "hook_progress",
                    "hookEvent": "PostToolUse",
                    "command": "make lint-changed",
                }
            body: Record = {"data": data, "toolUseID": self.token("p", 20), "parentToolUseID": call}
            self._node("progress", body)

    def _result(self, line: str, call: str, content: str, result: object, failed: bool) -> None:
        block: Record = {"tool_use_id": call, "type": "tool_result", "content": content}
        if failed:
            block |= {"content": result, "is_error": True}
        body: Record = {"promptId": self.prompt_id, "message": {"role": "user", "content": [block]}}
        parent = self.parent if self.has_progress else line
        self._node(
            "user", body | {"toolUseResult": result, "sourceToolAssistantUUID": line}, parent
        )

    def _delegate(self, target: int) -> None:
        """A subagent: its own file with the parent's session id, and its report as a tool result
        here."""
        agent = self.token("a", 16)
        message, request = self._message()
        task, call = self.prose.text(900), self.token("toolu_01", 22)
        given = {"description": self.prose.title(), "prompt": task, "subagent_type": "Explore"}
        line = self._block(
            message, request, {"type": "tool_use", "id": call, "name": "Agent", "input": given}
        )
        report = self._side_session(agent, task, target)
        result = {
            "status": "completed",
            "prompt": task,
            "agentId": agent,
            "content": [{"type": "text", "text": report}],
        }
        self._result(
            line,
            call,
            report,
            result | {"totalDurationMs": 90_000, "totalToolUseCount": 9},
            failed=False,
        )

    def _side_session(self, agent: str, task: str, target: int) -> str:
        main, parent, goal = self.lines, self.parent, self.size + target
        self.lines, self.parent, self.agent = [], None, agent
        self._node("user", {"message": {"role": "user", "content": task}})
        while self.size < goal:
            self._response()
        report = self.prose.answer(3000)
        message, request = self._message()
        self._block(
            message | {"stop_reason": "end_turn"}, request, {"type": "text", "text": report}
        )
        self.subagents[agent] = self.lines
        self.lines, self.parent, self.agent = main, parent, None
        return report
