"""Sessions that work on a repository: each edit and command written down the way its agent does."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import Path
from random import Random

import msgspec

Record = dict[str, object]
Lines = Sequence[str]


def _iso(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{at % 1000:03}Z"


def _hunk(at: int, old: Lines, new: Lines) -> tuple[str, list[str]]:
    head = f"@@ -{at + 1},{len(old)} +{at + 1},{len(new)} @@"
    lines: list[str] = []
    for kind, first, last, start, end in SequenceMatcher(None, old, new, False).get_opcodes():
        if kind == "equal":
            lines += [f" {line}" for line in old[first:last]]
        else:
            lines += [f"-{line}" for line in old[first:last]]
            lines += [f"+{line}" for line in new[start:end]]
    return head, lines


class Session:
    """What all agents share: an id, a folder, records in order. Hashes not known yet are written
    as {mark}."""

    def __init__(self, rng: Random, cwd: str) -> None:
        self.rng = rng
        self.cwd = cwd
        self.id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        self.records: list[Record] = []

    def _token(self) -> str:
        return f"{self.rng.getrandbits(96):024x}"

    def prompt(self, at: int, text: str) -> None:
        raise NotImplementedError

    def edit(self, at: int, path: str, start: int, old: Lines, new: Lines) -> None:
        raise NotImplementedError

    def create(self, at: int, path: str, lines: Lines) -> None:
        raise NotImplementedError

    def run(self, at: int, command: str, output: str, seconds: float = 1.0) -> None:
        raise NotImplementedError

    def save(self, home: Path, marks: dict[str, str]) -> None:
        raise NotImplementedError


def _write(path: Path, text: str, marks: dict[str, str]) -> None:
    for mark, sha in marks.items():
        text = text.replace(mark, sha)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _jsonl(records: Iterable[Record]) -> str:
    return "".join(msgspec.json.encode(record).decode() + "\n" for record in records)


class Claude(Session):
    def __init__(self, rng: Random, cwd: str) -> None:
        super().__init__(rng, cwd)
        self.side: list[Record] = []  # of a subagent
        self.agent = self._token()[:8]
        self.forks: list[str] = []

    def _add(self, at: int, kind: str, message: Record, side: bool = False, **more: object) -> None:
        into = self.side if side else self.records
        line: Record = {
            "parentUuid": into[-1]["uuid"] if into else None,
            "isSidechain": side,
            "type": kind,
            "message": message,
            "uuid": str(uuid.UUID(int=self.rng.getrandbits(128), version=4)),
            "timestamp": _iso(at),
            "cwd": self.cwd,
            "sessionId": self.id,
            "version": "2.1.197",
            "gitBranch": "main",
        }
        into.append({**line, **({"agentId": self.agent} if side else {}), **more})

    def _call(  # noqa: PLR0913 - one session, and all that it is made of
        self,
        at: int,
        done: int,
        tool: str,
        given: Record,
        output: str,
        outcome: Record,
        side: bool = False,
    ) -> None:
        ident = f"toolu_{self._token()}"
        use = {"type": "tool_use", "id": ident, "name": tool, "input": given}
        self._add(
            at, "assistant", {"role": "assistant", "model": "claude-test-1", "content": [use]}, side
        )
        answer = {"type": "tool_result", "tool_use_id": ident, "content": output}
        self._add(done, "user", {"role": "user", "content": [answer]}, side, toolUseResult=outcome)

    def prompt(self, at: int, text: str) -> None:
        self._add(at, "user", {"role": "user", "content": text})

    def edit(self, at: int, path: str, start: int, old: Lines, new: Lines) -> None:
        given: Record = {
            "file_path": f"{self.cwd}/{path}",
            "old_string": "\n".join(old),
            "new_string": "\n".join(new),
        }
        _, lines = _hunk(start, old, new)
        patch = {
            "oldStart": start + 1,
            "oldLines": len(old),
            "newStart": start + 1,
            "newLines": len(new),
        }
        outcome: Record = {
            "filePath": given["file_path"],
            "structuredPatch": [{**patch, "lines": lines}],
        }
        if self.rng.random() < 0.08:
            outcome = {}  # older versions and copies keep no patch
        self._call(at - 900, at, "Edit", given, "updated", outcome, side=self.rng.random() < 0.1)

    def create(self, at: int, path: str, lines: Lines) -> None:
        text = "".join(f"{line}\n" for line in lines)
        if self.rng.random() < 0.15:
            self.run(at, f"cat > {path} <<'EOF'\n{text}EOF", "")
        else:
            outcome: Record = {"type": "create", "structuredPatch": []}
            self._call(
                at - 900,
                at,
                "Write",
                {"file_path": f"{self.cwd}/{path}", "content": text},
                "ok",
                outcome,
            )

    def run(self, at: int, command: str, output: str, seconds: float = 1.0) -> None:
        given: Record = {"command": command, "description": "Run it"}
        self._call(at - round(seconds * 1000), at, "Bash", given, output, {"stdout": output})

    def save(self, home: Path, marks: dict[str, str]) -> None:
        folder = home / ".claude/projects/-code-shop"
        _write(folder / f"{self.id}.jsonl", _jsonl(self.records), marks)
        for fork in self.forks:
            copies = [{**record, "sessionId": fork} for record in self.records]
            last = datetime.fromisoformat(str(copies[-1]["timestamp"])).timestamp() * 1000
            more = {
                **copies[-1],
                "uuid": fork,
                "type": "user",
                "message": {"role": "user", "content": "And now?"},
            }
            more = {key: value for key, value in more.items() if key != "toolUseResult"}
            _write(
                folder / f"{fork}.jsonl",
                _jsonl([*copies, {**more, "timestamp": _iso(int(last) + 60_000)}]),
                marks,
            )
        if self.side:
            _write(
                folder / self.id / "subagents" / f"agent-{self.agent}.jsonl",
                _jsonl(self.side),
                marks,
            )


class Codex(Session):
    def _line(self, at: int, kind: str, payload: Record) -> None:
        if not self.records:
            meta = {
                "id": self.id,
                "timestamp": _iso(at),
                "cwd": self.cwd,
                "source": "cli",
                "cli_version": "0.144.0",
            }
            self.records.append({"timestamp": _iso(at), "type": "session_meta", "payload": meta})
        self.records.append({"timestamp": _iso(at), "type": kind, "payload": payload})

    def prompt(self, at: int, text: str) -> None:
        content = [{"type": "input_text", "text": text}]
        self._line(at, "response_item", {"type": "message", "role": "user", "content": content})
        self._line(at, "event_msg", {"type": "user_message", "message": text, "images": []})

    def edit(self, at: int, path: str, start: int, old: Lines, new: Lines) -> None:
        _, lines = _hunk(start, old, new)
        self._patch(at, "\n".join([f"*** Update File: {path}", "@@", *lines]))

    def create(self, at: int, path: str, lines: Lines) -> None:
        self._patch(at, "\n".join([f"*** Add File: {path}", *(f"+{line}" for line in lines)]))

    def _patch(self, at: int, text: str) -> None:
        call = f"call_{self._token()}"
        patch = f"*** Begin Patch\n{text}\n*** End Patch\n"
        self._line(
            at - 500,
            "response_item",
            {
                "type": "custom_tool_call",
                "status": "completed",
                "call_id": call,
                "name": "apply_patch",
                "input": patch,
            },
        )
        output = msgspec.json.encode({"output": "Success.", "metadata": {"exit_code": 0}}).decode()
        self._line(
            at,
            "response_item",
            {"type": "custom_tool_call_output", "call_id": call, "output": output},
        )

    def run(self, at: int, command: str, output: str, seconds: float = 1.0) -> None:
        call = f"call_{self._token()}"
        arguments = msgspec.json.encode({"cmd": command, "workdir": self.cwd}).decode()
        asked: Record = {
            "type": "function_call",
            "name": "exec_command",
            "arguments": arguments,
            "call_id": call,
        }
        self._line(at - round(seconds * 1000), "response_item", asked)
        told = (
            f"Chunk ID: 0\nWall time: {seconds} seconds\nProcess exited with code "
            f"0\nOutput:\n{output}"
        )
        self._line(
            at, "response_item", {"type": "function_call_output", "call_id": call, "output": told}
        )

    def save(self, home: Path, marks: dict[str, str]) -> None:
        if self.records:
            began = datetime.fromisoformat(str(self.records[0]["timestamp"]))
            name = f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{self.id}.jsonl"
            _write(home / f".codex/sessions/{began:%Y/%m/%d}" / name, _jsonl(self.records), marks)


class Gemini(Session):
    def _message(self, at: int, kind: str, **more: object) -> None:
        self.records.append({"id": self._token(), "timestamp": _iso(at), "type": kind, **more})

    def _tool(self, at: int, name: str, given: Record, output: str, shown: object) -> None:
        ident = f"{name}-{self._token()}"
        response = {"functionResponse": {"id": ident, "name": name, "response": {"output": output}}}
        call: Record = {
            "id": ident,
            "name": name,
            "args": given,
            "result": [response],
            "status": "success",
        }
        call |= {"timestamp": _iso(at), "resultDisplay": shown}
        self._message(at - 500, "gemini", content="", toolCalls=[call])

    def prompt(self, at: int, text: str) -> None:
        self._message(at, "user", content=[{"text": text}])

    def edit(self, at: int, path: str, start: int, old: Lines, new: Lines) -> None:
        head, lines = _hunk(start, old, new)
        diff = "\n".join(
            [
                f"Index: {path}",
                "=" * 67,
                f"--- {path}\tCurrent",
                f"+++ {path}\tProposed",
                head,
                *lines,
                "",
            ]
        )
        where = f"{self.cwd}/{path}"
        given: Record = {
            "file_path": where,
            "old_string": "\n".join(old),
            "new_string": "\n".join(new),
        }
        self._tool(at, "replace", given, "ok", {"fileDiff": diff, "filePath": where})

    def create(self, at: int, path: str, lines: Lines) -> None:
        text = "".join(f"{line}\n" for line in lines)
        self._tool(
            at, "write_file", {"file_path": f"{self.cwd}/{path}", "content": text}, "ok", None
        )

    def run(self, at: int, command: str, output: str, seconds: float = 1.0) -> None:
        told = f"Command: {command}\nOutput: {output}\nExit Code: 0"
        ident = f"run_shell_command-{self._token()}"
        response = {
            "functionResponse": {
                "id": ident,
                "name": "run_shell_command",
                "response": {"output": told},
            }
        }
        call: Record = {
            "id": ident,
            "name": "run_shell_command",
            "args": {"command": command},
            "result": [response],
        }
        call |= {"status": "success", "timestamp": _iso(at)}
        self._message(at - round(seconds * 1000), "gemini", content="", toolCalls=[call])

    def save(self, home: Path, marks: dict[str, str]) -> None:
        if self.records:
            first = {
                "sessionId": self.id,
                "projectHash": "0" * 64,
                "startTime": self.records[0]["timestamp"],
            }
            document = {
                **first,
                "lastUpdated": self.records[-1]["timestamp"],
                "directories": [self.cwd],
            }
            text = msgspec.json.encode({**document, "messages": self.records}).decode()
            folder = home / ".gemini/tmp" / Path(self.cwd).name
            _write(folder / ".project_root", self.cwd, {})
            _write(folder / f"chats/session-{self.id}.json", text, marks)
