"""Open sessions of Claude Code's, being written as it writes them."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RATE = 2.0  # lines a second of one session
_IDLE_SECONDS = 3600
_CWD = "/code/shop"


class Session:
    """An open session: its transcript, and the file its process keeps."""

    def __init__(self, home: Path, pid: int) -> None:
        self.id = str(uuid.uuid4())
        self.path = home / ".claude" / "projects" / f"-code-{pid % 10}" / f"{self.id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.call: str | None = None  # the last one, which waits for its result
        self._parent: str | None = None
        before = time.time() - _IDLE_SECONDS
        self._write([self._line("user", f"Write of animal {pid}", before)])
        for step in range(20):
            self.say(f"Step {step} is done. " * 20, before)
        os.utime(self.path, (before, before))
        registry = home / ".claude" / "sessions" / f"{pid}.json"
        registry.parent.mkdir(exist_ok=True)
        stat = Path(f"/proc/{pid}/stat")
        started = stat.read_text().rpartition(")")[2].split()[19] if stat.exists() else ""
        told = {"pid": pid, "procStart": started, "sessionId": self.id, "cwd": _CWD}
        registry.write_text(
            json.dumps({**told, "status": "idle", "statusUpdatedAt": round(before * 1000)})
        )

    def say(self, text: str, at: float) -> None:
        self._write([self._line("assistant", [{"type": "text", "text": text}], at)])

    def step(self, text: str, at: float) -> str | None:
        """The last call is answered, something is said and the next command begins; returns the
        last call's id."""
        lines, answered = [], self.call
        if answered:
            lines.append(
                self._line(
                    "user",
                    [{"type": "tool_result", "tool_use_id": answered, "content": "done"}],
                    at,
                )
            )
        self.call = f"toolu_{uuid.uuid4().hex[:24]}"
        call = {
            "type": "tool_use",
            "id": self.call,
            "name": "Bash",
            "input": {"command": f"echo {text}"},
        }
        lines.append(self._line("assistant", [{"type": "text", "text": text}], at))
        lines.append(self._line("assistant", [call], at))
        self._write(lines)
        return answered

    def _line(self, kind: str, content: str | list[dict[str, Any]], at: float) -> dict[str, Any]:
        ident, parent = str(uuid.uuid4()), self._parent
        self._parent = ident
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            message["id"] = str(uuid.uuid4())
        return {
            "parentUuid": parent,
            "type": kind,
            "message": message,
            "uuid": ident,
            "timestamp": f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}Z",
            "cwd": _CWD,
            "sessionId": self.id,
            "version": "2.1.197",
        }

    def _write(self, lines: list[dict[str, Any]]) -> None:
        with self.path.open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))


@contextmanager
def opened(home: Path, count: int) -> Iterator[list[Session]]:
    """So many, each with a process that is alive."""
    agents = [subprocess.Popen(["sleep", "600"]) for _ in range(count)]
    try:
        yield [Session(home, agent.pid) for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()


def stream(
    sessions: Sequence[Session], seconds: float, mark: str, also: Callable[[], float] | None = None
) -> None:
    """Evenly, one after another; `also` is done beside it and says in how many seconds again."""
    begun, number = time.monotonic(), 0
    end = next_also = begun + seconds
    if also:
        next_also = begun
    while (now := time.monotonic()) < end:
        due = begun + number / RATE / len(sessions) if sessions else end
        if (first := min(due, next_also, end)) > now:
            time.sleep(first - now)
        elif also and next_also <= due:
            next_also = now + also()
        else:
            sessions[number % len(sessions)].say(f"{mark}{time.time_ns()}", time.time())
            number += 1
