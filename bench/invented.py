"""Sessions of our own, small and invented, with questions about them: what can be measured without
the corpus. Also conversations from elsewhere, written as sessions."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from retrieval import Question

_BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
Turn = tuple[str, str]  # what was asked, what was answered


class Invented(msgspec.Struct):
    project: str
    turns: list[Turn]
    commit: str
    questions: list[str]


def write_invented(home: Path) -> list[Question]:
    """Write the sessions into a home; return the questions about them."""
    found: list[Question] = []
    lines = Path(__file__).with_name("invented.jsonl").read_bytes().splitlines()
    for number, line in enumerate(lines):
        each = msgspec.json.decode(line, type=Invented)
        ident = write_session(home, each.project, number, each.turns, each.commit)
        found += [Question(query, [ident]) for query in each.questions]
    return found


def write_session(
    home: Path, project: str, number: int, turns: Sequence[Turn], commit: str = ""
) -> str:
    """Write one session as Claude Code does, a day after that of the number before; return its
    id."""
    ident = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{project}/{number}"))
    session = _Session(ident, f"/home/dev/src/{project}", _BEGAN + timedelta(days=number))
    for asked, answered in turns:
        session.add("user", asked)
        session.add("assistant", [{"type": "text", "text": answered}])
    if commit:
        command = {"command": f'git commit -am "{commit}"'}
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": command}
        session.add("assistant", [call])
        done = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": "1 file changed",
        }
        session.add("user", [done])
    folder = home / ".claude/projects" / f"-home-dev-src-{project}"
    folder.mkdir(parents=True, exist_ok=True)
    text = b"".join(msgspec.json.encode(record) + b"\n" for record in session.records)
    (folder / f"{ident}.jsonl").write_bytes(text)
    return ident


class _Session:
    def __init__(self, ident: str, cwd: str, began: datetime) -> None:
        self.ident = ident
        self.cwd = cwd
        self.at = began
        self.records: list[dict[str, object]] = []

    def add(self, role: str, content: object) -> None:
        self.at += timedelta(seconds=30)
        self.records.append(
            {
                "parentUuid": self.records[-1]["uuid"] if self.records else None,
                "isSidechain": False,
                "type": role,
                "message": {"role": role, "content": content},
                "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.ident}/{len(self.records)}")),
                "timestamp": f"{self.at:%Y-%m-%dT%H:%M:%S}.000Z",
                "cwd": self.cwd,
                "sessionId": self.ident,
                "version": "2.1.197",
                "gitBranch": "main",
            }
        )
